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

// localMember is one member's part of a group. Its atomics are read by all members, calls by all members
// between two meetings, and the rest by the goroutine that carries this member's operations out.
type localMember struct {
	_       [cacheLine]byte
	arrived atomic.Uint64 // meetings that this member came to
	_       [cacheLine]byte
	calls   [2]published // of this operation and the one before
	left    atomic.Bool
	moving  atomic.Bool // touches others' tensors

	sleeping atomic.Bool
	alarm    chan struct{} // one value when sleeping was cleared by another

	group    *localGroup
	endpoint *localEndpoint
	at       int // position
	rank     int // in the world
	seq      uint64
	dsts     []*tensor.Tensor // scratch of reductions
	srcs     []*tensor.Tensor
	stages   [2][4]*tensor.Tensor // copies of small sources, by operation modulo 2 and dtype
	result   [4]*tensor.Tensor    // scratch of small reductions, by dtype
	queue    localQueue
}

// published is a call as the other members see it.
type published struct {
	Signature
	dst, src *tensor.Tensor
	counts   []int // send, then receive counts of AllToAllV; the member's own copy
	staged   bool  // src is a copy
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

// publish shows a call to the other members. What the call before showed stays: members may still be reading it.
func (m *localMember) publish(c *Call) *published {
	m.seq++
	p := &m.calls[m.seq%2]
	p.Signature = c.Signature(len(m.group.ranks))
	p.dst, p.src = c.Dst, c.Src
	p.staged = m.group.small(&p.Signature)
	if p.staged && p.src != nil {
		p.src = m.stage(c.Src)
	}
	if c.Op == AllToAllV {
		p.counts = append(append(p.counts[:0], c.SendCounts...), c.RecvCounts...)
	}
	return p
}

// call is what the member at position i published for the current operation of m.
func (m *localMember) call(i int) *published { return &m.group.members[i].calls[m.seq%2] }

// meet waits until every member has come to this meeting. The error is the world's failure.
func (m *localMember) meet(how patience) error {
	g, l := m.group, m.group.world
	mark := m.arrived.Load() + 1
	m.arrived.Store(mark)
	if g.sleepers.Load() > 0 && g.complete(mark) {
		g.wakeSleepers()
	}
	watch := l.watch(how, m.endpoint.token)
	for i := 0; i < len(g.members); {
		switch {
		case g.members[i].arrived.Load() >= mark:
			i++
		case l.failure.Load() != nil:
			return l.failure.Load()
		case g.members[i].missed(mark):
			l.Fail(g.ranks[i], fmt.Errorf("%w: before %v of group %q", ErrLeft, m.calls[m.seq%2], g.name))
		case watch.tired():
			m.sleep(mark, how)
			watch.slept(how)
		}
	}
	return nil
}

// complete tells whether every member has come to the meeting.
func (g *localGroup) complete(mark uint64) bool {
	for i := range g.members {
		if g.members[i].arrived.Load() < mark {
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

func (m *localMember) missed(mark uint64) bool { return m.left.Load() && m.arrived.Load() < mark }

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
