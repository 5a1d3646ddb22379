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
	for _, layout := range []string{
		"{dp: 1}",
		"{dp: 2}",
		"{dp: 3, zero: {stage: 0, reduce: naive}}",
		"{dp: 2, tp: 2, sequence_parallel: true}",
		"{dp: 2, tp: 4}",
		"{cp: 3}",
		"{dp: 2, cp: 3, context: {balance: contiguous}}",
		"{cp: 2, tp: 2, context: {kind: all-gather}}",
		"{cp: 2, context: {kind: all-to-all}}",
	} {
		p := read(t, faulty, layout)
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
				d := r.Diagnosis
				if d.Fault != fault {
					t.Errorf("named %v", d.Fault)
				}
				if !blames(p, fault, d.Rank) {
					t.Errorf("blames rank %d", d.Rank)
				}
			})
		}
	}
}

// faulty is llama with fewer layers.
var faulty = strings.Replace(strings.Replace(llama, "layers: 8", "layers: 2", 1), "sequence: 16, global_batch: 16", "sequence: 12, global_batch: 6", 1)

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
		among = m.Group(last, mesh.Of(mesh.CP, mesh.TP))
	case verify.LostMicroBatch:
		among = m.Group(last, mesh.Of(mesh.CP, mesh.TP, mesh.PP))
	case verify.NoFault, verify.DroppedReduction, verify.DoubledReduction, verify.StaleParameter:
	}
	return slices.Contains(among, rank)
}
