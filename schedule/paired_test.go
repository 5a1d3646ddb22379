package schedule

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPaired holds paired 1F1B to the static check, to its peak in flight, and to one pair for every micro-batch but those
// of the warm-up.
func TestPaired(t *testing.T) {
	for p := 1; p <= 6; p++ {
		for m := 1; m <= 14; m++ {
			program := generate(t, Spec{Kind: OneForwardOneBackward, Ranks: p, Micro: m, Pairs: Paired})
			report, err := Check(program)
			if err != nil || !report.DeadlockFree {
				t.Fatalf("%d ranks, %d micro-batches: %v", p, m, err)
			}
			peak, pairs, want := make([]int, p), make([]int, p), make([]int, p)
			for rank := range p {
				warmup := 2*(p-1-rank) + 1
				peak[rank], want[rank] = min(m, warmup+1), max(m-warmup, 0)
				for _, a := range program.Ranks[rank] {
					if a.Op == Pair {
						pairs[rank]++
					}
				}
			}
			if diff := cmp.Diff(peak, report.PeakInFlight); diff != "" {
				t.Errorf("%d ranks, %d micro-batches: in flight %s", p, m, diff)
			}
			if diff := cmp.Diff(want, pairs); diff != "" {
				t.Errorf("%d ranks, %d micro-batches: pairs %s", p, m, diff)
			}
		}
	}
	if _, err := Generate(Spec{Kind: ZeroBubbleH1, Ranks: 2, Micro: 4, Pairs: Paired}); err == nil {
		t.Error("a zero-bubble schedule is paired")
	}
}

// TestPairedNeedsItsWarmUp is the negative control: when the first of two ranks is not ahead, they wait for each other.
func TestPairedNeedsItsWarmUp(t *testing.T) {
	spec := Spec{Kind: OneForwardOneBackward, Ranks: 2, Micro: 6, Pairs: Paired}
	program := generate(t, spec)
	c := newComposer(spec)
	c.pairedOneForwardOneBackward(0)
	program.Ranks[0] = c.list
	last := program.Ranks[1][:0:0]
	for _, a := range program.Ranks[1] {
		if a.Op == Forward || a.Op == Backward || a.Op == Pair {
			last = append(last, a)
		}
	}
	program.Ranks[1] = last
	route, err := program.Route()
	if err != nil {
		t.Fatal(err)
	}
	communicate(program, route)
	if report, err := Check(program); err == nil && report.DeadlockFree {
		t.Error("no rank needs to be ahead")
	}
}
