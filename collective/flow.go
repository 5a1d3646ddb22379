package collective

// Flow is a schedule made ready for a [Network].
type Flow struct {
	members   int
	transfers []Transfer
	rounds    [][][]int32 // [member][round that it takes part in]: its transfers
}

// NewFlow makes a schedule ready.
func NewFlow(s Schedule) *Flow {
	f := &Flow{members: s.Members, rounds: make([][][]int32, s.Members)}
	for _, round := range s.Rounds {
		for m := range f.rounds {
			f.rounds[m] = append(f.rounds[m], nil)
		}
		for _, t := range round {
			i := int32(len(f.transfers))
			f.transfers = append(f.transfers, t)
			for _, m := range []int32{t.From, t.To} {
				last := len(f.rounds[m]) - 1
				f.rounds[m][last] = append(f.rounds[m][last], i)
			}
		}
		for m, list := range f.rounds {
			if last := len(list) - 1; list[last] == nil {
				f.rounds[m] = list[:last]
			}
		}
	}
	return f
}

// Transfers are the flow's messages, in order.
func (f *Flow) Transfers() []Transfer { return f.transfers }

// run is a flow that is under way.
type run struct {
	flow     *Flow
	number   uint64
	ranks    []int
	part     float64
	sizes    []float64
	token    uint64
	listener Listener
	left     int    // members that have not finished
	round    []int  // next of each member
	pending  []int  // messages of each member's round that have not arrived
	ready    []int8 // of each transfer: how many of its two sides are in its round
}

// newRun makes a run, of an old one if there is one.
func (n *Network) newRun(f *Flow) *run {
	r := &run{}
	if last := len(n.idle) - 1; last >= 0 {
		r, n.idle = n.idle[last], n.idle[:last]
	}
	n.runs++
	r.flow, r.number, r.left = f, n.runs, f.members
	r.round, r.pending, r.ready = zero(r.round, f.members), zero(r.pending, f.members), zero(r.ready, len(f.transfers))
	return r
}

// zero is a list of n zeros, of old memory where that is enough.
func zero[T int | int8](list []T, n int) []T {
	if cap(list) < n {
		return make([]T, n)
	}
	list = list[:n]
	clear(list)
	return list
}

// phase orders what happens at one time.
type phase uint8

const (
	arrival phase = iota
	departure
)

// begin stands for the beginning of a run in the place of a transfer.
const begin = -1

// event is what happens at a time.
type event struct {
	at       Tick
	phase    phase
	order    uint64 // of the run
	transfer int32
	run      *run
}

func (e *event) before(f *event) bool {
	switch {
	case e.at != f.at:
		return e.at < f.at
	case e.phase != f.phase:
		return e.phase < f.phase
	case e.order != f.order:
		return e.order < f.order
	}
	return e.transfer < f.transfer
}

// events is a heap.
type events []event

func (q *events) push(e event) {
	h := append(*q, e)
	for i := len(h) - 1; i > 0 && h[i].before(&h[(i-1)/2]); i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
	*q = h
}

func (q *events) pop() event {
	h := *q
	top, last := h[0], len(h)-1
	h[0], h[last] = h[last], event{}
	h = h[:last]
	for i := 0; ; {
		least := i
		for _, child := range []int{2*i + 1, 2*i + 2} {
			if child < last && h[child].before(&h[least]) {
				least = child
			}
		}
		if least == i {
			break
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
	*q = h
	return top
}
