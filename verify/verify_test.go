package verify_test

import (
	"strings"
	"testing"

	"carve/plan"
	"carve/verify"
)

// llama is a plan whose model has every kind of parameter that layouts treat differently.
const llama = `
version: 1
model: {architecture: llama, layers: 8, hidden: 16, heads: 4, kv_heads: 2, head_dim: 4, ffn: 24, vocab: 259, context: 64, init_std: 0.3}
workload: {sequence: 16, global_batch: 16, steps: 3}
cluster: {preset: this-machine}
micro_batch: 1
precision: fp64
`

// read is the plan of a model with a layout.
func read(t testing.TB, model, layout string) plan.Plan {
	t.Helper()
	p, err := plan.Load([]byte(model+"layout: "+layout+"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func run(t *testing.T, p plan.Plan) *verify.Report {
	t.Helper()
	r, err := verify.Run(t.Context(), p, verify.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEqual proves a layout of every axis.
func TestEqual(t *testing.T) {
	for _, layout := range few([]string{
		"{dp: 2, tp: 2, pp: 2, sequence_parallel: true, pipeline: {schedule: zb-v}}",
		"{dp: 1}",
		"{tp: 4}", // more ranks than key-value heads
		"{pp: 3, pipeline: {schedule: 1f1b, stages: [3, 5, 0]}}",
		"{dp: 2, tp: 2, cp: 2, sequence_parallel: true}",
	}) {
		t.Run(layout, func(t *testing.T) {
			r := run(t, read(t, llama, layout))
			if w := r.Worst(); !r.OK() {
				t.Errorf("failure %v; %v %s of step %d differs by %.1e on rank %d", r.Failure, w.Kind, w.Name, w.Step, w.Error, w.Rank)
			}
		})
	}
}

// TestPacked proves kinds of the context axis on packed documents.
func TestPacked(t *testing.T) {
	packed := strings.Replace(llama, "sequence: 16", "sequence: 16, packing: documents", 1)
	for _, layout := range few([]string{
		"{cp: 4}",
		"{cp: 2, tp: 2, context: {kind: all-gather, balance: contiguous}}",
		"{dp: 2, cp: 2, context: {kind: all-to-all}}",
	}) {
		if r := run(t, read(t, packed, layout)); !r.OK() {
			w := r.Worst()
			t.Errorf("%s: failure %v; %v %s of step %d differs by %.1e on rank %d", layout, r.Failure, w.Kind, w.Name, w.Step, w.Error, w.Rank)
		}
	}
}

// TestFiftySteps trains layouts in fp32 for fifty steps: losses stay with those of one rank.
func TestFiftySteps(t *testing.T) {
	const tolerance = 1e-4
	small := strings.NewReplacer("layers: 8", "layers: 2", "sequence: 16, global_batch: 16", "sequence: 8, global_batch: 4", "fp64", "fp32").Replace(llama)
	for _, layout := range few([]string{
		"{dp: 2, tp: 2, zero: {stage: 3}, sequence_parallel: true}",
		"{cp: 2, pp: 2}",
	}) {
		r, err := verify.Run(t.Context(), read(t, small, layout), verify.Options{Steps: 50})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Verdict(); err != nil || r.Rounded.Error > tolerance {
			t.Errorf("%s: %v; %v", layout, err, r.Rounded)
		}
	}
}

// few is the first of many cases under the race detector.
func few[T any](cases []T) []T {
	if racing {
		return cases[:1]
	}
	return cases
}
