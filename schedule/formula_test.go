package schedule

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// grid calls visit for every legal spec of a grid of p, m and v.
func grid(t *testing.T, visit func(s Spec, p *Program)) {
	t.Helper()
	for _, kind := range Kinds() {
		seen := 0
		for _, ranks := range []int{1, 2, 3, 4, 6, 8} {
			for _, micro := range []int{1, 2, 3, 4, 5, 7, 8, 12, 16, 20, 33} {
				for _, chunks := range []int{1, 2, 3, 4} {
					s := Spec{Kind: kind, Ranks: ranks, Chunks: chunks, Micro: micro}
					if s.Validate() != nil {
						continue
					}
					p, err := Generate(s)
					if err != nil {
						t.Fatal(err)
					}
					visit(s, p)
					seen++
				}
			}
		}
		if seen < 10 {
			t.Errorf("only %d legal specs of %s", seen, kind)
		}
	}
}

// TestBubbleFormulas holds the replay equal to the published bubble wherever that is exact.
func TestBubbleFormulas(t *testing.T) {
	costs := []Cost{
		UnitCost(),
		{Forward: 2, Input: 2, Weight: 1},
		{Forward: 3, Input: 2, Weight: 1},
		{Forward: 2, Input: 3, Weight: 2},
		{Forward: 1, Input: 2, Weight: 3},
	}
	compared := map[Kind]int{}
	grid(t, func(s Spec, p *Program) {
		for _, c := range costs {
			want, exact := s.Bubble(c)
			if !exact {
				continue
			}
			compared[s.Kind]++
			line, err := Time(p, c)
			if err != nil {
				t.Fatal(err)
			}
			var idle float64
			for rank := range p.Ranks {
				idle = max(idle, line.Idle(rank))
				if busy := line.Busy[rank]; busy != s.Work(c) {
					t.Errorf("%v under %v: rank %d works %v, want %v", s, c, rank, busy, s.Work(c))
				}
			}
			if idle != want {
				t.Errorf("%v under %v: idle for %v, published %v", s, c, idle, want)
			}
			if s.Kind != ZeroBubbleV && line.Bubble(0) != want {
				t.Errorf("%v under %v: bubble of rank 0 is %v, published %v", s, c, line.Bubble(0), want)
			}
		}
	})
	for _, kind := range Kinds() {
		if compared[kind] < 10 {
			t.Errorf("%s was compared %d times only", kind, compared[kind])
		}
	}
}

// TestBubbleFraction holds the well-known forms.
func TestBubbleFraction(t *testing.T) {
	for _, s := range []Spec{
		{Kind: AllForwardAllBackward, Ranks: 4, Micro: 8},
		{Kind: OneForwardOneBackward, Ranks: 8, Micro: 24},
	} {
		got, _ := s.BubbleFraction(UnitCost())
		if want := float64(s.Ranks-1) / float64(s.Micro+s.Ranks-1); got != want {
			t.Errorf("%v: %v, want %v", s, got, want)
		}
		line := replay(t, s, UnitCost())
		if line.BubbleRatio() != got {
			t.Errorf("%v: the replay gives %v, want %v", s, line.BubbleRatio(), got)
		}
	}
	// Interleaving divides bubble by work, (p-1)/m, by v.
	plain := Spec{Kind: OneForwardOneBackward, Ranks: 4, Micro: 8}
	split := Spec{Kind: Interleaved, Ranks: 4, Chunks: 2, Micro: 8}
	whole, _ := plain.Bubble(Cost{Forward: 2, Input: 2, Weight: 2})
	half, _ := split.Bubble(UnitCost())
	if half != whole/2 {
		t.Errorf("interleaved by 2 idles %v, 1f1b %v", half, whole)
	}
}

// TestQuickPairs holds what the published formula of DualPipe leaves out where overlap saves time.
func TestQuickPairs(t *testing.T) {
	for ranks := 2; ranks <= 6; ranks++ {
		for saved := 0.0; saved <= 3; saved++ {
			c := Cost{Forward: 3, Input: 3, Weight: 3, Pair: 9 - saved}
			s := Spec{Kind: DualPipeV, Ranks: ranks, Micro: 4 * ranks}
			published, exact := s.Bubble(c)
			if exact != (saved == 0) {
				t.Errorf("%v under %v: exact is %v", s, c, exact)
			}
			if got, want := replay(t, s, c).Bubble(0), published-saved*float64(ranks-2); got != want {
				t.Errorf("%v under %v: bubble %v, want %v", s, c, got, want)
			}
		}
	}
}

func replay(t *testing.T, s Spec, c Cost) *Timeline {
	t.Helper()
	p, err := Generate(s)
	if err != nil {
		t.Fatal(err)
	}
	line, err := Time(p, c)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// TestPeakFormulas holds Check's peaks equal to the published ones.
func TestPeakFormulas(t *testing.T) {
	grid(t, func(s Spec, p *Program) {
		report, err := Check(p)
		if err != nil {
			t.Fatalf("%v: %v", s, err)
		}
		if flight, known := s.PeakInFlight(); known {
			if diff := cmp.Diff(flight, report.PeakInFlight); diff != "" {
				t.Errorf("%v: in flight (-published +checked)\n%s", s, diff)
			}
		}
		if held, known := s.PeakHeld(); known {
			if diff := cmp.Diff(held, report.PeakHeld); diff != "" {
				t.Errorf("%v: held (-published +checked)\n%s", s, diff)
			}
		}
	})
}

// TestPaperTable2 holds DeepSeek-V3's table 2 for 8 stages: DualPipe keeps p+1 and its half the same number of stages.
func TestPaperTable2(t *testing.T) {
	c := Cost{Forward: 2, Input: 2, Weight: 1}
	for _, row := range []struct {
		spec   Spec
		bubble float64
		peak   int
	}{
		{Spec{Kind: OneForwardOneBackward, Ranks: 8, Micro: 20}, 7 * (2 + 3), 8},
		{Spec{Kind: ZeroBubbleH1, Ranks: 8, Micro: 20}, 7 * (2 + 3 - 2*1), 8},
		{Spec{Kind: DualPipe, Ranks: 8, Micro: 20}, 3 * (5 + 3 - 3*1), 9},
		{Spec{Kind: DualPipeV, Ranks: 4, Micro: 20}, 3 * (5 + 3 - 3*1), 9},
	} {
		if got := replay(t, row.spec, c).Bubble(0); got != row.bubble {
			t.Errorf("%v: bubble %v, want %v", row.spec, got, row.bubble)
		}
		if held, _ := row.spec.PeakHeld(); held[0] != row.peak {
			t.Errorf("%v: peak %d, want %d", row.spec, held[0], row.peak)
		}
	}
}
