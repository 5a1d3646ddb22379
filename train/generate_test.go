package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"carve/plan"
)

// written is what a run's model writes.
func written(t *testing.T, r *trial, change func(*GenerateOptions)) (string, error) {
	t.Helper()
	o := GenerateOptions{Run: r.path, Prompt: "func f", Tokens: 60, Cores: 1, Sampling: Sampling{Seed: 1, Temperature: 0.8, TopK: 10}}
	change(&o)
	var b strings.Builder
	err := Generate(t.Context(), o, func(text string) error {
		b.WriteString(text)
		return nil
	})
	return b.String(), err
}

func TestGenerate(t *testing.T) {
	p := over(smallPlan(t, 150), 1, 8)
	p.Optimizer.LearningRate = 1e-2
	r := mustRun(t, p)
	first, err := written(t, r, func(*GenerateOptions) {})
	if err != nil {
		t.Fatal(err)
	}
	if !utf8.ValidString(first) || len(first) < 40 || !strings.Contains(first, "int") {
		t.Errorf("the model writes %q", first)
	}
	same, err := written(t, r, func(o *GenerateOptions) { o.Cores = 2 })
	if err != nil || same != first {
		t.Errorf("the same seed on two cores writes %q, %v; before %q", same, err, first)
	}
	other, err := written(t, r, func(o *GenerateOptions) { o.Sampling.Seed = 2 })
	if err != nil || other == first {
		t.Errorf("another seed writes %q, %v", other, err)
	}
	for name, change := range map[string]func(*GenerateOptions){
		"no prompt":                func(o *GenerateOptions) { o.Prompt = "" },
		"prompt beyond a sequence": func(o *GenerateOptions) { o.Prompt = strings.Repeat("func f1(x int) ", 30) },
		"nothing":                  func(o *GenerateOptions) { o.Tokens = 0 },
	} {
		if _, err := written(t, r, change); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGenerateFromDTypes holds that models of every precision can write.
func TestGenerateFromDTypes(t *testing.T) {
	for _, precision := range []plan.Precision{plan.BF16, plan.FP64} {
		p := over(smallPlan(t, 2), 1, 8)
		p.Precision = precision
		if _, err := written(t, mustRun(t, p), func(*GenerateOptions) {}); err != nil {
			t.Errorf("%v: %v", precision, err)
		}
	}
}

func TestGenerateRefuses(t *testing.T) {
	p := over(smallPlan(t, 2), 1, 8)
	p.Model.Config.Vocab, p.Workload.Tokenizer = 300, plan.Tokenizer{Kind: plan.TrainedBPE, Vocab: 300}
	r := mustRun(t, p)
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	err := Generate(cancelled, GenerateOptions{Run: r.path, Tokens: 5}, func(string) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	full := errors.New("the pipe is closed")
	err = Generate(t.Context(), GenerateOptions{Run: r.path, Tokens: 5}, func(string) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("closed pipe: %v", err)
	}
	cases := []struct {
		name   string
		change func(*GenerateOptions)
		want   string
	}{
		{"no run", func(o *GenerateOptions) { o.Run = filepath.Join(r.path, "..", "nothing") }, "there is no run"},
		{"negative", func(o *GenerateOptions) { o.Tokens = -1 }, "use 0 or more"},
		{"edited plan", func(*GenerateOptions) {
			replace(t, filepath.Join(r.path, planFile), "ffn: 48", "ffn: 64")
		}, "plan.yaml was edited since: put it back as it was"},
		{"smaller vocabulary", func(*GenerateOptions) {
			replace(t, filepath.Join(r.path, planFile), "vocab: 300", "vocab: 280")
			replace(t, filepath.Join(r.path, planFile), "bpe: 300", "bpe: 280")
		}, "tokenizer.json has 300 tokens and the model of the plan 280; put both back"},
		{"no checkpoint", func(*GenerateOptions) {
			replace(t, filepath.Join(r.path, planFile), "vocab: 280", "vocab: 300")
			if err := os.RemoveAll(filepath.Join(r.path, checkpointsDir)); err != nil {
				t.Fatal(err)
			}
		}, "there is none that is whole in " + filepath.Join(r.path, checkpointsDir) + "; make one with carve train --resume " + r.path},
		{"bad tokenizer", func(*GenerateOptions) {
			if err := os.WriteFile(filepath.Join(r.path, tokenizerFile), []byte("{"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "put the run's tokenizer back as it was"},
		{"no tokenizer", func(*GenerateOptions) { os.Remove(filepath.Join(r.path, tokenizerFile)) }, "the run's tokenizer is missing"},
	}
	for _, tc := range cases {
		_, err := written(t, r, tc.change)
		if fault := (*InputError)(nil); !errors.As(err, &fault) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %q", tc.name, err, tc.want)
		}
	}
}
