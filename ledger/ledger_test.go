package ledger_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"carve/comm"
	"carve/ledger"
	"carve/nn"
	"carve/parallel"
	"carve/plan"
	"carve/record"
	"carve/tensor"
	"carve/unit"

	"github.com/google/go-cmp/cmp"
)

const base = `
version: 1
model: {architecture: llama, layers: 8, hidden: 16, heads: 4, kv_heads: 2, head_dim: 4, ffn: 24, vocab: 259, context: 64, tie_embeddings: false}
workload: {sequence: 16, global_batch: 16, steps: 1}
cluster: {preset: this-machine}
micro_batch: 1
optimizer: {name: adamw, learning_rate: 1e-3}
`

// layouts are cuts along every axis; the flag tells whether the peak of a run depends on when neighbours take messages.
var layouts = []struct {
	layout, rest string
	pipelined    bool
}{
	{"{}", "precision: bf16\n", false},
	{"{dp: 2, zero: {stage: 1}}", "precision: fp32\n", false},
	{"{dp: 4, zero: {stage: 2}}", "precision: bf16\n", false},
	{"{dp: 2, zero: {stage: 3}}", "recompute: full\n", false},
	{"{dp: 4, zero: {stage: 3, hybrid: 2}}", "precision: bf16\n", false},
	{"{tp: 4, sequence_parallel: true}", "recompute: selective\n", false},
	{"{dp: 2, tp: 2, cp: 2}", "precision: bf16\n", false},
	{"{dp: 2, tp: 2, pp: 2, zero: {stage: 1}, pipeline: {schedule: 1f1b}}", "precision: bf16\n", true},
	{"{pp: 2, pipeline: {schedule: zb-v}}", "precision: fp64\n", true},
}

func load(t *testing.T, layout, rest string) plan.Plan {
	t.Helper()
	p, err := plan.Load([]byte(base+"layout: "+layout+"\n"+rest), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// peaks are the arenas' peaks of a run on local ranks.
func peaks(t *testing.T, p plan.Plan) []tensor.Peak {
	t.Helper()
	world := comm.NewLocal(p.Layout.World(), comm.LocalOptions{})
	out := make([]tensor.Peak, p.Layout.World())
	err := comm.Run(context.Background(), world.Endpoints(), func(end comm.Endpoint) (err error) {
		failed := nn.Guard(func() {
			var e *parallel.Engine
			e, err = parallel.New(end, p, parallel.Options{})
			defer e.Close() //nolint:staticcheck // an engine that could not be made is closed as well
			for step := 0; err == nil && step < 2; step++ {
				_, err = e.Step(step, 1e-3)
			}
			if err == nil {
				out[end.Rank()] = e.Rank().Arena.Peak()
			}
		})
		return errors.Join(failed, err)
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLedgerEqualsRun holds the lines of every stage to the measured peak of its ranks, by category and to the byte.
func TestLedgerEqualsRun(t *testing.T) {
	for _, c := range layouts {
		t.Run(c.layout, func(t *testing.T) {
			p := load(t, c.layout, c.rest)
			l, err := ledger.Of(p, ledger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			measured := peaks(t, p)
			for _, s := range l.Stages {
				for _, category := range tensor.Categories() {
					have, want := s.Total(category), measured[s.Rank].Usage.Of(category)
					if c.pipelined && category == tensor.Activation { // messages that a neighbour has not taken yet
						if have > want {
							t.Errorf("rank %d: activations of %v, measured %v", s.Rank, have, want)
						}
						continue
					}
					if have != want {
						t.Errorf("rank %d: %v of %v, measured %v", s.Rank, category, have, want)
					}
				}
			}
		})
	}
}

// TestOneStepIsEnough holds that later steps need no more than the first.
func TestOneStepIsEnough(t *testing.T) {
	for _, c := range layouts {
		p := load(t, c.layout, c.rest)
		var most [2]tensor.Usage
		for i := range most {
			r, err := record.Run(p, 0, record.Options{Steps: i + 1})
			if err != nil {
				t.Fatal(err)
			}
			most[i] = r.Most
		}
		if diff := cmp.Diff(most[0], most[1]); diff != "" {
			t.Errorf("%s (-one step +two):\n%s", c.layout, diff)
		}
	}
}

// TestAccountIsWhole holds that lines sum up to the peak, and notices one that is missing.
func TestAccountIsWhole(t *testing.T) {
	l, err := ledger.Of(load(t, "{pp: 2, dp: 2, pipeline: {schedule: 1f1b}}", ""), ledger.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sum := func(lines []ledger.Line) (b unit.Bytes) {
		for _, line := range lines {
			b += line.Bytes
		}
		return b
	}
	for _, s := range l.Stages {
		if sum(s.Lines) != s.Peak {
			t.Errorf("stage %d: lines of %v, peak of %v", s.Pipeline, sum(s.Lines), s.Peak)
		}
		if sum(s.Lines[1:]) == s.Peak {
			t.Error("nobody misses a line")
		}
	}
	if a, b := l.Stages[0], l.Stages[1]; a.Total(tensor.Activation) <= b.Total(tensor.Activation) {
		t.Errorf("1f1b keeps 2 micro-batches on stage 0 and 1 on stage 1, but activations are %v and %v", a.Total(tensor.Activation), b.Total(tensor.Activation))
	}
}

// TestLifetimes looks at what kinds of lines there are.
func TestLifetimes(t *testing.T) {
	l, err := ledger.Of(load(t, "{dp: 2, tp: 2}", "precision: bf16\n"), ledger.Options{Kernels: tensor.PortableKernels})
	if err != nil {
		t.Fatal(err)
	}
	s := l.Highest()
	seen := map[ledger.Lifetime]bool{}
	for _, line := range s.Lines {
		seen[line.Lifetime] = true
		lasting := line.Category == tensor.Parameter || line.Category == tensor.Optimizer
		if lasting && line.Lifetime != ledger.Run {
			t.Errorf("%v of %s lives %q", line.Category, line.Module, line.Lifetime)
		}
		if line.Lifetime == ledger.Kept && !strings.HasPrefix(line.Module, "model.") && line.Module != "lm_head" {
			t.Errorf("%q keeps %v for the backward", line.Module, line.Shape)
		}
	}
	if !seen[ledger.Run] || !seen[ledger.Kept] {
		t.Errorf("lifetimes %v; want states that stay and activations that are kept", seen)
	}
}

// TestCopies follows the stages of ZeRO: 4 ranks, of which 2 share every matrix.
func TestCopies(t *testing.T) {
	for _, c := range []struct {
		layout string
		want   ledger.Copies
	}{
		{"{dp: 4, zero: {stage: 0}}", ledger.Copies{Parameters: 4, Gradients: 4, Optimizer: 4}},
		{"{dp: 4, zero: {stage: 1}}", ledger.Copies{Parameters: 4, Gradients: 4, Optimizer: 1}},
		{"{dp: 4, zero: {stage: 2}}", ledger.Copies{Parameters: 4, Gradients: 1, Optimizer: 1}},
		{"{dp: 4, zero: {stage: 3}}", ledger.Copies{Parameters: 1, Gradients: 1, Optimizer: 1}},
		{"{dp: 4, zero: {stage: 3, hybrid: 2}}", ledger.Copies{Parameters: 2, Gradients: 2, Optimizer: 2}},
	} {
		l, err := ledger.Of(load(t, c.layout, ""), ledger.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, l.Stages[0].Copies); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.layout, diff)
		}
	}
}

// TestMoreSequencesNeverTakeLess: a bigger micro-batch never lowers the ledger.
func TestMoreSequencesNeverTakeLess(t *testing.T) {
	for _, c := range layouts {
		var last unit.Bytes
		for _, b := range []int{1, 2, 4} {
			p := load(t, c.layout, c.rest)
			if p.MicroBatch = b; p.Workload.GlobalBatch%(b*p.Layout.DataParallel()) != 0 {
				continue
			}
			p.Workload.GlobalBatch *= b // as many micro-batches
			l, err := ledger.Of(p, ledger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if peak := l.Highest().Peak; peak < last {
				t.Errorf("%s: %d sequences take %v, fewer take %v", c.layout, b, peak, last)
			} else {
				last = peak
			}
		}
	}
}
