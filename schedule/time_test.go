package schedule

import "testing"

// TestMakespans holds the spans of the papers' examples under unit cost: Qi et al. 2023 figures 2 to 5 (p 4, m 8) and
// DeepSeek-V3's figure 5 (8 ranks, 20 micro-batches) with its half.
func TestMakespans(t *testing.T) {
	cases := []struct {
		spec Spec
		want float64
	}{
		{Spec{Kind: AllForwardAllBackward, Ranks: 4, Micro: 8}, 3 * (8 + 3)},
		{Spec{Kind: OneForwardOneBackward, Ranks: 4, Micro: 8}, 3 * (8 + 3)},
		{Spec{Kind: Interleaved, Ranks: 4, Chunks: 2, Micro: 8}, 3 * (16 + 3)},
		{Spec{Kind: ZeroBubbleH1, Ranks: 4, Micro: 8}, 3*8 + 3},
		{Spec{Kind: ZeroBubbleV, Ranks: 4, Micro: 8}, 6*8 + 3},
		{Spec{Kind: DualPipe, Ranks: 8, Micro: 20}, 3*20 + 3*(3+2-3)},
		{Spec{Kind: DualPipeV, Ranks: 4, Micro: 10}, 6*10 + 3*(3+2-3)},
	}
	for _, c := range cases {
		p, err := Generate(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		line, err := Time(p, UnitCost())
		if err != nil {
			t.Fatal(err)
		}
		if line.Makespan != c.want {
			t.Errorf("%v takes %v, want %v", c.spec, line.Makespan, c.want)
		}
	}
}
