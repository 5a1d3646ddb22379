package schedule

// communicate turns lists of computations into whole lists: a send right after what produces, a receive right before what
// consumes, nothing between chunks of one rank.
func communicate(p *Program, route *Route) {
	for rank, computed := range p.Ranks {
		w := writer{route: route, rank: rank, list: make([]Action, 0, 3*len(computed))}
		for _, a := range computed {
			w.compute(a)
		}
		p.Ranks[rank] = w.list
	}
}

// writer writes the list of one rank.
type writer struct {
	route *Route
	rank  int
	list  []Action
}

// compute writes a computation between its receives and its sends.
func (w *writer) compute(a Action) {
	halves, n := a.halves()
	for _, h := range halves[:n] {
		w.message(h, RecvActivation, RecvGradient)
	}
	w.list = append(w.list, a)
	for _, h := range halves[:n] {
		w.message(h, SendActivation, SendGradient)
	}
}

// message writes the message that a half needs or makes: with for a forward, the gradient's otherwise.
func (w *writer) message(h Half, activation, gradient Op) {
	op := gradient
	switch h.Op {
	case Forward:
		op = activation
	case Backward, Input:
	case Weight, Pair, SendActivation, RecvActivation, SendGradient, RecvGradient:
		return // a deferred weight gradient moves nothing
	}
	if peer, ok := w.route.Peer(Place{w.rank, h.Chunk}, op); ok && peer.Rank != w.rank {
		w.list = append(w.list, Action{Op: op, Micro: h.Micro, Chunk: h.Chunk, Peer: peer.Rank})
	}
}

// halves returns the single computations that a does, and how many: two for a pair, one for another computation, none for
// a message.
func (a Action) halves() (halves [2]Half, n int) {
	switch a.Op {
	case Pair:
		return [2]Half{{Forward, a.Micro, a.Chunk}, a.With}, 2
	case Forward, Backward, Input, Weight:
		return [2]Half{{a.Op, a.Micro, a.Chunk}}, 1
	case SendActivation, RecvActivation, SendGradient, RecvGradient:
	}
	return halves, 0
}

// Peer returns the other end of a message of a place: where a SendActivation or RecvGradient finds the next stage, a
// RecvActivation or SendGradient the previous one. It is false at the ends of a pipe and for other operations.
func (r *Route) Peer(at Place, op Op) (Place, bool) {
	switch op {
	case SendActivation, RecvGradient:
		return r.Next(at)
	case RecvActivation, SendGradient:
		return r.Previous(at)
	case Forward, Backward, Input, Weight, Pair:
	}
	return Place{}, false
}
