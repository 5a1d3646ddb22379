package sim_test

import (
	"math"
	"testing"

	"carve/cluster"
	"carve/cost"
	"carve/mesh"
	"carve/plan"
	"carve/schedule"
	"carve/sim"
	"carve/unit"

	"pgregory.net/rapid"
)

// equal makes the work of equal stages whose messages take no time.
func equal(ranks int, c schedule.Cost) []*sim.Work {
	work := make([]*sim.Work, ranks)
	for i := range work {
		work[i] = sim.Only(i, func(op schedule.Op) unit.Seconds {
			switch op {
			case schedule.Forward:
				return unit.Seconds(c.Forward)
			case schedule.Input:
				return unit.Seconds(c.Input)
			case schedule.Weight:
				return unit.Seconds(c.Weight)
			default:
				return unit.Seconds(c.Input + c.Weight)
			}
		})
	}
	return work
}

// TestEqualStagesEqualTheClosedForm holds the simulator to the replay and the published formulas of package schedule.
func TestEqualStagesEqualTheClosedForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := schedule.Spec{
			Kind:  rapid.SampledFrom(schedule.Kinds()).Draw(t, "kind"),
			Ranks: 2 * rapid.IntRange(1, 4).Draw(t, "half the ranks"), Micro: 8 * rapid.IntRange(2, 4).Draw(t, "micro-batches by 8"),
		}
		if s.Kind == schedule.Interleaved {
			s.Chunks = 2
			s.Micro = s.Ranks * 4
		}
		program, err := schedule.Generate(s)
		if err != nil {
			t.Fatal(err) // every one drawn is legal
		}
		c := schedule.Cost{Forward: float64(rapid.IntRange(1, 9).Draw(t, "F")), Input: float64(rapid.IntRange(1, 9).Draw(t, "I")), Weight: float64(rapid.IntRange(1, 9).Draw(t, "W"))}
		want, err := schedule.Time(program, c)
		if err != nil {
			t.Fatal(err)
		}
		got, err := sim.Run(program, equal(s.Ranks, c), sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(float64(got.Step)-want.Makespan) > 1e-9*want.Makespan {
			t.Fatalf("%v of %d ranks, %d micro-batches: simulated %v, replayed %v", s.Kind, s.Ranks, s.Micro, got.Step, want.Makespan)
		}
		for rank, stage := range got.Stages {
			if math.Abs(float64(stage.Bubble)-want.Bubble(rank)) > 1e-9*want.Makespan {
				t.Fatalf("rank %d: bubble of %v, replayed %v", rank, stage.Bubble, want.Bubble(rank))
			}
		}
	})
}

// TestBubbleOfOneForwardOneBackward is Narayanan et al. 2021, section 2.2: (p-1)/(m+p-1) of a step.
func TestBubbleOfOneForwardOneBackward(t *testing.T) {
	program, err := schedule.Generate(schedule.Spec{Kind: schedule.OneForwardOneBackward, Ranks: 8, Micro: 24})
	if err != nil {
		t.Fatal(err)
	}
	r, err := sim.Run(program, equal(8, schedule.UnitCost()), sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.Bubble(), 7.0/31; math.Abs(got-want) > 1e-12 {
		t.Errorf("bubble of %v, want %v", got, want)
	}
}

// TestStragglers: a slow stage makes the step longer, and nonsense is refused.
func TestStragglers(t *testing.T) {
	program, err := schedule.Generate(schedule.Spec{Kind: schedule.OneForwardOneBackward, Ranks: 4, Micro: 16})
	if err != nil {
		t.Fatal(err)
	}
	work := equal(4, schedule.UnitCost())
	even, err := sim.Run(program, work, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	slow, err := sim.Run(program, work, sim.Options{Stragglers: []sim.Straggler{{Stage: 2, Factor: 1.5}}})
	if err != nil {
		t.Fatal(err)
	}
	if least := unit.Seconds(1.5 * 16 * 3); slow.Step < least || slow.Step <= even.Step {
		t.Errorf("a stage that works for %v makes a step of %v; even ones %v", least, slow.Step, even.Step)
	}
	for _, bad := range []sim.Straggler{{Stage: 4, Factor: 2}, {Stage: 0, Factor: 0.5}, {Stage: 0, Factor: math.NaN()}} {
		if _, err := sim.Run(program, work, sim.Options{Stragglers: []sim.Straggler{bad}}); err == nil {
			t.Errorf("%+v is fine", bad)
		}
	}
	if _, err := sim.Run(program, work[:3], sim.Options{}); err == nil {
		t.Error("work of three stages for a program of four is fine")
	}
}

const base = `
version: 1
model: llama-3.1-8b
workload: {sequence: 8192, global_batch: 64, steps: 1, tokenizer: {bpe: 1000}}
cluster: {preset: dgx-h100, nodes: 2}
`

func load(t *testing.T, rest string) (plan.Plan, cost.Machine) {
	t.Helper()
	p, err := plan.Load([]byte(base+rest), nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := cost.New(p.Cluster.Machine)
	if err != nil {
		t.Fatal(err)
	}
	return p, m
}

func simulate(t *testing.T, p plan.Plan, m cost.Machine) *sim.Result {
	t.Helper()
	r, err := sim.Of(p, m, sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var layouts = []string{
	"layout: {dp: 16}", "layout: {dp: 16, zero: {stage: 3}}", "layout: {dp: 2, tp: 8, sequence_parallel: true}",
	"layout: {dp: 4, pp: 4, pipeline: {schedule: 1f1b}}", "layout: {dp: 8, pp: 2, pipeline: {schedule: interleaved, virtual: 2}}",
	"layout: {dp: 4, pp: 4, pipeline: {schedule: zb-h1}}", "layout: {dp: 4, cp: 4}", "layout: {tp: 8, pp: 2, pipeline: {schedule: dualpipe-v}}",
}

// TestTimeIsAccountedFor: on every stage, computing, exposed communication and bubble make up the step.
func TestTimeIsAccountedFor(t *testing.T) {
	for _, layout := range layouts {
		p, m := load(t, layout)
		r := simulate(t, p, m)
		for i, s := range r.Stages {
			sum := s.Compute + s.Bubble
			for _, e := range s.Exposed {
				sum += e
			}
			if math.Abs(float64(sum/r.Step)-1) > 1e-9 {
				t.Errorf("%s: stage %d accounts for %v of %v", layout, i, sum, r.Step)
			}
		}
		if mfu := r.MFU(p, m); mfu < 0.05 || mfu > 0.8 {
			t.Errorf("%s: MFU of %.3f", layout, mfu)
		}
	}
}

// TestFasterLinksAreNeverSlower doubles every bandwidth, and then compares machines of one link.
func TestFasterLinksAreNeverSlower(t *testing.T) {
	for _, layout := range layouts {
		p, m := load(t, layout)
		slow := simulate(t, p, m)
		m.Cluster.Levels = append([]cluster.Level(nil), m.Cluster.Levels...)
		for i := range m.Cluster.Levels {
			m.Cluster.Levels[i].Bandwidth *= 2
		}
		if fast := simulate(t, p, m); fast.Step > slow.Step {
			t.Errorf("%s: %v with twice the bandwidth, %v before", layout, fast.Step, slow.Step)
		}
	}
}

// TestExposedBelongsToItsAxis looks at where time is lost.
func TestExposedBelongsToItsAxis(t *testing.T) {
	for layout, axis := range map[string]mesh.Axis{
		"layout: {dp: 2, tp: 8, sequence_parallel: true}": mesh.TP, "layout: {dp: 16, zero: {stage: 3}}": mesh.DP, "layout: {cp: 16}": mesh.CP,
	} {
		p, m := load(t, layout)
		r := simulate(t, p, m)
		if e := r.Exposed(); e[axis] <= 0 {
			t.Errorf("%s: exposed %v; none of %v", layout, e, axis)
		}
	}
}

// TestManyRanksCostNoMore simulates 131,072 ranks.
func TestManyRanksCostNoMore(t *testing.T) {
	p, err := plan.Load([]byte(`
version: 1
model: llama-3.1-405b
workload: {sequence: 8192, global_batch: 16384, steps: 1, tokenizer: {bpe: 1000}}
cluster: {preset: dgx-h100, nodes: 16384}
layout: {dp: 1024, tp: 8, pp: 16, sequence_parallel: true, pipeline: {schedule: 1f1b}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	m, err := cost.New(p.Cluster.Machine)
	if err != nil {
		t.Fatal(err)
	}
	if r := simulate(t, p, m); r.Step <= 0 {
		t.Errorf("a step of %v", r.Step)
	}
}
