package collective

import "slices"

// Schedule is an algorithm for one operation among members that are numbered from 0.
type Schedule struct {
	Op      Op
	Root    int // of the operations that have one
	Members int
	Blocks  int // that the operand is cut into: Members, or 1; 0 for a barrier
	Rounds  [][]Transfer
}

// Transfer is one message: all that From holds of some blocks, which To then holds too; in an all-to-all From does not hold it any
// more.
type Transfer struct {
	From, To int32
	Parts    int32 // how many blocks long the message is
	Blocks   []int32
}

// reversed runs a schedule of spanning trees backwards, for the operation that combines instead of spreading, or collects
// instead of handing out.
func (s Schedule) reversed(op Op) Schedule {
	back := Schedule{Op: op, Root: s.Root, Members: s.Members, Blocks: s.Blocks, Rounds: make([][]Transfer, len(s.Rounds))}
	for i, round := range s.Rounds {
		turned := make([]Transfer, len(round))
		for j, t := range round {
			t.From, t.To = t.To, t.From
			turned[len(round)-1-j] = t
		}
		back.Rounds[len(s.Rounds)-1-i] = turned
	}
	return back
}

// then is one schedule after another; both cut the operand alike.
func (s Schedule) then(op Op, next Schedule) Schedule {
	s.Op = op
	s.Rounds = slices.Concat(s.Rounds, next.Rounds)
	return s
}

// New makes the schedule of a flat algorithm: one that takes all links to be alike. It returns false when the algorithm has none
// for the operation and number of members.
func New(op Op, a Algorithm, n, root int) (Schedule, bool) {
	if n < 1 || root < 0 || root >= n || !a.offers(op, n) {
		return Schedule{}, false
	}
	b := builder{n: n, root: root, cycle: make([]int32, 2*n)}
	for i := range b.cycle {
		b.cycle[i] = int32(i % n)
	}
	s := b.build(op, a)
	s.Op, s.Root = op, root
	return s, true
}

// builder makes flat schedules.
type builder struct {
	n, root int
	cycle   []int32 // 0 … n-1 0 … n-1: any run of blocks, around the end
}

func (b *builder) build(op Op, a Algorithm) Schedule {
	switch op {
	case Barrier:
		return b.barrier(a)
	case Broadcast:
		return b.broadcast(a)
	case Reduce:
		return b.broadcast(a).reversed(Reduce)
	case Scatter:
		return b.scatter(a)
	case Gather:
		return b.scatter(a).reversed(Gather)
	case AllGather:
		return b.allGather(a)
	case ReduceScatter:
		return b.allGather(a).reversed(ReduceScatter)
	case AllReduce:
		return b.allReduce(a)
	case AllToAll:
		return b.allToAll(a)
	case numOps:
	}
	return Schedule{}
}

func (b *builder) schedule(blocks int, rounds [][]Transfer) Schedule {
	return Schedule{Root: b.root, Members: b.n, Blocks: blocks, Rounds: rounds}
}

// run is blocks [lo, lo+k), around the end.
func (b *builder) run(lo, k int) []int32 {
	lo = ((lo % b.n) + b.n) % b.n
	return b.cycle[lo : lo+k]
}

func (b *builder) message(from, to int, blocks []int32) Transfer {
	return Transfer{From: b.cycle[from%b.n], To: b.cycle[to%b.n], Blocks: blocks, Parts: int32(len(blocks))}
}
