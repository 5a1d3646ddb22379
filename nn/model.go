package nn

import (
	"carve/model"
	"carve/tensor"
)

// Unit is a part of the model that is handled as one: its gradients become ready together, and state sharding
// gathers and frees it as a whole. The units are the embedding, every block, and the head with the final norm.
type Unit struct {
	Name   string
	Index  int // among the model's units
	Layers []Layer
	Params []*Param
	// States are what training changes beside the parameters, without gradients: the biases that balance experts. Every
	// rank that holds the unit has all of them, in full precision and in memory of their own.
	States []*Param
	// Value and Grad are the unit's range [Lo, Hi) of the model's flat buffers, or views of what a [Keeper] lends.
	Value, Grad *tensor.Tensor
	Lo, Hi      int
	// Uses are other units whose parameters the layers read as well: the embedding's, for a tied head.
	Uses []*Unit

	// Tied tells whether the unit is a token table that the head shares. On other stages than the embedding's the head's is
	// a copy, in a unit of the same name.
	Tied bool
	// Block tells whether the unit is a block of the model: what it keeps may be recomputed or offloaded.
	Block bool

	recompute Recompute
	weights   []*weight
	users     int // units whose layers add to the gradients: itself if it has layers, and those that use it
	pending   int // of them in this step
}

// done tells that a user has added its last gradients, and whether it was the last user.
func (u *Unit) done() bool {
	u.pending--
	return u.pending == 0
}

// settle clears the gradients that no backward of the step touched.
func (u *Unit) settle(r *Rank) {
	for _, w := range u.weights {
		w.sum(r)
	}
}

// bind makes the views of the unit and its parameters, which show nothing yet.
func (u *Unit) bind(a *tensor.Arena, d tensor.DType) {
	u.Value, u.Grad = a.NewView(tensor.Parameter, d, u.Hi-u.Lo), a.NewView(tensor.Gradient, d, u.Hi-u.Lo)
	for _, p := range u.Params {
		shape := p.Region.Shape()
		p.Value, p.Grad = a.NewView(tensor.Parameter, d, shape...), a.NewView(tensor.Gradient, d, shape...)
	}
	for _, w := range u.weights {
		w.bind(a, d)
	}
}

// AimValue makes the unit's values those of t from element at on, in the order of the parameters; a nil t takes them
// away. It is for keepers.
func (u *Unit) AimValue(t *tensor.Tensor, at int) {
	u.Value.Point(t, at)
	for _, p := range u.Params {
		p.Value.Point(t, at+p.Offset-u.Lo)
	}
	for _, w := range u.weights {
		w.value.Point(t, at+w.offset()-u.Lo)
	}
}

// AimGrad is AimValue for gradients. What t holds counts for nothing: the next gradients overwrite it.
func (u *Unit) AimGrad(t *tensor.Tensor, at int) {
	u.Grad.Point(t, at)
	for _, p := range u.Params {
		p.Grad.Point(t, at+p.Offset-u.Lo)
	}
	for _, w := range u.weights {
		w.grad.Point(t, at+w.offset()-u.Lo)
		w.stale = t != nil
	}
}

// Settle clears the gradients that nothing was added to since AimGrad, and tells whether anything was.
func (u *Unit) Settle(r *Rank) (added bool) {
	for _, w := range u.weights {
		added = added || !w.stale
	}
	if added {
		u.settle(r)
	}
	return added
}

// Model is this rank's part of a model: units in order, their parameters in flat buffers in the same order.
type Model struct {
	Config model.Config
	Units  []*Unit
	// Chunks are the runs of units that this rank runs without a break, in the order of [Options.Chunks].
	Chunks []*Chunk
	// Value and Grad hold all parameters and gradients, unit by unit without gaps; nil where they are lent.
	Value, Grad *tensor.Tensor

	params  []*Param
	mixing  []*MoE       // layers with experts, of this rank
	loads   []ExpertLoad // of all layers with experts, also of other ranks
	rows    rowShare     // how the tensor axis shares the experts' work
	longest int          // sequence that the tables of positions cover
}

// Params lists every parameter in the order of the flat buffers. A tied head is there once, as the embedding.
func (m *Model) Params() []*Param { return m.params }

// Init sets the parameters to their initial values, the same under every layout.
func (m *Model) Init(r *Rank) {
	for _, u := range m.Units {
		u.enter(r, Fill)
		for _, p := range u.Params {
			p.initialise(r)
		}
		u.leave(r, Fill)
	}
	for _, u := range m.Units {
		for _, p := range u.States {
			p.initialise(r)
		}
	}
}

// Begin starts a step: the gradients of the step before are forgotten. They are overwritten by the first
// micro-batch; until its backward is through, the flat gradient holds old numbers.
func (m *Model) Begin() {
	for _, u := range m.Units {
		u.pending = u.users
		for _, w := range u.weights {
			w.stale = m.Grad != nil // what is lent is stale when it is lent
		}
	}
}

// Ready is told of units whose gradients are complete.
type Ready interface {
	// Ready is called once a step for every unit of the model, by the backward that completes its gradients. Within a
	// chunk the order is from the last unit to the first, but for those that another chunk uses as well.
	Ready(unit int)
}

// Forward computes b.Loss and keeps what Backward needs. The model is one chunk.
func (m *Model) Forward(r *Rank, b *Batch) *Pass {
	_, p := m.Chunks[0].Forward(r, b, nil)
	return p
}

// Backward adds the micro-batch's gradients and ends the pass. For the last micro-batch of a step, ready is told of
// every unit; for others it is nil.
func (m *Model) Backward(r *Rank, p *Pass, ready Ready) { m.Chunks[0].Backward(r, nil, p, ready) }

// Evaluate computes b.Loss and keeps nothing. The model is one chunk.
func (m *Model) Evaluate(r *Rank, b *Batch) { m.Chunks[0].Evaluate(r, b, nil) }

// Logits computes the logits that follow token `row` of every sequence: [B V/TP] in full precision, this rank's part
// of the vocabulary. The caller owns the result.
func (m *Model) Logits(r *Rank, b *Batch, row int) *tensor.Tensor {
	mine := m.Chunks[0].hidden(r, b)
	defer mine.Free()
	x := r.gather(mine, b.rows())
	defer drop(x, mine)
	n := b.rows() / b.sequence()
	last := r.activation(n, x.Cols())
	defer last.Free()
	for i := range n {
		src, dst := x.RowRange(i*b.sequence()+row, i*b.sequence()+row+1), last.RowRange(i, i+1)
		r.Dev.Copy(dst, src)
		src.Free()
		dst.Free()
	}
	c := m.Chunks[0]
	head := c.Units[len(c.Units)-1]
	head.enter(r, Run)
	logits := c.head().Logits(r, last)
	head.leave(r, Run)
	return logits
}
