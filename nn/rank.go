package nn

import (
	"carve/comm"
	"carve/mesh"
	"carve/tensor"
)

// Rank is where a layer runs: the device, the memory and the neighbours of one rank. One goroutine at a time uses
// it, the one that holds the rank's compute token.
type Rank struct {
	Dev    tensor.Device
	Arena  *tensor.Arena
	Mesh   mesh.Mesh        // the zero Mesh is that of one rank
	At     mesh.Coordinates // of this rank
	Groups Groups
	Token  *comm.Token  // nil where nothing runs beside the layers
	DType  tensor.DType // of parameters, activations and gradients
	Seed   uint64       // of the initial weights
}

// Groups are the rank's process groups. A nil group has one member: layers then do not communicate.
type Groups struct {
	// Data joins the ranks with the same dense parameters and other samples ([mesh.DenseData]). Layers do not use it;
	// the reduction of gradients does.
	Data *comm.Group
	// Tensor joins the ranks that share every layer's heads, feed-forward features and vocabulary ([mesh.TP]).
	Tensor *comm.Group
}

// JoinGroups makes the groups of a rank on a mesh; those of one member are nil.
func JoinGroups(e comm.Endpoint, m mesh.Mesh) (g Groups, err error) {
	join := func(name string, axes mesh.Axes) *comm.Group {
		if err != nil || m.Size(axes) == 1 {
			return nil
		}
		var joined *comm.Group
		joined, err = e.Group(name, m.Group(e.Rank(), axes))
		return joined
	}
	g.Data, g.Tensor = join("data", mesh.DenseData), join("tensor", mesh.Of(mesh.TP))
	return g, err
}

// yield lets the rank's other goroutines compute, such as a bucket's reduction.
func (r *Rank) yield() {
	if r.Token != nil {
		r.Token.Yield()
	}
}

// activation makes a tensor of the rank's dtype that lives no longer than the micro-batch.
func (r *Rank) activation(dims ...int) *tensor.Tensor {
	return r.Arena.New(tensor.Activation, r.DType, dims...)
}

// statistics makes a tensor for what is kept in full precision: log-sum-exps, means, deviations.
func (r *Rank) statistics(dims ...int) *tensor.Tensor {
	return r.Arena.New(tensor.Activation, wide(r.DType), dims...)
}

// wide is the dtype in which numbers of dtype d are accumulated.
func wide(d tensor.DType) tensor.DType {
	if d == tensor.FP64 {
		return tensor.FP64
	}
	return tensor.FP32
}

// degree is the size of a group; a nil group has one member.
func degree(g *comm.Group) int {
	if g == nil {
		return 1
	}
	return g.Size()
}

// leads reports whether the rank is the one of the group that adds what must be counted once.
func leads(g *comm.Group) bool { return g == nil || g.Rank() == 0 }

// reduce combines t over the group in place; alone it does nothing.
func reduce(g *comm.Group, t *tensor.Tensor, op tensor.ReduceOp) {
	if degree(g) > 1 {
		Must(g.AllReduce(t, op))
	}
}

// WeightGrad is the one seam through which the gradients of matrices are made: grad += dyᵀ·x, and the bias's
// grad += the column sums of dy. It takes over dy and x.
//
// The product runs at once. A schedule with separate weight-gradient actions keeps (l, dy, x) instead and runs
// it later; nothing that a layer does after the call depends on when that is.
func (r *Rank) WeightGrad(l *Linear, dy, x *tensor.Tensor) {
	l.weightGrad(r, dy, x)
	dy.Free()
	x.Free()
}

// WeightGradKeep is WeightGrad for a dy that stays the caller's and may change after the call: the gradient of the
// residual stream, which grows in place. Whoever runs the product later copies dy first. It takes over x.
func (r *Rank) WeightGradKeep(l *Linear, dy, x *tensor.Tensor) {
	l.weightGrad(r, dy, x)
	x.Free()
}
