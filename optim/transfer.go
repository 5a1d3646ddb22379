package optim

import (
	"carve/comm"
	"carve/nn"
	"carve/tensor"
)

// transfer is one collective over a run [lo, hi) of a flat buffer, in place.
type transfer struct {
	op     comm.Op // AllReduce, ReduceScatter, Reduce, AllGather or Broadcast
	group  *comm.Group
	root   int // of Reduce and Broadcast
	lo, hi int
}

// add appends a transfer, or lengthens the last one where it is the same over the next run.
func add(list []transfer, t transfer) []transfer {
	if t.group == nil || t.lo == t.hi {
		return list
	}
	if n := len(list) - 1; n >= 0 && t.op != comm.ReduceScatter && t.op != comm.AllGather {
		if last := &list[n]; last.hi == t.lo && last.op == t.op && last.group == t.group && last.root == t.root {
			last.hi = t.hi
			return list
		}
	}
	return append(list, t)
}

// toOwners lists what brings the sum of a block to the owners of its parts.
func (b *block) toOwners(list []transfer) []transfer {
	return b.each(list, b.family.reduce, comm.ReduceScatter, comm.Reduce)
}

// fromOwners lists what brings the parts of a block from their owners to all.
func (b *block) fromOwners(list []transfer) []transfer {
	return b.each(list, b.family.gather, comm.AllGather, comm.Broadcast)
}

// each lists one collective over the ranks' equal parts, and one for every other part.
func (b *block) each(list []transfer, g *comm.Group, even, single comm.Op) []transfer {
	for _, p := range b.parts {
		if p.param == nil && len(b.parts) > 1 {
			return b.ranges(list, g, even, single)
		}
		list = add(list, transfer{single, g, p.owner, p.lo, p.hi})
	}
	return list
}

// ranges is each for a block that is dealt out in ranges.
func (b *block) ranges(list []transfer, g *comm.Group, even, single comm.Op) []transfer {
	n := b.family.size()
	mid := b.lo + (b.hi-b.lo)/n*n
	list = add(list, transfer{op: even, group: g, lo: b.lo, hi: mid})
	return add(list, transfer{single, g, n - 1, mid, b.hi})
}

// convoy is a sequence of steps of transfers. Those of a step are under way at once; a step begins when the one before has
// ended. It is used again and again, and allocates nothing.
type convoy struct {
	steps  [][]transfer
	memory *tensor.Tensor
	base   int // of the flat buffer that is the first of memory
	at     int // step that is under way
	works  []comm.Work
	views  []*tensor.Tensor
}

// newConvoy drops steps without transfers.
func newConvoy(steps ...[]transfer) convoy {
	c := convoy{}
	for _, s := range steps {
		if len(s) > 0 {
			c.steps = append(c.steps, s)
		}
	}
	c.at = len(c.steps)
	return c
}

// start begins the first step.
func (c *convoy) start(memory *tensor.Tensor, base int) {
	c.memory, c.base, c.at = memory, base, 0
	c.issue()
}

// more tells whether steps follow the one that is under way.
func (c *convoy) more() bool { return c.at+1 < len(c.steps) }

// advance waits for the step under way and starts the next.
func (c *convoy) advance() {
	c.wait()
	c.at++
	c.issue()
}

// finish ends the convoy, whether it was started or not.
func (c *convoy) finish() {
	for c.at < len(c.steps) {
		c.advance()
	}
}

func (c *convoy) wait() {
	for _, w := range c.works {
		nn.Must(w.Wait())
	}
	for _, v := range c.views {
		v.Free()
	}
	c.works, c.views = c.works[:0], c.views[:0]
}

func (c *convoy) issue() {
	if c.at < len(c.steps) {
		for _, t := range c.steps[c.at] {
			c.works = append(c.works, c.begin(t))
		}
	}
}

func (c *convoy) view(lo, hi int) *tensor.Tensor {
	v := c.memory.Slice(lo-c.base, hi-c.base)
	c.views = append(c.views, v)
	return v
}

// begin starts a transfer.
func (c *convoy) begin(t transfer) comm.Work {
	all := c.view(t.lo, t.hi)
	switch t.op {
	case comm.AllReduce:
		return t.group.AllReduceStart(all, tensor.Sum)
	case comm.Reduce:
		return t.group.ReduceStart(all, tensor.Sum, t.root)
	case comm.Broadcast:
		return t.group.BroadcastStart(all, t.root)
	case comm.ReduceScatter:
		return t.group.ReduceScatterStart(c.block(t), all, tensor.Sum)
	case comm.AllGather:
		return t.group.AllGatherStart(all, c.block(t))
	case comm.Barrier, comm.Gather, comm.Scatter, comm.AllToAll, comm.AllToAllV, comm.Send, comm.Recv:
	}
	panic("optim: a transfer by " + t.op.String())
}

// block is this rank's block of a transfer.
func (c *convoy) block(t transfer) *tensor.Tensor {
	n := (t.hi - t.lo) / t.group.Size()
	lo := t.lo + t.group.Rank()*n
	return c.view(lo, lo+n)
}
