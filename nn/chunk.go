package nn

import (
	"fmt"
	"slices"

	"carve/tensor"
)

// Chunk is a run of a model's units that a rank runs without a break: the whole model, or one stage of a pipeline.
type Chunk struct {
	Units []*Unit
	// First and Last tell whether the chunk has the embedding, and the head.
	First, Last bool

	model  *Model
	spare  []*Pass // to be used again
	inputs pool[discarded]
}

// Pass is a micro-batch under way in a chunk: what its forward left for its backward.
type Pass struct {
	chunk *Chunk
	batch *Batch
	saved []Saved      // of every layer in order
	later []weightGrad // products that BackwardInput left for BackwardWeight, from the last unit to the first
	unit  int          // of the chunk, whose layers' products are being put off
}

// weightGrad is a product that was put off. Without a matrix it only gives the operands back.
type weightGrad struct {
	linear *Linear
	dy, x  *tensor.Tensor
	unit   int // of the chunk
}

// run computes the product and gives its operands back.
func (g weightGrad) run(r *Rank) {
	if g.linear != nil {
		g.linear.weightGrad(r, g.dy, g.x)
	}
	g.dy.Free()
	g.x.Free()
}

// Free gives up a pass without a backward.
func (p *Pass) Free() {
	for _, s := range p.saved {
		s.Free()
	}
	for _, g := range p.later {
		g.dy.Free()
		g.x.Free()
	}
	p.recycle()
}

// recycle keeps the pass for another micro-batch.
func (p *Pass) recycle() {
	p.saved, p.later = p.saved[:0], p.later[:0]
	p.chunk.spare = append(p.chunk.spare, p)
}

// pass takes a spare pass or makes one.
func (c *Chunk) pass() *Pass {
	last := len(c.spare) - 1
	if last < 0 {
		return &Pass{chunk: c}
	}
	p := c.spare[last]
	c.spare = c.spare[:last]
	return p
}

// head is the last layer of a chunk that has it.
func (c *Chunk) head() *Head {
	layers := c.Units[len(c.Units)-1].Layers
	return layers[len(layers)-1].(*Head)
}

// begin readies a batch for a forward.
func (c *Chunk) begin(b *Batch, mode Mode) {
	if b.sequence() > c.model.longest {
		panic(fmt.Sprintf("nn: a sequence of %d tokens for a model built for %d", b.sequence(), c.model.longest))
	}
	b.Mode = mode
}

// Forward computes the chunk's result y from x, which is nil for the first chunk of the model, and keeps what the
// backward needs. The last chunk sets b.Loss and returns no y. It takes over x.
func (c *Chunk) Forward(r *Rank, b *Batch, x *tensor.Tensor) (y *tensor.Tensor, p *Pass) {
	c.begin(b, Train)
	p = c.pass()
	p.batch = b
	for _, u := range c.Units {
		u.enter(r, u.forward())
		before := len(p.saved)
		x = c.forward(r, u, b, x, p)
		if u.Block {
			r.Host.unload(p.saved[before:])
		}
		u.leave(r, u.forward())
	}
	if c.Last {
		r.inspector.loss(c.head().Name(), b.Loss)
	}
	return x, p
}

// forward runs a unit's layers; the pass keeps what they save.
func (c *Chunk) forward(r *Rank, u *Unit, b *Batch, x *tensor.Tensor, p *Pass) *tensor.Tensor {
	if u.recompute == FullBlock {
		return c.discard(r, u, b, x, p)
	}
	for _, l := range u.Layers {
		var s Saved
		x, s = l.Forward(r, b, x)
		p.saved = append(p.saved, s)
		r.look(b, l.Name(), Output, x)
		r.yield()
	}
	return x
}

// Evaluate is Forward that keeps nothing.
func (c *Chunk) Evaluate(r *Rank, b *Batch, x *tensor.Tensor) (y *tensor.Tensor) {
	c.begin(b, Evaluate)
	return c.through(r, b, x, c.Units)
}

// hidden is the input of the head, [T H], of a chunk that is the whole model.
func (c *Chunk) hidden(r *Rank, b *Batch) *tensor.Tensor {
	c.begin(b, Evaluate)
	return c.through(r, b, nil, c.Units[:len(c.Units)-1])
}

// through runs units forward and keeps nothing.
func (c *Chunk) through(r *Rank, b *Batch, x *tensor.Tensor, units []*Unit) *tensor.Tensor {
	for _, u := range units {
		u.enter(r, u.run())
		for _, l := range u.Layers {
			x, _ = l.Forward(r, b, x)
			r.yield()
		}
		u.leave(r, u.run())
	}
	return x
}

// Backward computes the gradient of the chunk's input from that of its result, which is nil for the last chunk of the
// model, adds the micro-batch's gradients, and ends the pass. For the last micro-batch of a step, ready is told of every
// unit; for others it is nil. It takes over dy; the first chunk returns nil.
func (c *Chunk) Backward(r *Rank, dy *tensor.Tensor, p *Pass, ready Ready) (dx *tensor.Tensor) {
	for i, u := range slices.Backward(c.Units) {
		dy = c.backward(r, u, dy, p, Backward)
		c.complete(r, i, ready)
	}
	p.recycle()
	return dy
}

// BackwardInput is the part of Backward that other stages wait for: the gradient of the chunk's input. The matrices'
// gradients are put off until BackwardWeight, which ends the pass; those of vectors and tables are not.
func (c *Chunk) BackwardInput(r *Rank, dy *tensor.Tensor, p *Pass) (dx *tensor.Tensor) {
	off := *r
	off.later = p
	for i, u := range slices.Backward(c.Units) {
		p.unit = i
		dy = c.backward(&off, u, dy, p, BackwardInput)
	}
	return dy
}

// BackwardWeight runs the products that BackwardInput put off, and ends the pass. For ready see Backward.
func (c *Chunk) BackwardWeight(r *Rank, p *Pass, ready Ready) {
	rest := p.later
	for i, u := range slices.Backward(c.Units) {
		u.enter(r, u.backward(BackwardWeight))
		for len(rest) > 0 && rest[0].unit == i {
			g := rest[0]
			rest = rest[1:]
			g.run(r)
			r.yield()
		}
		u.leave(r, u.backward(BackwardWeight))
		c.complete(r, i, ready)
	}
	p.recycle()
}

// kept is how many entries of a pass a unit leaves.
func (u *Unit) kept() int {
	if u.recompute == FullBlock {
		return 1
	}
	return len(u.Layers)
}

// backward runs a unit's layers.
func (c *Chunk) backward(r *Rank, u *Unit, dy *tensor.Tensor, p *Pass, phase Phase) *tensor.Tensor {
	u.enter(r, u.backward(phase))
	if u.Block {
		r.Host.load(r, p.saved[len(p.saved)-u.kept():])
		c.again(r, u, p)
	}
	for _, l := range slices.Backward(u.Layers) {
		last := len(p.saved) - 1
		s := p.saved[last]
		p.saved = p.saved[:last]
		dy = l.Backward(r, dy, s)
		r.look(p.batch, l.Name(), InputGradient, dy)
		r.yield()
	}
	u.leave(r, u.backward(phase))
	return dy
}

// complete tells ready, if there is one, of the units that a unit of the chunk was the last to add to.
func (c *Chunk) complete(r *Rank, i int, ready Ready) {
	if ready == nil {
		return
	}
	u := c.Units[i]
	for _, used := range u.Uses {
		c.ready(r, used, ready)
	}
	if len(u.Layers) > 0 {
		c.ready(r, u, ready)
	}
}

func (c *Chunk) ready(r *Rank, u *Unit, ready Ready) {
	if u.done() {
		u.settle(r)
		ready.Ready(u.Index)
	}
}
