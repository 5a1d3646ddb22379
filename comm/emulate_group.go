package comm

import (
	"slices"

	"carve/collective"
)

// emulatedGroup is what the members of a group share. The lock of its links guards it.
type emulatedGroup struct {
	net     *Emulated
	name    string
	ranks   []int
	place   *collective.Placement
	members []*emulatedCarrier // by position; nil for those that have not joined
	flows   map[flowKey]flow
	pairs   []emulatedPair // from·n + to
	ops     []*emulatedOp  // collectives that are not over on all members, in order
	first   uint64         // number of the first of them
	idle    []*emulatedOp
}

// flowKey is what a schedule depends on.
type flowKey struct {
	op     collective.Op
	choice collective.Choice
	root   int
}

type flow struct {
	*collective.Flow
	blocks int
}

// emulatedOp is a collective that some members have called.
type emulatedOp struct {
	call    Call            // of the member that came first, without tensors
	bytes   int             // by the convention of nccl-tests
	came    int             // members that may begin
	at      collective.Tick // when the last of them could
	left    int             // members that have not finished
	tickets []uint64
	issued  []collective.Tick
	counts  []int // of a variable all-to-all: elements from·n + to
	sizes   []float64
}

func newEmulatedGroup(e *Emulated, name string, ranks []int) (*emulatedGroup, error) {
	place, err := collective.Place(e.options.Levels, ranks)
	if err != nil {
		return nil, err
	}
	n := len(ranks)
	g := &emulatedGroup{
		net: e, name: name, ranks: slices.Clone(ranks), place: place,
		members: make([]*emulatedCarrier, n), flows: map[flowKey]flow{}, pairs: make([]emulatedPair, n*n),
	}
	for i := range g.pairs {
		g.pairs[i] = emulatedPair{group: g, ends: [2]int{i / n, i % n}, ranks: [2]int{ranks[i/n], ranks[i%n]}}
	}
	return g, nil
}

// issue enters a member's call of its next collective.
func (g *emulatedGroup) issue(c *emulatedCarrier, call *Call, ticket uint64) {
	n := len(g.ranks)
	if c.issued-g.first == uint64(len(g.ops)) {
		g.ops = append(g.ops, g.newOp(call))
	}
	op, at := g.ops[c.issued-g.first], c.group.rank
	op.tickets[at], op.issued[at] = ticket, c.now()
	if call.Op == AllToAllV {
		copy(op.counts[at*n:], call.SendCounts)
	}
	c.issued++
	if c.issued == c.over+1 {
		g.ready(op, op.issued[at])
	}
}

// newOp makes the operation that a call begins.
func (g *emulatedGroup) newOp(call *Call) *emulatedOp {
	n, op := len(g.ranks), &emulatedOp{}
	if last := len(g.idle) - 1; last >= 0 {
		op, g.idle = g.idle[last], g.idle[:last]
	} else {
		op.tickets, op.issued = make([]uint64, n), make([]collective.Tick, n)
	}
	op.call = Call{Op: call.Op, Peer: call.Peer}
	op.bytes, op.came, op.at, op.left = call.Size(n), 0, 0, n
	if call.Op == AllToAllV {
		if op.counts == nil {
			op.counts = make([]int, n*n)
		}
		op.bytes = call.Src.DType().Size() // of an element
	}
	return op
}

// ready counts a member that may begin, and begins with the last.
func (g *emulatedGroup) ready(op *emulatedOp, at collective.Tick) {
	op.came++
	op.at = max(op.at, at)
	if op.came < len(g.ranks) {
		return
	}
	number := g.first + uint64(slices.Index(g.ops, op))
	f := g.flow(op)
	part := float64(op.bytes) / float64(max(1, f.blocks))
	var sizes []float64
	if op.call.Op == AllToAllV {
		sizes = op.messages(f.Transfers(), len(g.ranks))
	}
	g.net.network.Begin(op.at, f.Flow, g.ranks, part, sizes, number, g)
	g.net.wake()
}

// messages are the sizes of a variable all-to-all's messages.
func (o *emulatedOp) messages(transfers []collective.Transfer, n int) []float64 {
	o.sizes = o.sizes[:0]
	for _, t := range transfers {
		o.sizes = append(o.sizes, float64(o.counts[int(t.From)*n+int(t.To)]*o.bytes))
	}
	return o.sizes
}

// flow is the schedule for an operation, made when it is first needed.
func (g *emulatedGroup) flow(o *emulatedOp) flow {
	op, _ := o.call.Op.Collective()
	key := flowKey{op: op, root: o.call.Peer}
	switch forced := g.net.options.Algorithm; {
	case o.call.Op == AllToAllV:
		key.choice = collective.Choice{Algorithm: collective.Direct}
	case forced != nil:
		c, ok := g.place.Of(key.op, *forced, float64(o.bytes))
		if key.choice = c; ok {
			break
		}
		fallthrough
	default:
		key.choice, _ = g.place.Best(key.op, float64(o.bytes))
	}
	f, known := g.flows[key]
	if !known {
		s, _ := g.place.Schedule(key.op, key.choice, key.root)
		f = flow{collective.NewFlow(s), s.Blocks}
		g.flows[key] = f
	}
	return f
}

// Finished implements [collective.Listener]: a member has finished a collective.
func (g *emulatedGroup) Finished(number uint64, member int, at collective.Tick) {
	op, c := g.ops[number-g.first], g.members[member]
	c.carried(op.tickets[member], at)
	c.over++
	if c.issued > c.over {
		next := g.ops[c.over-g.first]
		g.ready(next, max(at, next.issued[member]))
	}
	for op.left--; len(g.ops) > 0 && g.ops[0].left == 0; g.first++ {
		g.idle = append(g.idle, g.ops[0])
		g.ops = append(g.ops[:0], g.ops[1:]...)
	}
}

// emulatedPair is the messages from one member to another.
type emulatedPair struct {
	group  *emulatedGroup
	ends   [2]int // positions
	ranks  [2]int
	posted [2][]uint64     // tickets of sends and receives that have not arrived, in order
	begun  int             // of them
	bytes  []float64       // of those that were sent and have not begun
	at     collective.Tick // of the last post
}

// post enters one side of a message.
func (p *emulatedPair) post(call *Call, ticket uint64, now collective.Tick) {
	p.at = max(p.at, now)
	side := 0
	if call.Op == Recv {
		side = 1
	} else {
		p.bytes = append(p.bytes, float64(call.Size(2)))
	}
	p.posted[side] = append(p.posted[side], ticket)
	if min(len(p.posted[0]), len(p.posted[1])) > p.begun {
		p.begun++
		net := p.group.net
		net.network.Send(p.at, p.ranks[:], p.bytes[0], 0, p)
		p.bytes = append(p.bytes[:0], p.bytes[1:]...)
		net.wake()
	}
}

// Finished implements [collective.Listener]: the oldest message has arrived at one of its ends.
func (p *emulatedPair) Finished(_ uint64, side int, at collective.Tick) {
	p.group.members[p.ends[side]].carried(p.posted[side][0], at)
	p.posted[side] = append(p.posted[side][:0], p.posted[side][1:]...)
	if side == 1 { // after the sender
		p.begun--
	}
}
