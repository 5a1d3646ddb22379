package optim

import (
	"math"

	"carve/comm"
	"carve/mesh"
	"carve/nn"
	"carve/tensor"
)

// Norm computes the global norm of the reduced gradient: of the one gradient that the whole job has, every parameter
// counted once, however it is split or copied.
type Norm struct {
	r      *nn.Rank
	group  *comm.Group      // the ranks that hold other parts
	counts []*tensor.Tensor // runs of the flat gradient that this rank counts
	sum    *tensor.Tensor   // [1], fp64
}

// NewNorm makes the norm of a model's gradient.
func NewNorm(r *nn.Rank, m *nn.Model) *Norm {
	n := &Norm{r: r, group: r.Groups.Tensor, sum: r.Arena.New(tensor.Communication, tensor.FP64, 1)}
	for _, s := range spansOf(m.Params(), func(p *nn.Param) bool { return counts(r, p) }, sameRun) {
		n.counts = append(n.counts, m.Grad.Slice(s.lo, s.hi))
	}
	return n
}

// counts tells whether this rank counts a parameter: it is the first of those that hold the same part, on the axes
// along which not every rank counts for itself.
func counts(r *nn.Rank, p *nn.Param) bool {
	if r.Mesh == (mesh.Mesh{}) {
		return true
	}
	at := r.At
	for _, a := range mesh.All {
		if mesh.DenseData.Has(a) {
			at[a] = 0
		}
	}
	return p.Spec.Owns(r.Mesh, at)
}

// Of is the norm. Every rank gets the same number; the ranks of a model call it together.
func (n *Norm) Of() float64 {
	var sum float64
	for _, t := range n.counts {
		sum += n.r.Dev.SquaredNorm(t)
	}
	if n.group != nil && n.group.Size() > 1 {
		n.r.Dev.Fill(n.sum, sum)
		nn.Must(n.group.AllReduce(n.sum, tensor.Sum))
		if !n.sum.Meta() {
			sum = n.sum.F64()[0]
		}
	}
	return math.Sqrt(sum)
}

// ClipScale is the factor that brings a gradient of the given norm down to the limit: 1 when it is below, or when
// the limit is 0 (no clipping).
func ClipScale(norm, limit float64) float64 {
	if limit <= 0 || !(norm > limit) {
		return 1
	}
	return limit / norm
}
