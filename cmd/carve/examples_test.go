package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carve/plan"
	"carve/train"

	"github.com/google/go-cmp/cmp"
)

// TestExamples runs every plan of examples/ for a few steps, and holds that it prints what want.txt has, that the modes of
// data parallelism give the same bytes, and that layouts give the same loss.
func TestExamples(t *testing.T) {
	plans, err := filepath.Glob("../../examples/*/*.yaml")
	if err != nil || len(plans) < 6 {
		t.Fatalf("%d plans, %v", len(plans), err)
	}
	t.Setenv("CARVE_CACHE", t.TempDir())
	runs := t.TempDir()
	for _, path := range plans {
		name := strings.TrimPrefix(path, "../../examples/")
		t.Run(name, func(t *testing.T) {
			got := trainExample(t, path, filepath.Join(runs, name))
			want, err := os.ReadFile(filepath.Join(filepath.Dir(path), "want.txt"))
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(want)) {
				if !strings.Contains(got, strings.TrimSpace(line)) {
					t.Errorf("%q is not in\n%s", line, got)
				}
			}
		})
	}
	const model = "checkpoints/step-00000003/model-00000.safetensors"
	bucketed, err := os.ReadFile(filepath.Join(runs, "data-parallel", "bucketed.yaml", model))
	if err != nil {
		t.Fatal(err)
	}
	naive, err := os.ReadFile(filepath.Join(runs, "data-parallel", "naive.yaml", model))
	if err != nil || !bytes.Equal(bucketed, naive) {
		t.Errorf("bucketed and naive reduction give different models, or none: %v", err)
	}
	const tolerance = 1e-5 // of fp32 sums in another order, after three steps
	one := exampleLoss(t, filepath.Join(runs, "layouts", "tensor.yaml"))
	for _, name := range []string{"pipeline", "context", "zero3", "all"} {
		if got := exampleLoss(t, filepath.Join(runs, "layouts", name+".yaml")); !(math.Abs(got/one-1) < tolerance) {
			t.Errorf("layouts/%s.yaml ends with loss %v, tensor.yaml with %v", name, got, one)
		}
	}
}

// exampleLoss is the last loss of a run.
func exampleLoss(t *testing.T, run string) float64 {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(run, "summary.json"))
	if err != nil {
		t.Fatal(err)
	}
	var summary struct {
		Loss float64 `json:"final_loss"`
	}
	if err := json.Unmarshal(text, &summary); err != nil {
		t.Fatal(err)
	}
	return summary.Loss
}

// trainExample trains a plan for three steps and returns what it prints. The source of Go takes long to prepare: where it
// is asked for, a folder of this repository stands in.
func trainExample(t *testing.T, path, out string) string {
	t.Helper()
	args := []string{"train", "--plan", path, "--steps", "3", "--cores", "1", "--no-sample", "--out", out}
	if strings.Contains(path, "/default/") {
		args = append(args, "--data", "../../nn")
	}
	var text bytes.Buffer
	if code := execute(args, strings.NewReader(""), &text, &text); code != exitDone {
		t.Fatalf("carve %v: exit code %d\n%s", args, code, &text)
	}
	return text.String()
}

// TestExampleIsTheDefault holds that the default run that is written out is the default run.
func TestExampleIsTheDefault(t *testing.T) {
	p, err := readPlan("../../examples/default/plan.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(plan.Encode(train.DefaultPlan(2))), string(plan.Encode(p))); diff != "" {
		t.Error(diff)
	}
}
