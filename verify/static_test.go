package verify_test

import (
	"testing"

	"carve/plan"
	"carve/verify"

	"github.com/google/go-cmp/cmp"
)

// TestCheckLarge proves a layout of 16,384 ranks with 16 stages and 512 micro-batches.
func TestCheckLarge(t *testing.T) {
	p, err := plan.Load([]byte(`
version: 1
model: llama-3.1-405b
workload: {sequence: 8192, global_batch: 32768, steps: 1, tokenizer: {bpe: 1000}}
cluster: {preset: this-machine}
micro_batch: 1
layout: {dp: 64, tp: 8, pp: 16, cp: 2, sequence_parallel: true, pipeline: {schedule: 1f1b}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := verify.Check(p)
	if s.Fault != nil || !s.DeadlockFree || p.Layout.World() != 16384 || p.MicroBatches() != 512 {
		t.Fatalf("%+v with %d ranks and %d micro-batches", s, p.Layout.World(), p.MicroBatches())
	}
	want := []int{16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1} // p - r, Narayanan et al. 2021
	if diff := cmp.Diff(want, s.PeakInFlight); diff != "" {
		t.Error(diff)
	}
	if want := 512 * (2*16 + 4*15); s.Actions != want { // F and B of every stage, four messages at every seam
		t.Errorf("%d actions, want %d", s.Actions, want)
	}
}
