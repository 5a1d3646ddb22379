package train

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carve/checkpoint"
	"carve/mesh"
	"carve/model"
	"carve/plan"
)

// smallModel has every part of a Llama and 30 thousand parameters.
func smallModel() model.Config {
	c := model.New(model.Llama)
	c.Layers, c.Hidden, c.FFN, c.Vocab, c.Context = 2, 32, 48, 257, 64
	c.Heads, c.KVHeads, c.HeadDim = 4, 2, 8
	c.NormEpsilon, c.Rope.Theta, c.InitStd = 1e-5, 10_000, 0.02
	return c
}

// mixedModel is the small model with experts.
func mixedModel() model.Config {
	c, small := model.New(model.Qwen3MoE), smallModel()
	c.Layers, c.Hidden, c.FFN, c.Vocab, c.Context = small.Layers, small.Hidden, small.FFN, small.Vocab, small.Context
	c.Heads, c.KVHeads, c.HeadDim = small.Heads, small.KVHeads, small.HeadDim
	c.NormEpsilon, c.Rope.Theta, c.InitStd = small.NormEpsilon, small.Rope.Theta, small.InitStd
	c.Experts.Count, c.Experts.PerToken, c.Experts.FFN = 4, 2, 24
	return c
}

// smallPlan trains the small model on bytes of a text file.
func smallPlan(t testing.TB, steps int) plan.Plan {
	t.Helper()
	p := plan.Default()
	p.Model = plan.Model{Origin: plan.Inline, Config: smallModel()}
	p.Workload = plan.Workload{
		Sequence: 32, GlobalBatch: 8, Steps: steps, Data: []plan.Source{{Path: smallText(t), Weight: 1}},
		Validation: plan.Validation{Fraction: 0.1, Interval: 0, Batches: 2},
	}
	p.MicroBatch, p.Precision = 8, plan.FP32
	p.Layout.Zero.Stage = plan.Replicated
	p.Optimizer.LearningRate, p.Optimizer.Warmup = 3e-3, 3
	p.Checkpoint, p.Logging.Interval = plan.Checkpoint{Every: 0, Keep: 10}, 1
	return p
}

// over is the plan on so many ranks, each with micro-batches of so many sequences.
func over(p plan.Plan, ranks, microBatch int) plan.Plan {
	p.Layout.Degrees[mesh.DP], p.MicroBatch = ranks, microBatch
	return p
}

// smallText is a file of some regular and some varied text, 20 KiB.
func smallText(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for i := 0; b.Len() < 20<<10; i++ {
		fmt.Fprintf(&b, "func f%d(x int) int { return x*%d + %d }\n", i%97, i%13, i*i%101)
	}
	path := filepath.Join(t.TempDir(), "text.go")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// journal is a sink that remembers, and that may act on an event.
type journal struct {
	events []Event
	act    func(Event)
}

func (j *journal) Event(e Event) {
	j.events = append(j.events, e)
	if j.act != nil {
		j.act(e)
	}
}

// losses are those of the steps, in order.
func (j *journal) losses() (losses []float64) {
	for _, e := range j.events {
		if s, ok := e.(Step); ok {
			losses = append(losses, s.Loss)
		}
	}
	return losses
}

// of counts the events of a type.
func of[E Event](j *journal) (all []E) {
	for _, e := range j.events {
		if x, ok := e.(E); ok {
			all = append(all, x)
		}
	}
	return all
}

// trial is one process's part of a run, in a test.
type trial struct {
	path  string
	cache string
	plan  plan.Plan // of a new run
	stop  chan struct{}
	journal
}

func newTrial(t testing.TB, p plan.Plan) *trial {
	t.Helper()
	return &trial{path: filepath.Join(t.TempDir(), "run"), cache: t.TempDir(), plan: p, stop: make(chan struct{})}
}

func (r *trial) options(d *Directory) Options {
	return Options{Plan: r.plan, Directory: d, Cores: 2, Cache: r.cache, Stop: r.stop, Sink: &r.journal}
}

// run starts the run in its folder.
func (r *trial) run(ctx context.Context, change ...func(*Options)) (Summary, error) {
	d, err := CreateDirectory(r.path)
	if err != nil {
		return Summary{}, err
	}
	defer d.Close()
	o := r.options(d)
	for _, f := range change {
		f(&o)
	}
	return Run(ctx, o)
}

// resume goes on with the run in its folder.
func (r *trial) resume(ctx context.Context) (Summary, error) {
	d, err := OpenDirectory(r.path)
	if err != nil {
		return Summary{}, err
	}
	defer d.Close()
	r.stop = make(chan struct{})
	return Resume(ctx, r.options(d))
}

// mustRun runs a plan in a fresh folder to its end.
func mustRun(t testing.TB, p plan.Plan, change ...func(*Options)) *trial {
	t.Helper()
	r := newTrial(t, p)
	if _, err := r.run(t.Context(), change...); err != nil {
		t.Fatal(err)
	}
	return r
}

// state opens the checkpoint of a step.
func (r *trial) state(t testing.TB, step int) *checkpoint.Checkpoint {
	t.Helper()
	c, err := checkpoint.Open(filepath.Join(r.path, checkpointsDir, fmt.Sprintf("step-%08d", step)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// sameState holds that two runs saved the same tensors at a step, to the bit.
func sameState(t *testing.T, a, b *trial, step int) {
	t.Helper()
	x, y := a.state(t, step), b.state(t, step)
	if len(x.Tensors) != len(y.Tensors) {
		t.Fatalf("%d and %d tensors", len(x.Tensors), len(y.Tensors))
	}
	for i := range x.Tensors {
		if p, q := x.Tensors[i], y.Tensors[i]; p.Name != q.Name || p.Slices[0].Hash != q.Slices[0].Hash {
			t.Errorf("tensors %s and %s differ after step %d", p.Name, q.Name, step)
		}
	}
	if !bytes.Equal(x.Data, y.Data) {
		t.Errorf("positions in the data are %s and %s", x.Data, y.Data)
	}
}

// near holds that two series are equal within a relative tolerance.
func near(t *testing.T, what string, got, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(got[i]-want[i]) / math.Abs(want[i]); !(d <= tolerance) {
			t.Fatalf("%s: value %d is %v, want %v: off by %.1e", what, i, got[i], want[i], d)
		}
	}
}
