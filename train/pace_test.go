package train

import (
	"testing"

	"carve/plan"
	"carve/unit"

	"github.com/google/go-cmp/cmp"
)

func TestPace(t *testing.T) {
	cases := []struct {
		name            string
		budget, reserve unit.Seconds
		first, step     unit.Seconds
		rehearsed, want int
	}{
		{"usual", 90, 10, 0.6, 0.25, 12, 306},
		{"slow machine", 90, 10, 8, 5, 3, 12},
		{"no time at all", 4, 10, 8, 5, 3, 1},
		{"all of it reserved", 80, 200, 4, 4, 3, 10},
		{"very short steps", 1, 0, 1e-3, 1e-3, 31, 968},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := &pace{budget: tc.budget}
			elapsed, n := unit.Seconds(0), 0
			for ; !p.enough(); n++ {
				length := tc.step
				if n == 0 {
					length = tc.first
				}
				elapsed += length
				p.observe(n, length)
			}
			if got := p.fit(elapsed, tc.reserve); n != tc.rehearsed || got != tc.want {
				t.Errorf("%d steps after a rehearsal of %d, want %d after %d", got, n, tc.want, tc.rehearsed)
			}
		})
	}
}

func TestWithSteps(t *testing.T) {
	p := plan.Default()
	p.Workload.Tokens, p.Optimizer.Warmup = 1000, 30
	p.Workload.Validation.Interval, p.Checkpoint.Every = 100, 0
	got := WithSteps(p, 80)
	p.Workload.Tokens, p.Workload.Steps, p.Optimizer.Warmup, p.Workload.Validation.Interval = 0, 80, 8, 20
	if diff := cmp.Diff(p, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
