package train

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carve/mesh"
	"carve/plan"
)

// TestResumeEqualsUninterrupted interrupts a run, first in order and then by force, and holds that the run that goes on
// is to the bit the one that was never interrupted: every tensor, every loss, every step once in the metrics.
func TestResumeEqualsUninterrupted(t *testing.T) {
	cases := []struct {
		name  string
		ranks int
		edit  func(*plan.Plan)
	}{
		{"fp32 on one rank", 1, func(*plan.Plan) {}},
		{"bf16 on two ranks", 2, func(p *plan.Plan) { p.Precision = plan.BF16 }},
		{"muon on two ranks", 2, func(p *plan.Plan) { p.Optimizer.Name = plan.Muon }},
		{"stages under ZeRO 2 in bf16", 2, func(p *plan.Plan) {
			p.Precision, p.Layout.Zero.Stage, p.MicroBatch = plan.BF16, plan.ShardGradients, 1
			p.Layout.Degrees[mesh.PP], p.Layout.Pipeline.Schedule = 2, plan.ZeroBubbleH1
		}},
		{"every axis, experts balanced by bias", 1, func(p *plan.Plan) {
			p.Model.Config = mixedModel()
			p.Layout.Degrees = mesh.Degrees{mesh.DP: 1, mesh.TP: 2, mesh.PP: 2, mesh.CP: 2, mesh.EP: 2}
			p.Layout.Zero.Stage, p.Layout.SequenceParallel, p.MicroBatch = plan.ShardParameters, true, 2
			p.Layout.Experts.Balance = plan.BiasBalance
		}},
		{"sgd, several epochs", 2, func(p *plan.Plan) { p.Optimizer.Name, p.Workload.GlobalBatch = plan.SGD, 64 }},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := over(smallPlan(t, 20), tc.ranks, 2)
			p.Checkpoint.Every = 6
			tc.edit(&p)
			whole := mustRun(t, p)
			r := newTrial(t, p)
			r.cache = whole.cache
			r.stopAt(3)
			if sum, err := r.run(t.Context()); err != nil || sum.Outcome != Interrupted || sum.Steps != 4 { // asked in the fourth step
				t.Fatalf("stopped: %+v, %v", sum, err)
			}
			r.kill(t, 14) // step 12 is saved, 13 and 14 are lost
			sum, err := r.resume(t.Context())
			if err != nil || sum.Outcome != Completed || sum.Steps != 20 {
				t.Fatalf("resumed: %+v, %v", sum, err)
			}
			sameState(t, whole, r, 20)
			if got := metricSteps(t, r); !slices.Equal(got, metricSteps(t, whole)) {
				t.Errorf("metrics have steps %v", got)
			}
			got, want := r.losses(), whole.losses()[12:]
			if got = got[len(got)-len(want):]; !slices.Equal(got, want) {
				t.Errorf("losses after the second resume %v, want %v", got, want)
			}
		})
	}
}

// stopAt asks the run to stop when it has reported a step.
func (r *trial) stopAt(step int) {
	stop := r.stop
	r.act = func(e Event) {
		if s, ok := e.(Step); ok && s.Step == step {
			close(stop)
		}
	}
}

// kill resumes a run and ends it without mercy in the middle of the step after the given one.
func (r *trial) kill(t *testing.T, step int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.act = func(e Event) {
		if s, ok := e.(Step); ok && s.Step == step {
			cancel()
		}
	}
	if _, err := r.resume(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("killed: %v", err)
	}
	r.act = nil
}

// TestResumeControl is the control of the test above: another position in the data, or a rate of
// another step, shows.
func TestResumeControl(t *testing.T) {
	p := over(smallPlan(t, 8), 1, 8)
	a := mustRun(t, p)
	p.Workload.Steps = 16 // the same first eight steps, at the rates of a longer schedule
	p.Checkpoint.Every = 8
	b := mustRun(t, p)
	if x, y := a.state(t, 8), b.state(t, 8); x.Tensors[0].Slices[0].Hash == y.Tensors[0].Slices[0].Hash {
		t.Error("another schedule gave the same tensors")
	}
}

func TestResumePassesOverDamage(t *testing.T) {
	p := over(smallPlan(t, 10), 2, 2)
	p.Checkpoint.Every = 4
	whole := mustRun(t, p)
	r := newTrial(t, p)
	r.stopAt(8) // asked in step 9
	if _, err := r.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	newest := filepath.Join(r.path, checkpointsDir, "step-00000009", "model-00000.safetensors")
	if err := os.Truncate(newest, 1000); err != nil {
		t.Fatal(err)
	}
	r.act = nil
	if _, err := r.resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	warnings := of[Warning](&r.journal)
	if len(warnings) != 1 || !strings.Contains(warnings[0].Err.Error(), newest+" is damaged") {
		t.Errorf("warnings %v", warnings)
	}
	if got := of[Started](&r.journal)[1].Resumed; got != 8 {
		t.Errorf("resumed after step %d, want 8", got)
	}
	sameState(t, whole, r, 10)
}

// TestResumeFinished holds that a run that is at its end stays as it is.
func TestResumeFinished(t *testing.T) {
	p := over(smallPlan(t, 3), 2, 2)
	r := mustRun(t, p)
	before := fmt.Sprint(metricSteps(t, r))
	sum, err := r.resume(t.Context())
	if err != nil || sum.Outcome != Completed || sum.Steps != 3 || sum.FinalLoss != r.losses()[2] {
		t.Errorf("resumed: %+v, %v", sum, err)
	}
	if first := of[Summary](&r.journal)[0]; sum != first {
		t.Errorf("resumed: %+v, the run ended with %+v", sum, first)
	}
	if err := os.Remove(filepath.Join(r.path, summaryFile)); err != nil {
		t.Fatal(err)
	}
	sum, err = r.resume(t.Context())
	if first := of[Summary](&r.journal)[0]; err != nil || sum.FinalLoss != first.FinalLoss || sum.ValLoss != first.ValLoss {
		t.Errorf("resumed without summary.json: %+v, %v; the run ended with %+v", sum, err, first)
	}
	if after := fmt.Sprint(metricSteps(t, r)); after != before {
		t.Errorf("metrics have steps %s, before %s", after, before)
	}
}

// replace edits a file.
func replace(t *testing.T, path, old, with string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = os.WriteFile(path, []byte(strings.Replace(string(text), old, with, 1)), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestResumeRefuses(t *testing.T) {
	edit := func(name, before, after string) func(*testing.T, *trial) {
		return func(t *testing.T, r *trial) {
			t.Helper()
			replace(t, filepath.Join(r.path, name), before, after)
		}
	}
	cases := []struct {
		name  string
		spoil func(*testing.T, *trial)
		want  string
	}{
		{"edited plan", edit(planFile, "steps: 4", "steps: 8"), "was saved under another plan"},
		{"broken plan", edit(planFile, "workload:", "wrkload:"), "unknown key; did you mean workload?"},
		{"no plan", func(_ *testing.T, r *trial) { os.Remove(filepath.Join(r.path, planFile)) }, "has checkpoints but no plan.yaml; put the plan back"},
		{"no tokenizer", func(_ *testing.T, r *trial) { os.Remove(filepath.Join(r.path, tokenizerFile)) }, "the run's tokenizer is missing"},
		{"damaged tokenizer", edit(tokenizerFile, "{", "["), "put the run's tokenizer back as it was"},
		{"no folder", func(_ *testing.T, r *trial) { os.RemoveAll(r.path) }, "there is no run"},
		{"all checkpoints damaged", func(t *testing.T, r *trial) {
			t.Helper()
			if err := os.Remove(filepath.Join(r.path, checkpointsDir, "step-00000002", "manifest.json")); err != nil {
				t.Fatal(err)
			}
		}, "there is none that is whole"},
		{"changed text", func(t *testing.T, r *trial) {
			t.Helper()
			replace(t, r.plan.Workload.Data[0].Path, "func", "type")
		}, "the corpus changed"},
		{"changed held-out text", func(t *testing.T, r *trial) {
			t.Helper()
			text, err := os.ReadFile(r.plan.Workload.Data[0].Path)
			if err != nil {
				t.Fatal(err)
			}
			copy(text[len(text)-20:], "something else, held") // the end of a single file is held out
			if err := os.WriteFile(r.plan.Workload.Data[0].Path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}, "the held-out text"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := over(smallPlan(t, 4), 1, 8)
			p.Checkpoint.Every = 2
			p.Model.Config.Vocab, p.Workload.Tokenizer = 300, plan.Tokenizer{Kind: plan.TrainedBPE, Vocab: 300}
			r := mustRun(t, p)
			if err := os.RemoveAll(filepath.Join(r.path, checkpointsDir, "step-00000004")); err != nil { // so that there is something to do
				t.Fatal(err)
			}
			tc.spoil(t, r)
			_, err := r.resume(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
