package verify

import (
	"errors"
	"testing"
	"time"

	"carve/comm"
	"carve/plan"
)

// TestHangIsNamed lets one rank leave out the sums of a step: the others wait, and the proof ends with the name of who does not come.
func TestHangIsNamed(t *testing.T) {
	p, err := plan.Load([]byte(`
version: 1
model: {architecture: llama, layers: 2, hidden: 16, heads: 4, kv_heads: 2, head_dim: 4, ffn: 24, vocab: 259, context: 64}
workload: {sequence: 8, global_batch: 3, steps: 1}
cluster: {preset: this-machine}
micro_batch: 1
layout: {dp: 3, zero: {stage: 0}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	p = Exact(p)
	w := world{
		plan: p, samples: newSamples(p, 1), steps: 1, visitor: &losses{steps: make([]float64, 1)}, limit: 2 * time.Second,
		plant: &planter{skip: victimAlone, victim: 2},
	}
	err = w.run(t.Context())
	var hang *comm.HangError
	if !errors.As(err, &hang) || hang.Hang.Culprit != 2 {
		t.Errorf("the end is %v, want a hang for which rank 2 is to blame", err)
	}
}
