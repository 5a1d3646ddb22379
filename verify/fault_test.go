package verify_test

import (
	"slices"
	"strings"
	"testing"

	"carve/mesh"
	"carve/plan"
	"carve/verify"
)

// TestFaultsAreNamed plants every fault into layouts where it has a place: it must be caught, and named by what it is and where.
func TestFaultsAreNamed(t *testing.T) {
	if racing {
		plant(t, faulty, "{dp: 2, cp: 3, zero: {stage: 2}}")
		return
	}
	for _, layout := range []string{
		"{dp: 1}",
		"{dp: 2, zero: {stage: 0}}",
		"{dp: 3, zero: {stage: 0, reduce: naive}}",
		"{dp: 3, zero: {stage: 0, reduce: server}}",
		"{dp: 3, zero: {stage: 1, bucket: 1KiB}}",
		"{dp: 2, zero: {stage: 1, ownership: tensor, bucket: 1KiB}}",
		"{dp: 3, zero: {stage: 2}}",
		"{dp: 6, zero: {stage: 2, hybrid: 2}}",
		"{dp: 2, tp: 2, zero: {stage: 3}}",
		"{dp: 2, tp: 2, sequence_parallel: true}",
		"{dp: 2, tp: 4}",
		"{cp: 3}",
		"{dp: 2, cp: 3, context: {balance: contiguous}}",
		"{dp: 2, cp: 3, tp: 2, zero: {stage: 2}}",
		"{cp: 2, tp: 2, context: {kind: all-gather}}",
		"{cp: 2, context: {kind: all-to-all}}",
		"{dp: 2, pp: 2, zero: {stage: 1}, pipeline: {schedule: zb-h1}}",
		"{dp: 3, pp: 2, zero: {stage: 3}, pipeline: {schedule: zb-v}}",
		"{dp: 2, pp: 2, pipeline: {schedule: dualpipe}}",
	} {
		plant(t, faulty, layout)
	}
	for _, layout := range []string{"{ep: 2}", "{dp: 2, ep: 2, zero: {stage: 3}}", "{ep: 2, cp: 3, tp: 2}"} {
		plant(t, mixture, layout)
	}
}

// plant plants every fault that has a place in a layout.
func plant(t *testing.T, model, layout string) {
	p, err := plan.Parse([]byte(model+"layout: "+layout+"\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Layout.Pipeline.Schedule == plan.DualPipe {
		p.Workload.GlobalBatch = 8
	}
	for _, fault := range verify.Faults() {
		if fault.Place(p) != nil {
			continue
		}
		t.Run(layout+"/"+fault.String(), func(t *testing.T) {
			r, err := verify.Run(t.Context(), p, verify.Options{Fault: fault, Steps: 2})
			if err != nil {
				t.Fatal(err)
			}
			if r.OK() || r.Failure != nil {
				t.Fatalf("not caught: %+v, %v", r.Worst(), r.Failure)
			}
			if d := r.Diagnosis; d.Fault != fault || !blames(p, fault, d.Rank) {
				t.Errorf("named %v of rank %d: %v", d.Fault, d.Rank, r.Verdict())
			}
		})
	}
}

// faulty is llama with fewer layers.
var faulty = strings.NewReplacer("layers: 8", "layers: 4", "sequence: 16, global_batch: 16", "sequence: 12, global_batch: 6").Replace(llama)

// mixture is a model with experts that are balanced by a loss.
const mixture = `
version: 1
model: {architecture: mixtral, layers: 2, hidden: 16, heads: 4, kv_heads: 2, head_dim: 4, ffn: 24, vocab: 259, context: 64, init_std: 0.3,
  experts: {count: 4, per_token: 2, ffn: 10, balance: loss, loss_coefficient: 0.02}}
workload: {sequence: 12, global_batch: 4, steps: 3}
cluster: {preset: this-machine}
micro_batch: 1
precision: fp64
`

// blames tells whether a rank is one that the fault was planted in: the last of the world, its group, or its data rank.
func blames(p plan.Plan, f verify.Fault, rank int) bool {
	m, err := p.Layout.Mesh()
	if err != nil {
		return false
	}
	last := m.World() - 1
	among := []int{last}
	switch f {
	case verify.WrongGroup:
		among = m.Group(last, mesh.DenseData)
	case verify.SwappedRingStep:
		among = m.Group(last, mesh.Of(mesh.CP, mesh.TP, mesh.PP))
	case verify.LostMicroBatch:
		among = m.Group(last, mesh.Of(mesh.CP, mesh.TP, mesh.PP))
	case verify.NoFault, verify.DroppedReduction, verify.DoubledReduction, verify.StaleParameter:
	}
	return slices.Contains(among, rank)
}
