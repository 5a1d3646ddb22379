package schedule

import "slices"

// channel carries messages of one kind from one rank to another, in order.
type channel struct {
	from, to int
	kind     Op // SendActivation or SendGradient
}

// spot names an action: the rank's index-th.
type spot struct{ rank, index int }

// queue is a channel at work: the messages sent and not yet received, and who waits for one.
type queue struct {
	sent    []spot
	taken   int
	waiting bool
}

// walker executes a program without doing anything: it visits every action in an order that a real execution may take.
//
// Sends never block and a receive names its channel, so what one rank can do is never undone by another: every order
// leads to the same end (Kahn 1974). One walk therefore decides for all executions whether a program gets stuck.
type walker struct {
	program *Program
	next    []int // [rank]: index of its next action
	queues  map[channel]*queue
	ready   []int // ranks that may go on
}

func newWalker(p *Program) *walker {
	w := &walker{program: p, next: make([]int, len(p.Ranks)), queues: map[channel]*queue{}}
	for rank := range slices.Backward(p.Ranks) {
		w.ready = append(w.ready, rank)
	}
	return w
}

// walk visits all actions that can be executed. For a receive, sender is the action that sent what it gets.
func (w *walker) walk(visit func(at, sender spot)) {
	for len(w.ready) > 0 {
		rank := w.ready[len(w.ready)-1]
		w.ready = w.ready[:len(w.ready)-1]
		for w.next[rank] < len(w.program.Ranks[rank]) && w.step(rank, visit) {
			w.next[rank]++
		}
	}
}

// step visits a rank's next action, or returns false where it has to wait.
func (w *walker) step(rank int, visit func(at, sender spot)) bool {
	at := spot{rank, w.next[rank]}
	a := w.program.Ranks[rank][at.index]
	if !a.Op.Communicates() {
		visit(at, at)
		return true
	}
	q := w.queue(a.channel(rank))
	switch a.Op {
	case SendActivation, SendGradient:
		visit(at, at)
		q.sent = append(q.sent, at)
		if q.waiting {
			q.waiting = false
			w.ready = append(w.ready, a.Peer)
		}
	case RecvActivation, RecvGradient:
		if q.taken == len(q.sent) {
			q.waiting = true
			return false
		}
		visit(at, q.sent[q.taken])
		q.taken++
	case Forward, Backward, Input, Weight, Pair:
	}
	return true
}

// queue returns the queue of a channel.
func (w *walker) queue(c channel) *queue {
	q, ok := w.queues[c]
	if !ok {
		q = &queue{}
		w.queues[c] = q
	}
	return q
}

// channel returns the channel of a message action of a rank.
func (a Action) channel(rank int) channel {
	switch a.Op {
	case RecvActivation:
		return channel{a.Peer, rank, SendActivation}
	case RecvGradient:
		return channel{a.Peer, rank, SendGradient}
	case SendActivation, SendGradient, Forward, Backward, Input, Weight, Pair:
	}
	return channel{rank, a.Peer, a.Op}
}

// stuck returns the ranks that did not reach the end of their lists.
func (w *walker) stuck() []int {
	var ranks []int
	for rank, next := range w.next {
		if next < len(w.program.Ranks[rank]) {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}
