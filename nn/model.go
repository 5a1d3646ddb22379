package nn

import (
	"fmt"
	"slices"

	"carve/model"
	"carve/tensor"
)

// Unit is a part of the model that is handled as one: its gradients become ready together, and state sharding
// gathers and frees it as a whole. The units are the embedding, every block, and the head with the final norm.
type Unit struct {
	Name   string
	Layers []Layer
	Params []*Param
	// Value and Grad are the unit's range [Lo, Hi) of the model's flat buffers.
	Value, Grad *tensor.Tensor
	Lo, Hi      int

	weights []*weight
}

// settle clears the gradients that no backward of the step touched.
func (u *Unit) settle(r *Rank) {
	for _, w := range u.weights {
		w.sum(r)
	}
}

// Model is this rank's part of a model: units in order, their parameters in flat buffers in the same order.
type Model struct {
	Config model.Config
	Units  []*Unit
	// Value and Grad hold all parameters and gradients, unit by unit without gaps.
	Value, Grad *tensor.Tensor

	params  []*Param
	longest int     // sequence that the tables of positions cover
	passes  []*Pass // spare ones
}

// Params lists every parameter in the order of the flat buffers. A tied head is there once, as the embedding.
func (m *Model) Params() []*Param { return m.params }

// Init sets the parameters to their initial values, the same under every layout.
func (m *Model) Init(r *Rank) {
	for _, p := range m.params {
		p.initialise(r)
	}
}

// Begin starts a step: the gradients of the step before are forgotten. They are overwritten by the first
// micro-batch; until its backward is through, the flat gradient holds old numbers.
func (m *Model) Begin() {
	for _, u := range m.Units {
		for _, w := range u.weights {
			w.stale = true
		}
	}
}

// Pass is a micro-batch under way: what its forward left for its backward.
type Pass struct {
	model *Model
	saved []Saved // of every layer in order
}

// Free gives up a pass without a backward.
func (p *Pass) Free() {
	for _, s := range p.saved {
		s.Free()
	}
	p.recycle()
}

// recycle keeps the pass for another micro-batch.
func (p *Pass) recycle() {
	p.saved = p.saved[:0]
	p.model.passes = append(p.model.passes, p)
}

// pass takes a spare pass or makes one.
func (m *Model) pass() *Pass {
	last := len(m.passes) - 1
	if last < 0 {
		return &Pass{model: m}
	}
	p := m.passes[last]
	m.passes = m.passes[:last]
	return p
}

// begin readies a batch for a forward.
func (m *Model) begin(b *Batch, mode Mode) {
	if b.sequence() > m.longest {
		panic(fmt.Sprintf("nn: a sequence of %d tokens for a model built for %d", b.sequence(), m.longest))
	}
	b.Mode = mode
}

// Ready is told of units whose gradients are complete.
type Ready interface {
	// Ready is called by the last backward of a step, from the last unit to the first. The gradients of the units from
	// this one on are complete.
	Ready(unit int)
}

// Forward computes b.Loss and keeps what Backward needs.
func (m *Model) Forward(r *Rank, b *Batch) *Pass {
	m.begin(b, Train)
	p := m.pass()
	var x *tensor.Tensor
	for _, u := range m.Units {
		for _, l := range u.Layers {
			var s Saved
			x, s = l.Forward(r, b, x)
			p.saved = append(p.saved, s)
			r.yield()
		}
	}
	return p
}

// Backward adds the micro-batch's gradients and ends the pass. For the last micro-batch of a step, ready is told of
// every unit; for others it is nil.
func (m *Model) Backward(r *Rank, p *Pass, ready Ready) {
	var dx *tensor.Tensor
	for i, u := range slices.Backward(m.Units) {
		for _, l := range slices.Backward(u.Layers) {
			last := len(p.saved) - 1
			s := p.saved[last]
			p.saved = p.saved[:last]
			dx = l.Backward(r, dx, s)
			r.yield()
		}
		if ready != nil {
			u.settle(r)
			ready.Ready(i)
		}
	}
	p.recycle()
}

// Evaluate computes b.Loss and keeps nothing.
func (m *Model) Evaluate(r *Rank, b *Batch) {
	x := m.hidden(r, b)
	_, _ = m.head().Forward(r, b, x)
}

// hidden is the input of the head, [T H].
func (m *Model) hidden(r *Rank, b *Batch) (x *tensor.Tensor) {
	m.begin(b, Evaluate)
	for _, u := range m.Units[:len(m.Units)-1] {
		for _, l := range u.Layers {
			x, _ = l.Forward(r, b, x)
			r.yield()
		}
	}
	return x
}

// head is the last layer.
func (m *Model) head() *Head {
	layers := m.Units[len(m.Units)-1].Layers
	return layers[len(layers)-1].(*Head)
}

// Logits computes the logits that follow token `row` of every sequence: [B V/TP] in full precision, this rank's part
// of the vocabulary. The caller owns the result.
func (m *Model) Logits(r *Rank, b *Batch, row int) *tensor.Tensor {
	x := m.hidden(r, b)
	defer x.Free()
	n := b.rows() / b.sequence()
	last := r.activation(n, x.Cols())
	defer last.Free()
	for i := range n {
		src, dst := x.RowRange(i*b.sequence()+row, i*b.sequence()+row+1), last.RowRange(i, i+1)
		r.Dev.Copy(dst, src)
		src.Free()
		dst.Free()
	}
	return m.head().Logits(r, last)
}
