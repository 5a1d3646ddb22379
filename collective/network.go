package collective

import (
	"fmt"
	"math"

	"carve/cluster"
)

// Tick is a time in nanoseconds.
type Tick = int64

// Listener hears when a member has finished its part.
type Listener interface {
	Finished(token uint64, member int, at Tick)
}

// Network is links with queues between ranks. Messages start in the order in which they become ready, of equals in that of their
// collectives' begin and of their place in the schedule.
type Network struct {
	levels []networkLevel
	events events
	runs   uint64 // begun
	idle   []*run
	pair   *Flow
}

// networkLevel is the links of one level.
type networkLevel struct {
	size     int
	latency  float64 // ns
	perByte  float64 // ns
	out, in  []Tick  // when the port of a rank is free
	inside   int     // ranks of a domain of the level inside
	shared   float64 // ns per byte of a domain's uplink; 0 when it is never the bottleneck
	up, down []Tick  // when the link of a domain inside is free
}

// NewNetwork makes the links between so many ranks of a cluster's levels. All times are multiplied by scale.
func NewNetwork(levels []cluster.Level, ranks int, scale float64) (*Network, error) {
	if len(levels) == 0 || len(levels) > maxTiers {
		return nil, fmt.Errorf("collective: %d levels of links; use 1 to %d", len(levels), maxTiers)
	}
	if most := levels[len(levels)-1].Size; ranks < 1 || ranks > most {
		return nil, fmt.Errorf("collective: %d ranks on a cluster of %d devices; use 1 to %d ranks, or more nodes", ranks, most, most)
	}
	if !(scale > 0) || math.IsInf(scale, 0) {
		return nil, fmt.Errorf("collective: time scale %v; use a number above 0", scale)
	}
	n := &Network{pair: newPair()}
	inside := 1
	for _, l := range levels {
		level := networkLevel{
			size: l.Size, latency: float64(l.Latency) * scale * 1e9, perByte: scale * 1e9 / float64(l.Bandwidth),
			out: make([]Tick, ranks), in: make([]Tick, ranks), inside: inside,
		}
		if l.Oversubscription > 1 {
			level.shared = level.perByte * l.Oversubscription / float64(inside)
			domains := (ranks + inside - 1) / inside
			level.up, level.down = make([]Tick, domains), make([]Tick, domains)
		}
		n.levels = append(n.levels, level)
		inside = l.Size
	}
	return n, nil
}

// newPair is the flow of one message from member 0 to member 1.
func newPair() *Flow {
	s, _ := New(Broadcast, Direct, 2, 0)
	return NewFlow(s)
}

// Begin starts a flow among ranks, which are by position; the slice must stay as it is. part is the bytes of one part; sizes, if not
// nil, are those of each message instead. Every member has come at the given time. l hears of each member that finishes, with the token.
func (n *Network) Begin(at Tick, f *Flow, ranks []int, part float64, sizes []float64, token uint64, l Listener) {
	r := n.newRun(f)
	r.ranks, r.part, r.sizes, r.token, r.listener = ranks, part, sizes, token, l
	n.events.push(event{at: at, order: r.number, run: r, transfer: begin})
}

// Send starts a message between the two ranks of the slice, which must stay as it is.
func (n *Network) Send(at Tick, ranks []int, bytes float64, token uint64, l Listener) {
	n.Begin(at, n.pair, ranks, bytes, nil, token, l)
}

// Next is the time of the next event, if there is any.
func (n *Network) Next() (Tick, bool) {
	if len(n.events) == 0 {
		return 0, false
	}
	return n.events[0].at, true
}

// Advance lets everything happen that happens up to a time.
func (n *Network) Advance(to Tick) {
	for len(n.events) > 0 && n.events[0].at <= to {
		e := n.events.pop()
		switch {
		case e.transfer == begin:
			for m := range e.run.flow.members {
				n.enter(e.run, m, e.at)
			}
		case e.phase == arrival:
			t := &e.run.flow.transfers[e.transfer]
			n.arrive(e.run, int(t.From), e.at)
			n.arrive(e.run, int(t.To), e.at)
		default:
			n.launch(e.run, e.transfer, e.at)
		}
	}
}

// enter brings a member into its next round, or to its end.
func (n *Network) enter(r *run, member int, at Tick) {
	rounds := r.flow.rounds[member]
	if r.round[member] == len(rounds) {
		r.left--
		r.listener.Finished(r.token, member, at)
		if r.left == 0 {
			r.listener, r.ranks, r.sizes = nil, nil, nil
			n.idle = append(n.idle, r)
		}
		return
	}
	now := rounds[r.round[member]]
	r.round[member]++
	r.pending[member] = len(now)
	for _, t := range now {
		if r.ready[t]++; r.ready[t] == 2 {
			n.events.push(event{at: at, phase: departure, order: r.number, transfer: t, run: r})
		}
	}
}

// arrive counts a message of a member's round.
func (n *Network) arrive(r *run, member int, at Tick) {
	if r.pending[member]--; r.pending[member] == 0 {
		n.enter(r, member, at)
	}
}

// launch takes the links that a message needs, and says when it arrives.
func (n *Network) launch(r *run, transfer int32, at Tick) {
	t := &r.flow.transfers[transfer]
	from, to := r.ranks[t.From], r.ranks[t.To]
	bytes := float64(t.Parts) * r.part
	if r.sizes != nil {
		bytes = r.sizes[transfer]
	}
	l := n.level(from, to)
	start := max(at, l.out[from], l.in[to])
	end := start + ticks(l.latency+bytes*l.perByte)
	if l.shared > 0 {
		for _, link := range []*Tick{&l.up[from/l.inside], &l.down[to/l.inside]} {
			*link = max(*link, start) + ticks(bytes*l.shared)
			end = max(end, *link+ticks(l.latency))
		}
	}
	l.out[from], l.in[to] = end, end
	n.events.push(event{at: end, phase: arrival, order: r.number, transfer: transfer, run: r})
}

// ticks rounds nanoseconds.
func ticks(ns float64) Tick { return Tick(math.Round(ns)) }

// level is the innermost one whose domain holds both ranks.
func (n *Network) level(a, b int) *networkLevel {
	for i := range n.levels {
		if l := &n.levels[i]; a/l.size == b/l.size {
			return l
		}
	}
	return &n.levels[len(n.levels)-1]
}
