package comm

import (
	"slices"

	"carve/tensor"
)

// Carrier carries out one member's calls in one group. It is the narrow waist between the methods of
// [Group] and the engines and decorators.
//
// Collectives of one carrier execute one after the other in the order of issue. Sends to one peer, and
// receives from one peer, execute in the order of issue, but independently of everything else.
type Carrier interface {
	// Do carries out a call and returns when this member's tensors may be used again.
	Do(Call) error
	// Start issues a call. Its tensors belong to the operation until Wait has returned.
	Start(Call) Work
}

// Work is a started operation. The zero value is one that has finished.
type Work struct {
	await  Awaiter
	ticket uint64
}

// Awaiter waits for operations that a carrier started.
type Awaiter interface {
	Await(ticket uint64) error
	// Done tells, without waiting, whether Await would return nil at once.
	Done(ticket uint64) bool
}

// NewWork makes the handle of an operation; for engines.
func NewWork(a Awaiter, ticket uint64) Work { return Work{a, ticket} }

// Wait returns when the operation has finished or can no longer finish; the tensors may be used again
// then. It gives the compute token up while it waits. It may be called any number of times.
func (w Work) Wait() error {
	if w.await == nil {
		return nil
	}
	return w.await.Await(w.ticket)
}

// Done tells, without waiting, whether the operation has finished: then Wait returns nil at once.
func (w Work) Done() bool { return w.await == nil || w.await.Done(w.ticket) }

// Group is one rank's handle of one process group. It is used by goroutines of that rank that hold
// the rank's compute [Token].
//
// Roots, peers and the blocks of gathered tensors are numbered by position in the group, from 0 to Size-1.
type Group struct {
	name    string
	ranks   []int
	rank    int
	carrier Carrier
}

// NewGroup makes the handle of the member at position rank of a group of the given ranks of the world.
// For engines and decorators; others call [Endpoint.Group].
func NewGroup(name string, ranks []int, rank int, c Carrier) *Group {
	return &Group{name: name, ranks: slices.Clone(ranks), rank: rank, carrier: c}
}

// With is the same group over another carrier; for decorators.
func (g *Group) With(c Carrier) *Group { return &Group{g.name, g.ranks, g.rank, c} }

// Carrier is what carries out the group's calls.
func (g *Group) Carrier() Carrier { return g.carrier }

// Rank is this member's position in the group.
func (g *Group) Rank() int { return g.rank }

// Size is the number of members.
func (g *Group) Size() int { return len(g.ranks) }

// Name is the name that the group was made with.
func (g *Group) Name() string { return g.name }

// Ranks is a copy of the members' ranks in the world, by position.
func (g *Group) Ranks() []int { return slices.Clone(g.ranks) }

// Barrier returns when every member has called it.
func (g *Group) Barrier() error { return g.carrier.Do(Call{Op: Barrier}) }

// BarrierStart starts a Barrier.
func (g *Group) BarrierStart() Work { return g.carrier.Start(Call{Op: Barrier}) }

// Broadcast copies the root's t to every member's t.
func (g *Group) Broadcast(t *tensor.Tensor, root int) error {
	return g.carrier.Do(g.broadcast(t, root))
}

// BroadcastStart starts a Broadcast.
func (g *Group) BroadcastStart(t *tensor.Tensor, root int) Work {
	return g.carrier.Start(g.broadcast(t, root))
}

func (g *Group) broadcast(t *tensor.Tensor, root int) Call {
	if root == g.rank {
		return Call{Op: Broadcast, Peer: root, Src: t}
	}
	return Call{Op: Broadcast, Peer: root, Dst: t}
}

// Reduce combines the members' t into the root's t; the others keep theirs.
func (g *Group) Reduce(t *tensor.Tensor, op tensor.ReduceOp, root int) error {
	return g.carrier.Do(g.reduce(t, op, root))
}

// ReduceStart starts a Reduce.
func (g *Group) ReduceStart(t *tensor.Tensor, op tensor.ReduceOp, root int) Work {
	return g.carrier.Start(g.reduce(t, op, root))
}

func (g *Group) reduce(t *tensor.Tensor, op tensor.ReduceOp, root int) Call {
	c := Call{Op: Reduce, Reduce: op, Peer: root, Src: t}
	if root == g.rank {
		c.Dst = t
	}
	return c
}

// AllReduce replaces every member's t by their combination.
func (g *Group) AllReduce(t *tensor.Tensor, op tensor.ReduceOp) error {
	return g.carrier.Do(Call{Op: AllReduce, Reduce: op, Dst: t, Src: t})
}

// AllReduceStart starts an AllReduce.
func (g *Group) AllReduceStart(t *tensor.Tensor, op tensor.ReduceOp) Work {
	return g.carrier.Start(Call{Op: AllReduce, Reduce: op, Dst: t, Src: t})
}

// AllReduceTo sets every member's dst to the combination of the members' src. The members may differ in
// whether dst is src.
func (g *Group) AllReduceTo(dst, src *tensor.Tensor, op tensor.ReduceOp) error {
	return g.carrier.Do(Call{Op: AllReduce, Reduce: op, Dst: dst, Src: src})
}

// AllReduceToStart starts an AllReduceTo.
func (g *Group) AllReduceToStart(dst, src *tensor.Tensor, op tensor.ReduceOp) Work {
	return g.carrier.Start(Call{Op: AllReduce, Reduce: op, Dst: dst, Src: src})
}

// Gather sets the root's dst to the members' src one after the other. dst is not used on the others. In
// place: src is block Rank of dst.
func (g *Group) Gather(dst, src *tensor.Tensor, root int) error {
	return g.carrier.Do(g.gather(dst, src, root))
}

// GatherStart starts a Gather.
func (g *Group) GatherStart(dst, src *tensor.Tensor, root int) Work {
	return g.carrier.Start(g.gather(dst, src, root))
}

func (g *Group) gather(dst, src *tensor.Tensor, root int) Call {
	if root != g.rank {
		dst = nil
	}
	return Call{Op: Gather, Peer: root, Dst: dst, Src: src}
}

// AllGather sets every member's dst to the members' src one after the other. In place: src is block Rank of dst.
func (g *Group) AllGather(dst, src *tensor.Tensor) error {
	return g.carrier.Do(Call{Op: AllGather, Dst: dst, Src: src})
}

// AllGatherStart starts an AllGather.
func (g *Group) AllGatherStart(dst, src *tensor.Tensor) Work {
	return g.carrier.Start(Call{Op: AllGather, Dst: dst, Src: src})
}

// Scatter sets each member's dst to its block of the root's src. src is not used on the others. In place:
// dst is block Rank of src.
func (g *Group) Scatter(dst, src *tensor.Tensor, root int) error {
	return g.carrier.Do(g.scatter(dst, src, root))
}

// ScatterStart starts a Scatter.
func (g *Group) ScatterStart(dst, src *tensor.Tensor, root int) Work {
	return g.carrier.Start(g.scatter(dst, src, root))
}

func (g *Group) scatter(dst, src *tensor.Tensor, root int) Call {
	if root != g.rank {
		src = nil
	}
	return Call{Op: Scatter, Peer: root, Dst: dst, Src: src}
}

// ReduceScatter sets each member's dst to its block of the combination of the members' src. In place: dst is
// block Rank of src.
func (g *Group) ReduceScatter(dst, src *tensor.Tensor, op tensor.ReduceOp) error {
	return g.carrier.Do(Call{Op: ReduceScatter, Reduce: op, Dst: dst, Src: src})
}

// ReduceScatterStart starts a ReduceScatter.
func (g *Group) ReduceScatterStart(dst, src *tensor.Tensor, op tensor.ReduceOp) Work {
	return g.carrier.Start(Call{Op: ReduceScatter, Reduce: op, Dst: dst, Src: src})
}

// AllToAll sets block i of each member's dst to that member's block of member i's src.
func (g *Group) AllToAll(dst, src *tensor.Tensor) error {
	return g.carrier.Do(Call{Op: AllToAll, Dst: dst, Src: src})
}

// AllToAllStart starts an AllToAll.
func (g *Group) AllToAllStart(dst, src *tensor.Tensor) Work {
	return g.carrier.Start(Call{Op: AllToAll, Dst: dst, Src: src})
}

// AllToAllV is AllToAll with blocks of the given numbers of elements, which lie one after the other from the
// start of the tensors; what follows them is left alone. sendCounts[i] here must be recvCounts[Rank] on member
// i. The counts may be reused at once.
func (g *Group) AllToAllV(dst, src *tensor.Tensor, sendCounts, recvCounts []int) error {
	return g.carrier.Do(Call{Op: AllToAllV, Dst: dst, Src: src, SendCounts: sendCounts, RecvCounts: recvCounts})
}

// AllToAllVStart starts an AllToAllV.
func (g *Group) AllToAllVStart(dst, src *tensor.Tensor, sendCounts, recvCounts []int) Work {
	return g.carrier.Start(Call{Op: AllToAllV, Dst: dst, Src: src, SendCounts: sendCounts, RecvCounts: recvCounts})
}

// Send sends t to the member at position to. It returns when that member has received it.
func (g *Group) Send(t *tensor.Tensor, to int) error {
	return g.carrier.Do(Call{Op: Send, Peer: to, Src: t})
}

// SendStart starts a Send.
func (g *Group) SendStart(t *tensor.Tensor, to int) Work {
	return g.carrier.Start(Call{Op: Send, Peer: to, Src: t})
}

// Recv receives t from the member at position from.
func (g *Group) Recv(t *tensor.Tensor, from int) error {
	return g.carrier.Do(Call{Op: Recv, Peer: from, Dst: t})
}

// RecvStart starts a Recv.
func (g *Group) RecvStart(t *tensor.Tensor, from int) Work {
	return g.carrier.Start(Call{Op: Recv, Peer: from, Dst: t})
}
