package comm

import (
	"slices"

	"carve/collective"
	"carve/tensor"
)

// route is one member's part of a schedule.
type route struct {
	blocks int
	rounds []routeRound
}

// routeRound is what a member sends and gets in a round, in an order that is the same at both ends.
type routeRound struct{ sends, recvs []routeItem }

// routeItem is one contribution to a block, or the whole block, and the member at the other end.
type routeItem struct {
	peer int
	collective.Moved
}

// newRoute follows a schedule and keeps a member's part.
func newRoute(s collective.Schedule, me int) (*route, error) {
	r := &route{blocks: s.Blocks, rounds: make([]routeRound, len(s.Rounds))}
	err := s.Follow(func(round int, t collective.Transfer, moved []collective.Moved) {
		now := &r.rounds[round]
		for _, m := range moved {
			if int(t.From) == me {
				now.sends = append(now.sends, routeItem{int(t.To), m})
			}
			if int(t.To) == me {
				now.recvs = append(now.recvs, routeItem{int(t.From), m})
			}
		}
	})
	return r, err
}

// carry carries one collective out. The caller holds the rank's token.
func (c *routedCarrier) carry(call *Call) error {
	c.number++
	if err := c.agree(call); err != nil || call.Op == Barrier {
		return err
	}
	r := routing{c: c, call: call, cells: map[collective.Moved]*tensor.Tensor{}}
	defer r.free()
	if call.Op == AllToAllV {
		return r.exchange()
	}
	route, err := c.route(call)
	if err != nil {
		return err
	}
	r.blocks = route.blocks
	r.own()
	for _, round := range route.rounds {
		if err := r.round(round); err != nil {
			return err
		}
	}
	r.deliver()
	return nil
}

// route is the schedule for a call, made when it is first needed.
func (c *routedCarrier) route(call *Call) (*route, error) {
	bytes := float64(call.Size(c.group.Size()))
	op, _ := call.Op.Collective()
	key := flowKey{op: op, root: call.Peer}
	ok := false
	if a := c.owner.options.Algorithm; a != nil {
		key.choice, ok = c.place.Of(key.op, *a, bytes)
	}
	if !ok {
		key.choice, _ = c.place.Best(key.op, bytes)
	}
	if r := c.routes[key]; r != nil {
		return r, nil
	}
	s, _ := c.place.Schedule(key.op, key.choice, key.root)
	r, err := newRoute(s, c.group.rank)
	c.routes[key] = r
	return r, err
}

// agree compares what the members call, and so waits for all of them.
func (c *routedCarrier) agree(call *Call) error {
	n := c.group.Size()
	s := call.Signature(n)
	all, err := c.tell([]int{int(s.Op), int(s.Reduce), int(s.DType), int(s.Peer), s.Count})
	if err != nil {
		return err
	}
	said := make([]Signature, n)
	for i, w := range all {
		said[i] = Signature{Op(w[0]), tensor.ReduceOp(w[1]), tensor.DType(w[2]), int32(w[3]), w[4]}
	}
	odd, err := disagreement(c.group.name, c.group.ranks, uint64(c.number), said)
	if err == nil && call.Op == AllToAllV {
		if all, err = c.tell(append(slices.Clone(call.SendCounts), call.RecvCounts...)); err != nil {
			return err
		}
		odd, err = miscount(c.group.name, c.group.ranks, uint64(c.number), func(i int) []int { return all[i] })
	}
	if err == nil {
		return nil
	}
	if odd == c.group.rank {
		c.owner.Fail(err)
	}
	return c.wires.Barrier() // ends with the failure
}

// tell lets every member know some numbers of every other, by an all-gather of the engine below.
func (c *routedCarrier) tell(numbers []int) (all [][]int, err error) {
	n, k := c.group.Size(), len(numbers)
	mine, every := c.owner.arena.New(tensor.Communication, tensor.Int32, 2*k), c.owner.arena.New(tensor.Communication, tensor.Int32, 2*k*n)
	defer mine.Free()
	defer every.Free()
	for i, x := range numbers {
		mine.I32()[2*i], mine.I32()[2*i+1] = int32(x), int32(x>>32)
	}
	if err := c.wires.AllGather(every, mine); err != nil {
		return nil, err
	}
	all = make([][]int, n)
	for i := range all {
		for _, w := range slices.Collect(slices.Chunk(every.I32()[2*k*i:2*k*(i+1)], 2)) {
			all[i] = append(all[i], int(uint32(w[0]))|int(w[1])<<32)
		}
	}
	return all, nil
}

// routing is a collective under way on one member.
type routing struct {
	c      *routedCarrier
	call   *Call
	blocks int
	cells  map[collective.Moved]*tensor.Tensor // what the member holds
	made   []*tensor.Tensor                    // to be given back
}

func (r *routing) free() {
	for _, t := range r.made {
		t.Free()
	}
}

// view is a part of a tensor.
func (r *routing) view(t *tensor.Tensor, lo, hi int) *tensor.Tensor {
	v := t.Slice(lo, hi)
	r.made = append(r.made, v)
	return v
}

// count is the elements that each member contributes.
func (r *routing) count() int { return r.call.Signature(r.c.group.Size()).Count }

// span is where block b lies in an operand that the members contribute whole, or that is one block for each of them.
func (r *routing) span(b int) (lo, hi int) {
	count := r.count()
	switch r.call.Op {
	case Broadcast, Reduce, AllReduce:
		return b * count / r.blocks, (b + 1) * count / r.blocks
	default:
		return b * count, (b + 1) * count
	}
}

// part is block b of an operand.
func (r *routing) part(t *tensor.Tensor, b int) *tensor.Tensor {
	lo, hi := r.span(b)
	return r.view(t, lo, hi)
}

// own enters what the member contributes.
func (r *routing) own() {
	me := r.c.group.rank
	if r.call.Src == nil {
		return
	}
	switch r.call.Op {
	case Gather, AllGather:
		r.cells[collective.Moved{From: me, Block: me}] = r.call.Src
	default:
		for b := range r.blocks {
			r.cells[collective.Moved{From: me, Block: b}] = r.part(r.call.Src, b)
		}
	}
}

// room is memory for a block.
func (r *routing) room(b int) *tensor.Tensor {
	lo, hi := r.span(b)
	d := r.call.Signature(r.c.group.Size()).DType
	t := r.c.owner.arena.New(tensor.Communication, d, hi-lo)
	r.made = append(r.made, t)
	return t
}

// round sends and gets what belongs to a round.
func (r *routing) round(now routeRound) error {
	var works []Work
	got := make([]*tensor.Tensor, len(now.recvs))
	for i, m := range now.recvs {
		got[i] = r.room(m.Block)
		works = append(works, r.c.wires.RecvStart(got[i], m.peer))
	}
	for _, m := range now.sends {
		works = append(works, r.c.wires.SendStart(r.cell(m.Moved), m.peer))
	}
	for _, w := range works {
		if err := w.Wait(); err != nil {
			return err
		}
	}
	for i, m := range now.recvs {
		r.cells[m.Moved] = got[i]
	}
	return nil
}

// cell is what the member holds; a whole block is combined when it is first asked for.
func (r *routing) cell(m collective.Moved) *tensor.Tensor {
	if t := r.cells[m]; t != nil || m.From != collective.Whole {
		return t
	}
	t := r.room(m.Block)
	var srcs []*tensor.Tensor
	for i := range r.c.group.Size() {
		srcs = append(srcs, r.cells[collective.Moved{From: i, Block: m.Block}])
	}
	r.c.owner.reducer.Reduce([]*tensor.Tensor{t}, srcs, r.call.Reduce, 0, t.Len())
	r.cells[m] = t
	return t
}

// deliver writes the destination.
func (r *routing) deliver() {
	me, dst := r.c.group.rank, r.call.Dst
	if dst == nil {
		return
	}
	put := func(to *tensor.Tensor, from, b int) { r.copy(to, r.cell(collective.Moved{From: from, Block: b})) }
	switch r.call.Op {
	case Reduce, AllReduce:
		for b := range r.blocks {
			put(r.part(dst, b), collective.Whole, b)
		}
	case ReduceScatter:
		put(dst, collective.Whole, me)
	case Broadcast:
		for b := range r.blocks {
			put(r.part(dst, b), r.call.Peer, b)
		}
	case Scatter:
		put(dst, r.call.Peer, me)
	case Gather, AllGather:
		for b := range r.blocks {
			put(r.part(dst, b), b, b)
		}
	case AllToAll:
		for i := range r.c.group.Size() {
			r.copy(r.part(dst, i), r.cell(collective.Moved{From: i, Block: me}))
		}
	case AllToAllV, Barrier, Send, Recv, numOps:
	}
}

// copy copies all elements, unless the two are the same.
func (r *routing) copy(dst, src *tensor.Tensor) {
	if src.Len() > 0 && !startsAt(dst, src, 0) {
		r.c.owner.reducer.Copy(dst, 0, src, 0, src.Len())
	}
}

// exchange carries a variable all-to-all out: every block straight to its member.
func (r *routing) exchange() error {
	g, n := r.c.wires, r.c.group.Size()
	var works []Work
	send, recv := 0, 0
	for i := range n {
		out, in := r.view(r.call.Src, send, send+r.call.SendCounts[i]), r.view(r.call.Dst, recv, recv+r.call.RecvCounts[i])
		send, recv = send+r.call.SendCounts[i], recv+r.call.RecvCounts[i]
		if i == g.rank {
			r.copy(in, out)
			continue
		}
		works = append(works, g.RecvStart(in, i), g.SendStart(out, i))
	}
	for _, w := range works {
		if err := w.Wait(); err != nil {
			return err
		}
	}
	return nil
}
