package nn

import (
	"fmt"

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
	// Context is how attention works over Groups.Context.
	Context Context

	// TensorKind is how layers split their features over Groups.Tensor.
	TensorKind TensorKind
	// SequenceParallel splits the rows of the residual stream over the tensor axis between the regions that it splits by
	// features: x given to and returned by every layer is then this rank's block of rows. No effect on a tensor axis of 1, or
	// where features are gathered.
	SequenceParallel bool
	// Chunks is the number of parts in which a product next to a collective of the tensor axis is computed, so that the
	// parts are under way while others are computed; 0 and 1 mean all at once. With sequence parallelism a part is one
	// rank's rows, whatever the number.
	Chunks int

	// Host takes what blocks keep for the backward; nil means that it stays in Arena.
	Host *Host
	// Keeper lends units what they need while they run; nil means that the model has it all.
	Keeper Keeper
	// Observer is shown what passes between the layers; nil means that nobody looks.
	Observer Observer

	flights   *flights   // spare ones; Build makes it
	later     *Pass      // that takes products which are put off; nil when none are
	inspector *Inspector // of what passes through; nil for none
}

// Groups are the rank's process groups, one for every set of axes that something is summed or exchanged over. A nil
// group has one member: layers then do not communicate.
type Groups struct {
	// Data joins the ranks with the same dense parameters and other tokens ([mesh.DenseData]), and ExpertData those with
	// the same experts and other tokens ([mesh.ExpertData]). Layers do not use them; the reduction of gradients does.
	Data, ExpertData *comm.Group
	// Tensor joins the ranks that share every layer's heads, feed-forward features and vocabulary ([mesh.TP]).
	Tensor *comm.Group
	// Context joins the ranks that share the positions of the same sequences ([mesh.CP]).
	Context *comm.Group
	// Expert joins the ranks that share the experts of a layer and have other sequences ([mesh.EP]).
	Expert *comm.Group
	// Pipeline joins the ranks that hold the stages of one pipeline ([mesh.PP]), by their coordinate.
	Pipeline *comm.Group
	// Twins joins the ranks of the tensor axis that hold the same key-value heads, where there are fewer heads than ranks.
	// [Build] makes it, when it knows the heads.
	Twins *comm.Group

	endpoint comm.Endpoint // of which Twins is made
}

// Shared is the group of the tensor axis whose ranks have other terms of the gradient of the same part of p, or nil where
// there is none: the sum over it completes the gradient.
func (g Groups) Shared(p *Param) *comm.Group {
	switch {
	case !p.Terms.Has(mesh.TP):
		return nil
	case p.Spec[mesh.TP].Kind == mesh.Sharded:
		return g.Twins
	}
	return g.Tensor
}

// joinTwins makes the group of the copies of key-value heads on a tensor axis with more ranks than heads.
func (g *Groups) joinTwins(keyHeads int) error {
	tp := degree(g.Tensor)
	if tp <= keyHeads || g.Twins != nil {
		return nil
	}
	copies := tp / keyHeads
	if g.endpoint == nil {
		return fmt.Errorf("nn: tensor degree %d needs a group of the %d ranks with the same of %d key-value heads; make the groups with JoinGroups", tp, copies, keyHeads)
	}
	first := g.Tensor.Rank() / copies * copies
	var err error
	g.Twins, err = g.endpoint.Group("twins", g.Tensor.Ranks()[first:first+copies])
	return err
}

// Join makes another group of ranks that the rank is in, by the endpoint that made the others; nil for the rank alone.
func (g *Groups) Join(name string, ranks []int) (*comm.Group, error) {
	switch {
	case len(ranks) == 1:
		return nil, nil
	case g.endpoint == nil:
		return nil, fmt.Errorf("nn: group %q of ranks %v cannot be made; make the other groups with JoinGroups", name, ranks)
	}
	return g.endpoint.Group(name, ranks)
}

// JoinGroups makes the groups of a rank on a mesh; those of one member are nil.
func JoinGroups(e comm.Endpoint, m mesh.Mesh) (Groups, error) {
	g := Groups{endpoint: e}
	err := join(e, m, []membership{
		{&g.Data, "data", mesh.DenseData},
		{&g.ExpertData, "expert-data", mesh.ExpertData},
		{&g.Tensor, "tensor", mesh.Of(mesh.TP)},
		{&g.Context, "context", mesh.Of(mesh.CP)},
		{&g.Expert, "expert", mesh.Of(mesh.EP)},
		{&g.Pipeline, "pipeline", mesh.Of(mesh.PP)},
	})
	return g, err
}

// Second is g with groups of its own, of the same ranks, wherever layers communicate: for a goroutine of the rank that
// runs a backward while another one runs a forward. Operations of one group would have to be called in the same order on
// every rank, and those of two goroutines are not.
func (g Groups) Second(m mesh.Mesh) (Groups, error) {
	err := join(g.endpoint, m, []membership{
		{&g.Tensor, "tensor of backward", mesh.Of(mesh.TP)},
		{&g.Context, "context of backward", mesh.Of(mesh.CP)},
		{&g.Expert, "expert of backward", mesh.Of(mesh.EP)},
	})
	return g, err
}

// membership is a group that a rank joins.
type membership struct {
	group **comm.Group
	name  string
	axes  mesh.Axes
}

func join(e comm.Endpoint, m mesh.Mesh, all []membership) (err error) {
	for _, one := range all {
		if m.Size(one.axes) == 1 {
			continue
		}
		if *one.group, err = e.Group(one.name, m.Group(e.Rank(), one.axes)); err != nil {
			return err
		}
	}
	return nil
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
// The product runs at once, or, within [Chunk.BackwardInput], is put off until [Chunk.BackwardWeight]; nothing
// that a layer does after the call depends on when that is.
func (r *Rank) WeightGrad(l *Linear, dy, x *tensor.Tensor) {
	g := weightGrad{linear: l, dy: dy, x: x}
	if p := r.later; p != nil {
		g.unit = p.unit
		p.later = append(p.later, g)
		return
	}
	g.run(r)
}

// WeightGradDone gives back tensors that the operands of earlier calls of WeightGrad are views of, when those have run.
func (r *Rank) WeightGradDone(dy, x *tensor.Tensor) { r.WeightGrad(nil, dy, x) }

// WeightGradKeep is WeightGrad for a dy that stays the caller's and may change after the call: the gradient of the
// residual stream, which grows in place. It takes over x.
func (r *Rank) WeightGradKeep(l *Linear, dy, x *tensor.Tensor) {
	if r.later == nil {
		l.weightGrad(r, dy, x)
		x.Free()
		return
	}
	kept := r.activation(dy.Rows(), dy.Cols())
	r.Dev.Copy(kept, dy)
	r.WeightGrad(l, kept, x)
}
