package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"carve/mesh"
	"carve/plan"

	"github.com/google/go-cmp/cmp"
)

// lines writes every rank's list on one line.
func lines(p *Program) string {
	var b strings.Builder
	for _, list := range p.Ranks {
		for i, a := range list {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(a.String())
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestMessages holds whole lists: receives right before what needs them, sends right after what makes them, nothing
// between chunks of one rank.
func TestMessages(t *testing.T) {
	cases := []struct {
		spec Spec
		want string
	}{
		{Spec{Kind: OneForwardOneBackward, Ranks: 2, Micro: 2}, `F0, SendActivation 0 > 1, F1, SendActivation 1 > 1, RecvGradient 0 < 1, B0, RecvGradient 1 < 1, B1
RecvActivation 0 < 0, F0, B0, SendGradient 0 > 0, RecvActivation 1 < 0, F1, B1, SendGradient 1 > 0
`},
		{Spec{Kind: ZeroBubbleV, Ranks: 2, Micro: 1}, `F0, SendActivation 0 > 1, RecvActivation 0.1 < 1, F0.1, I0.1, SendGradient 0.1 > 1, W0.1, RecvGradient 0 < 1, I0, W0
RecvActivation 0 < 0, F0, F0.1, SendActivation 0.1 > 0, RecvGradient 0.1 < 0, I0.1, W0.1, I0, SendGradient 0 > 0, W0
`},
		{Spec{Kind: DualPipeV, Ranks: 1, Micro: 2}, `F0, F0.1, F1, B0.1, F1.1|B0, B1.1, I1, W1
`},
	}
	for _, c := range cases {
		if diff := cmp.Diff(c.want, lines(generate(t, c.spec))); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.spec, diff)
		}
	}
}

func TestIllegalSpecs(t *testing.T) {
	cases := []struct {
		spec Spec
		want string
	}{
		{Spec{Kind: 9, Ranks: 1, Micro: 1}, "schedule: unknown schedule 9; use one of Kinds"},
		{Spec{Ranks: 0, Micro: 1}, "schedule: 0 ranks, 0 chunks and 1 micro-batches; use 1 or more of each"},
		{Spec{Ranks: 1 << 40, Micro: 1 << 40}, "schedule: 1099511627776 ranks of 1 chunks and 1099511627776 micro-batches make more than 16777216 actions; use fewer micro-batches"},
		{Spec{Ranks: 4, Micro: 1 << 20}, "schedule: 4 ranks of 1 chunks and 1048576 micro-batches make more than 16777216 actions; use fewer micro-batches"},
		{Spec{Kind: DualPipe, Chunks: 2, Ranks: 2, Micro: 4}, "schedule: 2 chunks per rank, which dualpipe does not have; use 1, or interleaved"},
		{Spec{Kind: Interleaved, Ranks: 4, Micro: 8}, "schedule: interleaved has one chunk per rank; use 2 or more, or 1f1b"},
		{Spec{Kind: Interleaved, Ranks: 4, Chunks: 2, Micro: 6}, "schedule: interleaved takes micro-batches in rounds of 4 ranks, and 6 is no multiple; use 8"},
		{Spec{Kind: DualPipe, Ranks: 3, Micro: 4}, "schedule: dualpipe needs an even number of ranks and an even number of micro-batches from 6 up, not 3 and 4; use 4 ranks and 8 micro-batches, or 1f1b"},
		{Spec{Kind: DualPipeV, Ranks: 4, Micro: 7}, "schedule: dualpipe-v needs 8 micro-batches or more, not 7; use 8, or 1f1b"},
	}
	for _, c := range cases {
		p, err := Generate(c.spec)
		if err == nil || p != nil {
			t.Errorf("%v is accepted", c.spec)
			continue
		}
		if diff := cmp.Diff(c.want, err.Error()); diff != "" {
			t.Error(diff)
		}
	}
}

// TestAgreesWithPlan holds that a plan's schedule is legal exactly where its spec is.
func TestAgreesWithPlan(t *testing.T) {
	base, err := plan.Load([]byte("version: 1\nmodel: gpt2\nworkload: {sequence: 64, steps: 1}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	legal := 0
	for _, kind := range Kinds() {
		for _, pp := range []int{1, 2, 3, 4, 6} {
			for micro := 1; micro <= 13; micro++ {
				for virtual := 1; virtual <= 3; virtual++ {
					base.Layout.Degrees[mesh.PP], base.Workload.GlobalBatch, base.MicroBatch = pp, micro, 1
					base.Layout.Pipeline = plan.Pipeline{Schedule: plan.Schedule(kind), Virtual: virtual}
					if name := base.Layout.Pipeline.Schedule.String(); name != kind.String() {
						t.Fatalf("the plan calls %s %s", kind, name)
					}
					var faults plan.Violations
					errors.As(base.Validate(), &faults)
					refused := slices.ContainsFunc(faults, func(v *plan.Violation) bool { return v.Rule == plan.RuleSchedule })
					spec := Spec{Kind: kind, Ranks: pp, Chunks: virtual, Micro: micro}
					err := spec.Validate()
					if (err != nil) != refused {
						t.Errorf("%v: %v, the plan says %v", spec, err, faults)
					}
					if err == nil {
						legal++
						if depth := len(generate(t, spec).Stages) * spec.chunks(); kind != DualPipe && depth != base.Layout.Chunks() {
							t.Errorf("%v: %d stages, the plan has %d", spec, depth, base.Layout.Chunks())
						}
					}
				}
			}
		}
	}
	if legal < 100 {
		t.Errorf("only %d legal specs", legal)
	}
}

func TestKinds(t *testing.T) {
	for _, k := range Kinds() {
		if got, err := ParseKind(k.String()); err != nil || got != k {
			t.Errorf("ParseKind(%s) = %v, %v", k, got, err)
		}
	}
	_, err := ParseKind("gpipe")
	if want := `schedule: no schedule "gpipe"; use afab, 1f1b, interleaved, zb-h1, zb-v, dualpipe, dualpipe-v`; fmt.Sprint(err) != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestRoute holds where stages live, by enumeration: following Next from the first stage passes all of them in order.
func TestRoute(t *testing.T) {
	grid(t, func(s Spec, p *Program) {
		route, err := p.Route()
		if err != nil {
			t.Fatal(err)
		}
		for pipe := range route.Pipes() {
			at := route.Place(Stage{Pipe: pipe})
			if !route.First(at) {
				t.Fatalf("%v: pipe %d does not begin at %v", s, pipe, at)
			}
			for index := 1; ; index++ {
				next, ok := route.Next(at)
				if !ok {
					if index != route.Depth() || !route.Last(at) {
						t.Fatalf("%v: pipe %d ends after %d stages of %d", s, pipe, index, route.Depth())
					}
					break
				}
				if back, ok := route.Previous(next); !ok || back != at || route.Stage(next) != (Stage{pipe, index}) {
					t.Fatalf("%v: from %v to %v and back to %v", s, at, next, back)
				}
				at = next
			}
		}
	})
}
