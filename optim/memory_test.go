package optim_test

import (
	"fmt"
	"sync"
	"testing"

	"carve/nn"
	"carve/optim"
	"carve/tensor"
	"carve/unit"
)

// stateBytes is the closed form of what all N ranks of a stage hold together of the parameters, gradients and AdamW's
// memory of one parameter: value v, gradient g, sums in full precision w, master and moments m.
func stateBytes(stage optim.Stage, d tensor.DType, n int) [3]int {
	v, w, m := d.Size(), 4, 8
	if d == tensor.BF16 {
		m = 12
	}
	values, gradients, memory := n*v, n*v, m
	if stage == optim.Replicated {
		memory = n * m
	}
	if stage >= optim.ShardGradients {
		gradients = w
	}
	if stage >= optim.ShardParameters {
		values = v
	}
	return [3]int{values, gradients, memory}
}

// TestStateBytes holds what the ranks hold between steps to the table of the package comment, and each rank to its share.
func TestStateBytes(t *testing.T) {
	for _, d := range []tensor.DType{tensor.FP32, tensor.BF16} {
		for stage := optim.Replicated; stage <= optim.ShardParameters; stage++ {
			for _, n := range []int{1, 2, 4} {
				if racing && n > 1 {
					continue
				}
				t.Run(fmt.Sprintf("%v/stage=%d/ranks=%d", d, stage, n), func(t *testing.T) { holdStateBytes(t, d, stage, n) })
			}
		}
	}
}

func holdStateBytes(t *testing.T, d tensor.DType, stage optim.Stage, n int) {
	var mu sync.Mutex
	var sum, most [3]unit.Bytes
	newJob().inWorld(t, layout{dp: n, dtype: d, state: optim.Options{Stage: stage}}, func(w *worker) {
		live := w.r.Arena.Live()
		mu.Lock()
		defer mu.Unlock()
		for i, c := range []tensor.Category{tensor.Parameter, tensor.Gradient, tensor.Optimizer} {
			sum[i] += live.Of(c)
			most[i] = max(most[i], live.Of(c))
		}
	})
	params := unit.Bytes(newJob().config.Parameters().Total())
	const remainders = 4 * 4 * 12 // bytes of the remainders that the last rank has of four units
	for i, bytes := range stateBytes(stage, d, n) {
		want := unit.Bytes(bytes) * params
		if sum[i] != want || most[i] > want/unit.Bytes(n)+remainders {
			t.Errorf("%s: %v in all and at most %v on a rank, want %v and %v", [3]string{"values", "gradients", "memory"}[i],
				sum[i], most[i], want, want/unit.Bytes(n))
		}
	}
}

// TestPeakOfLentMemory holds that stage 3 has the values of the unit that runs and of those gathered ahead, and the gradients
// of the unit that runs and of the one before; no more.
func TestPeakOfLentMemory(t *testing.T) {
	j := jobs()["plain"]
	j.config.Layers = 4
	for prefetch := range 4 {
		l := layout{dp: 2, micro: 2, state: optim.Options{Stage: optim.ShardParameters, Prefetch: prefetch}}
		j.inWorld(t, l, func(w *worker) {
			live := w.r.Arena.Live()
			w.r.Arena.ResetPeak()
			w.bare()
			most := w.r.Arena.Most()
			values, gradients := window(w.m.Units, 1+prefetch), window(w.m.Units, 2)
			if got := most.Of(tensor.Parameter) - live.Of(tensor.Parameter); got != values {
				t.Errorf("prefetch %d: %v of values are gathered at most, want %v", prefetch, got, values)
			}
			if got := most.Of(tensor.Gradient) - live.Of(tensor.Gradient); got != gradients {
				t.Errorf("prefetch %d: %v of gradients are lent at most, want %v", prefetch, got, gradients)
			}
		})
	}
}

// window is the most that n neighbouring units hold, in fp32.
func window(units []*nn.Unit, n int) (most unit.Bytes) {
	for i := range len(units) - n + 1 {
		most = max(most, unit.Bytes(4*(units[i+n-1].Hi-units[i].Lo)))
	}
	return most
}
