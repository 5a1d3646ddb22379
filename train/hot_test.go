package train

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"

	"carve/plan"
	"carve/tensor"
	"carve/unit"
)

// TestStepAllocatesNothing holds that after warm-up a step, with everything that a rank does in it, takes no memory from
// Go's heap, and that the arena's totals are the sums of its live tensors.
func TestStepAllocatesNothing(t *testing.T) {
	measured := 100
	if racing {
		measured = 4 // it says nothing of allocations then, but of races
	}
	for _, precision := range []plan.Precision{plan.FP32, plan.BF16} {
		for _, ranks := range []int{1, 2} {
			t.Run(fmt.Sprintf("%v/ranks=%d", precision, ranks), func(t *testing.T) {
				p := over(smallPlan(t, 100), ranks, 2)
				p.Precision = precision
				record := func(j *job) { j.timelines = make([]*timeline, ranks) }
				allocated := uint64(math.MaxUint64)
				err := launchSmall(t.Context(), p, record, func(ctx context.Context, w *worker) error {
					if err := steps(ctx, w, 10); err != nil {
						return err
					}
					for range 3 { // the least counts: a busy machine makes the runtime allocate
						n, err := allocations(ctx, w, measured)
						if err != nil {
							return err
						}
						if w.leads() {
							allocated = min(allocated, n)
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				// The runtime takes a little itself when goroutines park on one processor and wake on another.
				if allocated >= uint64(measured) && !racing { // one a step
					t.Errorf("%d allocations in %d steps", allocated, measured)
				}
			})
		}
	}
}

// allocations counts what the process allocates while every rank makes so many steps.
func allocations(ctx context.Context, w *worker, n int) (uint64, error) {
	var before, after runtime.MemStats
	if err := w.world.Barrier(); err != nil {
		return 0, err
	}
	if w.leads() {
		runtime.ReadMemStats(&before)
	}
	for range n {
		if err := w.world.Barrier(); err != nil {
			return 0, err
		}
		if _, _, err := w.step(ctx, 1e-3); err != nil {
			return 0, err
		}
		if err := w.publish(false, 0); err != nil {
			return 0, err
		}
		w.timeline.step(1, 1)
	}
	if err := w.world.Barrier(); err != nil {
		return 0, err
	}
	if w.leads() {
		runtime.ReadMemStats(&after)
	}
	return after.Mallocs - before.Mallocs, errorUnless(tally(w.rank.Arena) == w.rank.Arena.Live(),
		"the arena counts %v, its tensors have %v", w.rank.Arena.Live(), tally(w.rank.Arena))
}

// tally adds up the live tensors of an arena.
func tally(a *tensor.Arena) (u tensor.Usage) {
	a.Tensors(func(t *tensor.Tensor) { u[t.Category()] += unit.Bytes(t.Bytes()) })
	return u
}

func errorUnless(holds bool, format string, args ...any) error {
	if holds {
		return nil
	}
	return fmt.Errorf(format, args...)
}
