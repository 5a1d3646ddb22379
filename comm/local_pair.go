package comm

import (
	"fmt"
	"sync"
	"sync/atomic"

	"carve/tensor"
)

// localPair carries the messages from one member of a group to another. Sends and receives are matched in the order in
// which each side posted them. Whoever posts the second of the two copies the elements; no goroutine
// runs in the background.
type localPair struct {
	group    *localGroup
	from, to int           // positions
	done     atomic.Uint64 // messages copied

	mu      sync.Mutex // guards what follows; no other lock is taken under it
	changed sync.Cond  // any of the above and what follows, or the world's failure
	sends   posts
	recvs   posts
	copying bool // somebody copies; others leave matched posts to him
	gone    int  // 1 + position of the member that left first; 0 for none
}

// post is one side of a message.
type post struct {
	Signature
	t        *tensor.Tensor
	listener Listener
	cookie   uint64
}

// posts is a first-in first-out list.
type posts struct {
	ring  []post
	added uint64 // posts ever added
	taken uint64 // posts ever taken out
}

func (q *posts) empty() bool { return q.added == q.taken }

func (q *posts) add(p post) (ticket uint64) {
	n := uint64(len(q.ring))
	if q.added-q.taken == n {
		grown := make([]post, max(4, 2*n))
		for i := q.taken; i < q.added; i++ {
			grown[i%uint64(len(grown))] = q.ring[i%n]
		}
		q.ring, n = grown, uint64(len(grown))
	}
	q.ring[q.added%n] = p
	q.added++
	return q.added
}

func (q *posts) take() post {
	p := q.ring[q.taken%uint64(len(q.ring))]
	q.taken++
	return p
}

func (p *localPair) init(g *localGroup, from, to int) {
	p.group, p.from, p.to = g, from, to
	p.changed.L = &p.mu
}

// post posts this member's side of a message.
func (m *localMember) post(c *Call) Work {
	if m.left.Load() {
		return NewWork(failedWork{m.opError(c.Op, ErrClosed)}, 0)
	}
	n := len(m.group.members)
	if c.Op == Send {
		p := &m.group.pairs[m.at*n+c.Peer]
		return NewWork((*localSend)(p), p.post(&p.sends, c, c.Src))
	}
	p := &m.group.pairs[c.Peer*n+m.at]
	return NewWork((*localRecv)(p), p.post(&p.recvs, c, c.Dst))
}

func (p *localPair) post(side *posts, c *Call, t *tensor.Tensor) (ticket uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	ticket = side.add(post{c.Signature(len(p.group.members)), t, c.Listener, c.Cookie})
	for !p.copying && !p.sends.empty() && !p.recvs.empty() && p.dead() == nil {
		p.copyNext()
	}
	return ticket
}

// copyNext carries out the oldest message of which both sides are there. The caller holds mu, which is given up
// meanwhile.
func (p *localPair) copyNext() {
	send, recv := p.sends.take(), p.recvs.take()
	p.copying = true
	ok := p.unlocked(&send, &recv)
	p.copying = false
	if ok {
		p.done.Add(1)
	}
	p.changed.Broadcast()
}

func (p *localPair) unlocked(send, recv *post) (ok bool) {
	p.mu.Unlock()
	defer p.mu.Lock()
	if send.DType != recv.DType || send.Count != recv.Count {
		p.mismatch(send, recv)
		return false
	}
	if p.group.world.failure.Load() != nil {
		return false
	}
	if send.Count > 0 {
		p.group.world.reducer.Copy(recv.t, 0, send.t, 0, send.Count)
	}
	send.finished()
	recv.finished()
	return true
}

func (p *post) finished() {
	if p.listener != nil {
		p.listener.Finished(p.cookie)
	}
}

func (p *localPair) mismatch(send, recv *post) {
	from, to := p.group.ranks[p.from], p.group.ranks[p.to]
	p.group.world.Fail(from, fmt.Errorf("%w: message %d of group %q from rank %d to rank %d is sent as %v[%d] and received as %v[%d]",
		ErrMismatch, p.done.Load()+1, p.group.name, from, to, send.DType, send.Count, recv.DType, recv.Count))
}

// dead tells why no message will be carried any more. The caller holds mu.
func (p *localPair) dead() error {
	if f := p.group.world.failure.Load(); f != nil {
		return f
	}
	return nil
}

// localSend and localRecv are the two sides of a pair as an [Awaiter].
type (
	localSend localPair
	localRecv localPair
)

func (p *localSend) Await(ticket uint64) error { return (*localPair)(p).await(p.from, Send, ticket) }
func (p *localRecv) Await(ticket uint64) error { return (*localPair)(p).await(p.to, Recv, ticket) }

// Done implements [Awaiter].
func (p *localSend) Done(ticket uint64) bool { return (*localPair)(p).done.Load() >= ticket }

// Done implements [Awaiter].
func (p *localRecv) Done(ticket uint64) bool { return (*localPair)(p).done.Load() >= ticket }

// await waits until the member at position at has sent, or received, the message.
func (p *localPair) await(at int, op Op, ticket uint64) error {
	m := &p.group.members[at]
	watch := p.group.world.watch(foreground, m.endpoint)
	for p.done.Load() < ticket {
		if !watch.tired() {
			continue
		}
		if err := p.sleep(m, op, ticket); err != nil {
			return m.opError(op, err)
		}
	}
	watch.found()
	return nil
}

// sleep waits for the message without the token. When the world has failed it waits only until nobody copies.
func (p *localPair) sleep(m *localMember, op Op, ticket uint64) error {
	m.endpoint.token.Release()
	defer m.endpoint.token.Acquire()
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.done.Load() < ticket && (p.copying || p.dead() == nil && p.gone == 0) {
		p.changed.Wait()
	}
	if p.done.Load() >= ticket {
		return nil
	}
	if p.dead() == nil {
		p.abandoned(m, op)
	}
	return p.dead()
}

// abandoned fails the world because the other side left. The caller holds mu, which is given up meanwhile.
func (p *localPair) abandoned(m *localMember, op Op) {
	gone := p.group.ranks[p.gone-1]
	p.mu.Unlock()
	defer p.mu.Lock()
	p.group.world.Fail(gone, fmt.Errorf("%w: before its part of a %v of group %q on rank %d", ErrLeft, op, p.group.name, m.rank))
}

// leftovers takes back what the member at a position, which leaves, has posted and nobody matched; Nobody for both
// sides.
func (p *localPair) leftovers(at int) (left []error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at != Nobody && p.gone == 0 {
		p.gone = at + 1
	}
	for p.copying {
		p.changed.Wait()
	}
	if at != p.to {
		left = append(left, p.drain(&p.sends, "received")...)
	}
	if at != p.from {
		left = append(left, p.drain(&p.recvs, "sent")...)
	}
	p.changed.Broadcast()
	return left
}

func (p *localPair) drain(side *posts, missing string) (left []error) {
	for !side.empty() {
		s := side.take()
		left = append(left, fmt.Errorf("comm: a message of group %q from rank %d to rank %d, %v[%d], was never %s",
			p.group.name, p.group.ranks[p.from], p.group.ranks[p.to], s.DType, s.Count, missing))
	}
	return left
}

// wake makes everybody who waits look again.
func (p *localPair) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed.Broadcast()
}
