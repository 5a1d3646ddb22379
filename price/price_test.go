package price_test

import (
	"math"
	"testing"

	"carve/cluster"
	"carve/cost"
	"carve/ledger"
	"carve/model"
	"carve/plan"
	"carve/price"
	"carve/sim"
	"carve/tensor"

	"pgregory.net/rapid"
)

func machine(t *testing.T, preset string, nodes int) cost.Machine {
	t.Helper()
	c, err := cluster.Preset(preset, nodes)
	if err != nil {
		t.Fatal(err)
	}
	m, err := cost.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func profile(t *testing.T, name string) price.Profile {
	t.Helper()
	f, err := price.ProfileOf(name)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func config(t *testing.T, name string) model.Config {
	t.Helper()
	c, err := model.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// one is the layout of a single device.
func one() price.Layout {
	return price.Layout{TP: 1, PP: 1, CP: 1, DP: 1, EP: 1, ExpertTP: 1, Virtual: 1, MicroBatch: 1}
}

// grid is layouts of carve's own engine, as plans and as the closed form has them.
var grid = []struct {
	layout string
	form   func(*price.Layout)
}{
	{"{dp: 8, zero: {stage: 1}}", func(l *price.Layout) { l.DP, l.Zero = 8, 1 }},
	{"{dp: 8, zero: {stage: 0}}", func(l *price.Layout) { l.DP, l.Zero = 8, 0 }},
	{"{dp: 8, zero: {stage: 3}}", func(l *price.Layout) { l.DP, l.Zero = 8, 3 }},
	{"{tp: 8, sequence_parallel: true}", func(l *price.Layout) { l.TP, l.SequenceParallel = 8, true }},
	{"{dp: 2, tp: 4, sequence_parallel: true}", func(l *price.Layout) { l.DP, l.TP, l.SequenceParallel, l.Zero = 2, 4, true, 1 }},
	{"{dp: 2, pp: 4, pipeline: {schedule: 1f1b}}", func(l *price.Layout) { l.DP, l.PP, l.Zero = 2, 4, 1 }},
	{"{dp: 2, tp: 2, pp: 2, sequence_parallel: true, pipeline: {schedule: 1f1b}}", func(l *price.Layout) {
		l.DP, l.TP, l.PP, l.SequenceParallel, l.Zero = 2, 2, 2, true, 1
	}},
	{"{dp: 4, cp: 2}", func(l *price.Layout) { l.DP, l.CP, l.Zero = 4, 2, 1 }},
}

// memoryTolerance and timeTolerance are how far the closed form is from ledger and simulator at most; it does not know every
// workspace, nor what a pass waits for.
const (
	memoryTolerance = 0.15
	timeTolerance   = 0.25
)

// TestNearTheRecord holds the closed form to the ledger and to the simulation of carve's own engine.
func TestNearTheRecord(t *testing.T) {
	m, f := machine(t, "dgx-h100", 1), profile(t, "carve")
	for _, c := range grid {
		p, err := plan.Load([]byte("version: 1\nmodel: llama-3.1-8b\nworkload: {sequence: 8192, global_batch: 32, steps: 1, tokenizer: {bpe: 1000}}\ncluster: {preset: dgx-h100, nodes: 1}\nlayout: "+c.layout+"\n"), nil)
		if err != nil {
			t.Fatal(err)
		}
		account, err := ledger.Of(p, ledger.Options{Kernels: tensor.PortableKernels})
		if err != nil {
			t.Fatal(err)
		}
		step, err := sim.Of(p, m, sim.Options{})
		if err != nil {
			t.Fatal(err)
		}
		j := price.Job{Model: p.Model.Config, Sequence: 8192, GlobalBatch: 32, Layout: one()}
		c.form(&j.Layout)
		time, memory, err := price.Of(&j, &m, &f)
		if err != nil {
			t.Fatal(err)
		}
		if e := float64(memory.Peak)/float64(account.Highest().Peak) - 1; math.Abs(e) > memoryTolerance {
			t.Errorf("%s: memory of %v, recorded %v: %+.0f %%", c.layout, memory.Peak, account.Highest().Peak, 100*e)
		}
		if e := float64(time.Step/step.Step) - 1; math.Abs(e) > timeTolerance {
			t.Errorf("%s: step of %v, simulated %v: %+.0f %%", c.layout, time.Step, step.Step, 100*e)
		}
	}
}

// TestZeroFigure is Rajbhandari et al. 2020, figure 1: a model of 7.5 billion parameters over 64 ranks has 120, 31.4, 16.6 and
// 1.9 GB of states.
func TestZeroFigure(t *testing.T) {
	m, f := machine(t, "dgx-h100", 8), profile(t, "carve")
	c := config(t, "megatron-7.5b")
	scale := 7.5e9 / float64(c.Parameters().Total())
	for zero, want := range []float64{120, 31.4, 16.6, 1.9} {
		j := price.Job{Model: c, Sequence: 2048, GlobalBatch: 64, Layout: one()}
		j.Layout.DP, j.Layout.Zero = 64, zero
		_, memory, err := price.Of(&j, &m, &f)
		if err != nil {
			t.Fatal(err)
		}
		got := float64(memory.Parameters+memory.Gradients+memory.Optimizer) / 1e9 * scale
		if math.Abs(got/want-1) > 0.02 {
			t.Errorf("zero %d: states of %.1f GB, published %.1f", zero, got, want)
		}
	}
}

// TestKorthikanti is Korthikanti et al. 2022, table 2 and equation 2: 34·s·b·h bytes a layer and tensor degree with sequence
// parallelism and selective recomputation.
func TestKorthikanti(t *testing.T) {
	m, f := machine(t, "dgx-a100", 1), profile(t, "megatron")
	c := config(t, "gpt3-175b")
	c.Dropout.Residual = 0.1
	j := price.Job{Model: c, Sequence: 2048, GlobalBatch: 8, Unfused: true, Layout: one()}
	j.Layout.TP, j.Layout.SequenceParallel, j.Layout.Recompute = 8, true, price.Attention
	_, memory, err := price.Of(&j, &m, &f)
	if err != nil {
		t.Fatal(err)
	}
	want := 34 * 2048 * float64(c.Hidden) / 8 * float64(c.Layers) * f.Kept
	if e := float64(memory.Activations)/want - 1; math.Abs(e) > 0.03 {
		t.Errorf("activations of %v, by the paper %.2f GiB", memory.Activations, want/(1<<30))
	}
}

// TestMonotone draws jobs: a bigger micro-batch never needs less memory, more bandwidth is never slower.
func TestMonotone(t *testing.T) {
	m := machine(t, "dgx-h100", 8)
	fast := m
	fast.Cluster.Levels = append([]cluster.Level(nil), m.Cluster.Levels...)
	for i := range fast.Cluster.Levels {
		fast.Cluster.Levels[i].Bandwidth *= 2
	}
	profiles, err := price.Profiles()
	if err != nil {
		t.Fatal(err)
	}
	c := config(t, "llama-3.1-8b")
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(profiles).Draw(t, "profile")
		l := one()
		l.TP, l.PP, l.CP = 1<<rapid.IntRange(0, 3).Draw(t, "tp"), 1<<rapid.IntRange(0, 2).Draw(t, "pp"), 1<<rapid.IntRange(0, 1).Draw(t, "cp")
		l.DP = 64 / (l.TP * l.PP * l.CP)
		l.Zero, l.SequenceParallel = rapid.IntRange(0, 3).Draw(t, "zero"), l.TP > 1
		l.Recompute = price.Recompute(rapid.IntRange(0, 3).Draw(t, "recompute"))
		j := price.Job{Model: c, Sequence: 4096, GlobalBatch: 1024, Layout: l}
		a, small, err := price.Of(&j, &m, &f)
		if err != nil {
			t.Fatal(err)
		}
		b, _, err := price.Of(&j, &fast, &f)
		if err != nil || b.Step > a.Step || !(a.Step > 0) {
			t.Fatalf("%+v: %v, on faster links %v (%v)", l, a.Step, b.Step, err)
		}
		j.Layout.MicroBatch *= 2
		j.GlobalBatch *= 2
		if _, large, err := price.Of(&j, &m, &f); err != nil || large.Peak < small.Peak {
			t.Fatalf("%+v: %v for one sequence, %v for two (%v)", l, small.Peak, large.Peak, err)
		}
	})
}

// TestBlocksGiveTheSame: pricing through shared blocks is pricing alone.
func TestBlocksGiveTheSame(t *testing.T) {
	m, f := machine(t, "dgx-h100", 8), profile(t, "megatron")
	j := price.Job{Model: config(t, "mixtral-8x7b"), Sequence: 4096, GlobalBatch: 256, Layout: one()}
	j.Layout.EP = 8
	blocks, err := price.NewBlocks(&j, &m, &f)
	if err != nil {
		t.Fatal(err)
	}
	for pp := 1; pp <= 8; pp *= 2 {
		for zero := range 2 {
			j.Layout.PP, j.Layout.DP, j.Layout.Zero = pp, 8/pp, zero
			a, am, err1 := blocks.Price(&j, &m, &f)
			b, bm, err2 := price.Of(&j, &m, &f)
			if err1 != nil || err2 != nil || a != b || am != bm {
				t.Errorf("pp %d zero %d: %+v %+v, alone %+v %+v (%v, %v)", pp, zero, a, am, b, bm, err1, err2)
			}
		}
	}
}

// TestRefusals: jobs without sizes are errors, and so are unknown frameworks.
func TestRefusals(t *testing.T) {
	m, f := machine(t, "dgx-h100", 1), profile(t, "carve")
	if _, _, err := price.Of(&price.Job{}, &m, &f); err == nil {
		t.Error("an empty job has a price")
	}
	if _, err := price.ProfileOf("abacus"); err == nil {
		t.Error("abacus is a framework")
	}
}
