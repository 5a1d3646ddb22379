package verify

import (
	"fmt"
	"slices"

	"carve/mesh"
	"carve/parallel"
	"carve/plan"
	"carve/schedule"
)

// Static is what is proved of a plan at its full size without running it.
type Static struct {
	// DeadlockFree tells that the pipeline's program is whole and that its ranks never wait for each other.
	DeadlockFree bool
	PeakInFlight []int // by pipeline rank: micro-batches times chunks whose activations are kept
	Actions      int   // of all ranks of one pipeline
	Fault        error // the first thing that is wrong, or nil
}

// String sums it up.
func (s Static) String() string {
	if s.Fault != nil {
		return s.Fault.Error()
	}
	return fmt.Sprintf("%d actions, no deadlock, at most %d passes in flight on a rank, every rank once in the groups of every axis",
		s.Actions, slices.Max(append([]int{0}, s.PeakInFlight...)))
}

// Check proves what depends on a plan's own degrees and number of micro-batches: that every dependency of the pipeline's
// schedule is met, sends and receives pair up and no ranks wait in a circle ([schedule.Check]), and that the groups of
// every set of axes cover the world's ranks once each. It takes time linear in ranks and actions.
func Check(p plan.Plan) (s Static) {
	program, err := parallel.Program(p)
	if err != nil {
		s.Fault = err
		return s
	}
	report, err := schedule.Check(program)
	s = Static{report.DeadlockFree, report.PeakInFlight, report.Actions, err}
	if err == nil {
		s.Fault = checkGroups(p.Layout)
	}
	return s
}

// checkGroups holds that groups partition the world, and that each rank is where its group says.
func checkGroups(l plan.Layout) error {
	m, err := l.Mesh()
	if err != nil {
		return err
	}
	for _, set := range []mesh.Axes{
		mesh.DenseData, mesh.ExpertData, mesh.Samples, mesh.Of(mesh.TP), mesh.Of(mesh.CP), mesh.Of(mesh.EP), mesh.Of(mesh.PP), mesh.Everything,
	} {
		seen := make([]bool, m.World())
		for _, group := range m.Groups(set) {
			for i, rank := range group {
				if seen[rank] || m.Index(rank, set) != i {
					return fmt.Errorf("verify: rank %d is in two groups over %v, or not at its place %d; the mesh is wrong", rank, set, i)
				}
				seen[rank] = true
			}
		}
		for rank, ok := range seen {
			if !ok {
				return fmt.Errorf("verify: rank %d is in no group over %v; the mesh is wrong", rank, set)
			}
		}
	}
	return nil
}
