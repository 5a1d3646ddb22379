package comm

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"carve/tensor"
)

// localGroup is what the members of one group share.
//
// A collective has two meetings of all members. Before the first, each member publishes its call. Between the two every
// member reads and writes the others' tensors: each has its own part of the work, so that no two write the same
// element. After the second the tensors belong to their owners again.
//
// A small collective does with one meeting: each member publishes a copy of its source, and takes what it needs from
// the others' copies. A copy is overwritten in the next operation but one, when all must have read it, because they
// came to the meeting between.
type localGroup struct {
	world   *Local
	name    string
	ranks   []int
	members []localMember // by position
	pairs   []localPair   // from·n + to

	_        [cacheLine]byte
	sleepers atomic.Int32 // members that sleep until a meeting is complete
	_        [cacheLine]byte
}

// cacheLine keeps what different ranks write apart: two lines, because the processor fetches them in pairs.
const cacheLine = 128

// localMember is one member's part of a group. What others read of it lies apart from what only the goroutine uses that
// carries this member's operations out.
type localMember struct {
	_       [cacheLine]byte
	arrived [2]mark  // at this operation's meetings and the one's before; others wait for a change
	boards  [2]board // of this operation and the one before; others read after the first meeting

	left     atomic.Bool
	moving   atomic.Bool // touches tensors: see quiesce
	sleeping atomic.Bool
	counts   [2][]int      // of boards: send, then receive counts of AllToAllV
	alarm    chan struct{} // one value when sleeping was cleared by another
	_        [cacheLine]byte

	group    *localGroup
	endpoint *localEndpoint
	handle   *Group           // what the endpoint returns
	at       int              // position
	rank     int              // in the world
	seq      uint64           // number of the operation
	staged   bool             // the operation is small
	dsts     []*tensor.Tensor // scratch of reductions
	srcs     []*tensor.Tensor
	stages   [2][4]*tensor.Tensor // copies of small sources, by operation modulo 2 and dtype
	result   [4]*tensor.Tensor    // scratch of small reductions, by dtype
	queue    localQueue
	_        [cacheLine]byte
}

// mark is how far a member has come: twice the number of the operation from its first meeting on, and one more
// from its second. Nothing else is on its cache lines.
type mark struct {
	atomic.Uint64
	_ [cacheLine - 8]byte
}

// board is a call as the other members see it.
type board struct {
	entry
	_ [cacheLine - 32]byte
}

type entry struct {
	Signature
	dst, src *tensor.Tensor // src may be a copy
}

func newLocalGroup(l *Local, name string, ranks []int) *localGroup {
	n := len(ranks)
	g := &localGroup{world: l, name: name, ranks: ranks, members: make([]localMember, n), pairs: make([]localPair, n*n)}
	for i, r := range ranks {
		m := &g.members[i]
		m.group, m.endpoint, m.at, m.rank = g, l.endpoints[r], i, r
		m.alarm = make(chan struct{}, 1)
		m.dsts, m.srcs = make([]*tensor.Tensor, 0, n), make([]*tensor.Tensor, 0, n)
		m.queue.init(m)
		for j := range ranks {
			g.pairs[i*n+j].init(g, i, j)
		}
	}
	return g
}

// publish writes a call on the member's board, where others find it when they see that the member has arrived. What the
// call before wrote stays: members may still be reading it.
func (m *localMember) publish(c *Call) *board {
	m.seq++
	next := entry{c.Signature(len(m.group.ranks)), c.Dst, c.Src}
	m.staged = m.group.small(&next.Signature)
	if m.staged && next.src != nil {
		next.src = m.stage(c.Src)
	}
	if c.Op == AllToAllV {
		counts := &m.counts[m.seq%2]
		*counts = append(append((*counts)[:0], c.SendCounts...), c.RecvCounts...)
	}
	b := &m.boards[m.seq%2]
	if b.entry != next { // else it may stay in the others' caches
		b.entry = next
	}
	return b
}

// call is what the member at position i published for the current operation of m.
func (m *localMember) call(i int) *board { return &m.group.members[i].boards[m.seq%2] }

// countsOf is the member's counts for the current operation of m.
func (m *localMember) countsOf(i int) []int { return m.group.members[i].counts[m.seq%2] }

// meet waits until every member has come to the first or second meeting of the operation. The error is the world's
// failure.
func (m *localMember) meet(which meeting, how patience) error {
	g, l := m.group, m.group.world
	mark, turn := 2*m.seq+uint64(which), m.seq%2
	m.arrived[turn].Store(mark)
	if g.sleepers.Load() > 0 && g.complete(mark) {
		g.wakeSleepers()
	}
	watch := l.watch(how, m.endpoint)
	for i := 0; i < len(g.members); {
		switch {
		case g.members[i].arrived[turn].Load() >= mark:
			i++
		case l.failure.Load() != nil:
			return l.failure.Load()
		case !watch.tired():
		case g.members[i].missed(mark):
			l.Fail(g.ranks[i], fmt.Errorf("%w: before %v of group %q", ErrLeft, m.boards[turn], g.name))
		default:
			m.sleep(mark, how)
			watch.slept(how)
		}
	}
	watch.found()
	return nil
}

// meeting is one of the two of an operation.
type meeting uint64

const (
	before meeting = iota
	after
)

// complete tells whether every member has come to the meeting.
func (g *localGroup) complete(mark uint64) bool {
	for i := range g.members {
		if !g.members[i].came(mark) {
			return false
		}
	}
	return true
}

// sleep waits for the last member to come, for a failure, or for a member to leave. It gives the token up meanwhile.
func (m *localMember) sleep(mark uint64, how patience) {
	g := m.group
	if how == foreground {
		m.endpoint.token.Release()
		defer m.endpoint.token.Acquire()
	}
	g.sleepers.Add(1) // before sleeping, so that the count is never too low
	m.sleeping.Store(true)
	if g.complete(mark) || g.world.failure.Load() != nil || g.missed(mark) {
		if m.sleeping.CompareAndSwap(true, false) {
			g.sleepers.Add(-1)
			return
		}
	}
	<-m.alarm
}

// missed tells whether a member has left that did not come to the meeting.
func (g *localGroup) missed(mark uint64) bool {
	for i := range g.members {
		if g.members[i].missed(mark) {
			return true
		}
	}
	return false
}

func (m *localMember) missed(mark uint64) bool { return m.left.Load() && !m.came(mark) }

// came tells whether the member has come to the meeting.
func (m *localMember) came(mark uint64) bool { return m.arrived[mark/2%2].Load() >= mark }

// wakeSleepers wakes every sleeping member; each looks again for itself.
func (g *localGroup) wakeSleepers() {
	for i := range g.members {
		m := &g.members[i]
		if m.sleeping.CompareAndSwap(true, false) {
			g.sleepers.Add(-1)
			m.alarm <- struct{}{}
		}
	}
}

// quiesce waits until no member touches another's tensors, once the world has failed or this rank has left.
func (g *localGroup) quiesce() {
	for i := range g.members {
		for g.members[i].moving.Load() {
			runtime.Gosched()
		}
	}
}

// leave marks the member as gone and takes back what it posted.
func (m *localMember) leave() {
	m.left.Store(true)
	m.group.wakeSleepers()
	m.queue.close()
	n := len(m.group.members)
	for i := range n {
		m.withdraw(&m.group.pairs[m.at*n+i])
		m.withdraw(&m.group.pairs[i*n+m.at])
	}
}

func (m *localMember) withdraw(p *localPair) {
	left := p.leftovers(m.at)
	if len(left) == 0 {
		return
	}
	l := m.group.world
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unmatched = append(l.unmatched, left...)
}
