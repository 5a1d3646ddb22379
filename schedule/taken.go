package schedule

import "slices"

// Taken tells, for every send, when its rank knows without asking that the message was received: the index of the first later
// action that cannot have run before the receive has, or the length of the rank's list where none tells. For other actions
// it is 0. What a rank holds of sent messages if it frees each by then depends on the program alone, not on timing.
//
// It follows which actions of other ranks every action comes after (vector clocks: Fidge 1988, Mattern 1989). The program must be one that
// Check passes. Time and memory are messages × ranks.
func Taken(p *Program) [][]int {
	f := &follower{program: p, taken: make([][]int, len(p.Ranks)), known: make([][]int, len(p.Ranks)), sent: map[spot][]int{}, open: map[int][]open{}}
	for rank, list := range p.Ranks {
		f.taken[rank], f.known[rank] = make([]int, len(list)), make([]int, len(p.Ranks))
		for i, a := range list {
			if a.Op == SendActivation || a.Op == SendGradient {
				f.taken[rank][i] = len(list)
			}
		}
	}
	newWalker(p).walk(f.visit)
	return f.taken
}

// follower walks a program and keeps what each rank knows of the others.
type follower struct {
	program *Program
	taken   [][]int
	known   [][]int        // [rank][other]: how many actions of the other one have run before what the rank does now
	sent    map[spot][]int // what the sender knew, by send that was not received yet
	open    map[int][]open // by sender: messages that were received, which it does not know
}

// open is a message that was received.
type open struct{ send, by, receive int }

// visit follows one action.
func (f *follower) visit(at, sender spot) {
	rank := at.rank
	f.known[rank][rank] = at.index + 1
	switch a := f.program.Ranks[rank][at.index]; a.Op {
	case SendActivation, SendGradient:
		f.sent[at] = slices.Clone(f.known[rank])
	case RecvActivation, RecvGradient:
		for other, n := range f.sent[sender] {
			f.known[rank][other] = max(f.known[rank][other], n)
		}
		delete(f.sent, sender)
		f.open[sender.rank] = append(f.open[sender.rank], open{sender.index, rank, at.index})
		f.settle(rank, at.index)
	case Forward, Backward, Input, Weight, Pair:
	}
}

// settle closes what a rank has come to know with an action.
func (f *follower) settle(rank, index int) {
	f.open[rank] = slices.DeleteFunc(f.open[rank], func(o open) bool {
		if f.known[rank][o.by] <= o.receive {
			return false
		}
		f.taken[rank][o.send] = index
		return true
	})
}
