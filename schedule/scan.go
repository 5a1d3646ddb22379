package schedule

import "fmt"

// progress is what has happened to a micro-batch on a chunk.
type progress uint8

const (
	gotInput     progress = 1 << iota // its activation was received
	ranForward                        // F
	sentOutput                        // its result was sent on
	gotGradient                       // the gradient of its result was received
	ranBackward                       // B or I
	ranWeight                         // B or W
	sentGradient                      // the gradient of its input was sent back
)

// scan follows one rank's list and knows what the rank has. What comes from other ranks it takes as received: that
// they send it, in the same order, is for the walk to show.
type scan struct {
	program *Program
	route   *Route
	rank    int
	state   []progress // [chunk·m + micro-batch]
	peak    peaks
	now     peaks
}

// peaks counts micro-batches times chunks on a rank.
type peaks struct{ inFlight, held, deferred int }

func newScan(p *Program, route *Route, rank int) *scan {
	return &scan{program: p, route: route, rank: rank, state: make([]progress, len(p.Stages[rank])*p.Micros())}
}

// run follows the whole list and returns its first fault, or nil.
func (s *scan) run() *Fault {
	list := s.program.Ranks[s.rank]
	for index, a := range list {
		if rule, message := s.act(a); message != "" {
			return &Fault{rule, s.rank, index, a, message}
		}
	}
	if missing, ok := s.missing(); ok {
		return &Fault{RuleMissing, s.rank, len(list), missing, "it is nowhere in the list; add it"}
	}
	return nil
}

// act checks and applies one action. An empty message is success.
func (s *scan) act(a Action) (Rule, string) {
	if int(a.Op) >= len(opNames()) || a.Op == Pair && a.With.Op != Backward && a.With.Op != Input {
		return RuleForeign, "no such operation; use the constants, and Backward or Input in a pair"
	}
	if a.Op.Communicates() {
		return s.message(a)
	}
	halves, n := a.halves()
	for _, h := range halves[:n] { // both before either: they run at once
		if rule, message := s.needs(h); message != "" {
			return rule, message
		}
	}
	for _, h := range halves[:n] {
		s.apply(h)
	}
	return "", ""
}

// exists tells whether a micro-batch passes a chunk.
func (s *scan) exists(micro, chunk int) bool {
	stages := s.program.Stages[s.rank]
	return chunk >= 0 && chunk < len(stages) && micro >= 0 && micro < s.program.Micros() &&
		s.program.Pipes[micro] == stages[chunk].Pipe
}

// at returns the progress of a micro-batch on a chunk.
func (s *scan) at(micro, chunk int) *progress { return &s.state[chunk*s.program.Micros()+micro] }

// needs returns what keeps a computation from running.
func (s *scan) needs(h Half) (Rule, string) {
	if !s.exists(h.Micro, h.Chunk) {
		return s.foreign(h.Micro, h.Chunk)
	}
	has := *s.at(h.Micro, h.Chunk)
	switch h.Op {
	case Forward:
		if has&ranForward != 0 {
			return RuleDoubled, "this forward has run; run it once"
		}
		return s.supplied(h, RecvActivation, gotInput, ranForward)
	case Backward, Input:
		if has&ranBackward != 0 {
			return RuleDoubled, "this backward has run; run it once, as B or as I"
		}
		if has&ranForward == 0 {
			return RuleOrder, "its forward has not run; move it after " + Half{Forward, h.Micro, h.Chunk}.String()
		}
		return s.supplied(h, RecvGradient, gotGradient, ranBackward)
	case Weight:
		if has&ranWeight != 0 {
			return RuleDoubled, "these weight gradients were added; add them once, by B or by W"
		}
		if has&ranBackward == 0 {
			return RuleOrder, "its input gradient has not run; move it after " + Half{Input, h.Micro, h.Chunk}.String()
		}
	case Pair, SendActivation, RecvActivation, SendGradient, RecvGradient:
	}
	return "", ""
}

// supplied tells whether the neighbouring stage's result is there: received, or made by this rank where it holds both.
func (s *scan) supplied(h Half, receive Op, received, ran progress) (Rule, string) {
	source, ok := s.route.Peer(Place{s.rank, h.Chunk}, receive)
	if !ok {
		return "", ""
	}
	if source.Rank == s.rank {
		if *s.at(h.Micro, source.Chunk)&ran == 0 {
			return RuleOrder, fmt.Sprintf("it needs the result of chunk %d of this rank; move it after %s", source.Chunk, Half{h.Op, h.Micro, source.Chunk})
		}
		return "", ""
	}
	if *s.at(h.Micro, h.Chunk)&received == 0 {
		return RuleOrder, fmt.Sprintf("what it needs was not received; move it after %s", Action{Op: receive, Micro: h.Micro, Chunk: h.Chunk, Peer: source.Rank})
	}
	return "", ""
}

// foreign says what of a micro-batch and chunk does not exist.
func (s *scan) foreign(micro, chunk int) (Rule, string) {
	return RuleForeign, fmt.Sprintf("micro-batch %d does not pass a chunk %d of this rank; use a micro-batch of 0 to %d that travels the pipe of a chunk of 0 to %d",
		micro, chunk, s.program.Micros()-1, len(s.program.Stages[s.rank])-1)
}

// apply notes that a computation ran.
func (s *scan) apply(h Half) {
	has := s.at(h.Micro, h.Chunk)
	switch h.Op {
	case Forward:
		*has |= ranForward
		s.now.inFlight++
		s.now.held++
	case Backward:
		*has |= ranBackward | ranWeight
		s.now.inFlight--
		s.now.held--
	case Input:
		*has |= ranBackward
		s.now.inFlight--
		s.now.deferred++
	case Weight:
		*has |= ranWeight
		s.now.held--
		s.now.deferred--
	case Pair, SendActivation, RecvActivation, SendGradient, RecvGradient:
	}
	s.peak = peaks{max(s.peak.inFlight, s.now.inFlight), max(s.peak.held, s.now.held), max(s.peak.deferred, s.now.deferred)}
}

// message checks and applies a send or a receive.
func (s *scan) message(a Action) (Rule, string) {
	if !s.exists(a.Micro, a.Chunk) {
		return s.foreign(a.Micro, a.Chunk)
	}
	peer, ok := s.route.Peer(Place{s.rank, a.Chunk}, a.Op)
	switch {
	case !ok:
		return RuleForeign, "the pipe ends here; remove it"
	case peer.Rank == s.rank:
		return RuleForeign, "the neighbouring stage is on the same rank, which hands over in place; remove it"
	case peer.Rank != a.Peer:
		return RulePeer, fmt.Sprintf("the neighbouring stage is on rank %d; use it as the peer", peer.Rank)
	}
	has := s.at(a.Micro, a.Chunk)
	done, needed, maker := s.effect(a.Op)
	switch {
	case *has&done != 0:
		return RuleDoubled, "this message was sent or received; do it once"
	case *has&needed != needed:
		return RuleOrder, fmt.Sprintf("what it sends is not there; move it after %s", Half{maker, a.Micro, a.Chunk})
	}
	*has |= done
	return "", ""
}

// effect returns what a message marks as done, what it needs, and the operation that makes that.
func (*scan) effect(op Op) (done, needed progress, maker Op) {
	switch op {
	case SendActivation:
		return sentOutput, ranForward, Forward
	case SendGradient:
		return sentGradient, ranBackward, Backward
	case RecvActivation:
		return gotInput, 0, op
	case RecvGradient:
		return gotGradient, 0, op
	case Forward, Backward, Input, Weight, Pair:
	}
	return 0, 0, op
}

// missing returns the first action that a finished list lacks.
func (s *scan) missing() (Action, bool) {
	for chunk := range s.program.Stages[s.rank] {
		for micro := range s.program.Micros() {
			if !s.exists(micro, chunk) {
				continue
			}
			if a, ok := s.lacks(micro, chunk); ok {
				return a, true
			}
		}
	}
	return Action{}, false
}

// lacks returns the first action that a micro-batch lacks on a chunk. Receives are not asked for: computations need them.
func (s *scan) lacks(micro, chunk int) (Action, bool) {
	has := *s.at(micro, chunk)
	for _, due := range []struct {
		op   Op
		done progress
	}{
		{Forward, ranForward},
		{SendActivation, sentOutput},
		{Backward, ranBackward},
		{SendGradient, sentGradient},
		{Weight, ranWeight},
	} {
		a := Action{Op: due.op, Micro: micro, Chunk: chunk}
		if due.op.Communicates() {
			peer, ok := s.route.Peer(Place{s.rank, chunk}, due.op)
			if !ok || peer.Rank == s.rank {
				continue
			}
			a.Peer = peer.Rank
		}
		if has&due.done == 0 {
			return a, true
		}
	}
	return Action{}, false
}
