package comm

import "sync"

// localQueue is the ordered list of one member's collectives. Whoever finds it idle carries its head out: the
// caller of a blocking operation, a goroutine that waits for a started one, or the member's worker.
type localQueue struct {
	member *localMember

	mu      sync.Mutex // guards what follows; no other lock is taken under it
	idle    sync.Cond  // for those who wait for an operation: running or done changed, or the queue is dead
	wanted  sync.Cond  // for the worker: there is something to carry out, or the queue is dead
	pending []Call     // ring of calls; those from issue number done to issued are in it, by issue number
	issued  uint64
	done    uint64
	running bool // somebody carries the head out
	worker  bool // the worker was started
	closed  bool
}

func (q *localQueue) init(m *localMember) {
	q.member = m
	q.idle.L, q.wanted.L = &q.mu, &q.mu
	q.pending = make([]Call, 4)
}

// push appends a call. The caller holds mu.
func (q *localQueue) push(c Call) (ticket uint64) {
	n := uint64(len(q.pending))
	if q.issued-q.done == n {
		grown := make([]Call, 2*n)
		for i := q.done; i < q.issued; i++ {
			grown[i%(2*n)] = q.pending[i%n]
		}
		q.pending, n = grown, 2*n
	}
	slot := &q.pending[q.issued%n]
	send, recv := slot.SendCounts, slot.RecvCounts
	*slot = c
	slot.SendCounts = append(send[:0], c.SendCounts...)
	slot.RecvCounts = append(recv[:0], c.RecvCounts...)
	q.issued++
	return q.issued
}

// head is the oldest call that is not done. The caller holds mu.
func (q *localQueue) head() *Call { return &q.pending[q.done%uint64(len(q.pending))] }

// issue appends a call, unless it could not be carried out any more.
func (q *localQueue) issue(c *Call) (ticket uint64, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.dead(); err != nil {
		return 0, q.member.opError(c.Op, err)
	}
	return q.push(*c), nil
}

// dead tells why no operation will be done any more. The caller holds mu.
func (q *localQueue) dead() error {
	if f := q.member.group.world.failure.Load(); f != nil {
		return f
	}
	if q.closed {
		return ErrClosed
	}
	return nil
}

// rouse sees to it that the worker carries out what was issued.
func (q *localQueue) rouse() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.worker && q.dead() == nil {
		q.worker = true
		e := q.member.endpoint
		e.workers.Add(1)
		e.world.workers.Add(1)
		go q.work()
	}
	if !q.running {
		q.wanted.Signal()
	}
}

// work carries calls out in the background until the rank leaves or the world fails.
func (q *localQueue) work() {
	e := q.member.endpoint
	defer e.world.workers.Done()
	defer e.workers.Done()
	defer func() {
		if value := recover(); value != nil {
			e.Fail(newPanicError(value))
		}
	}()
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.dead() == nil {
		if q.running || q.issued == q.done {
			q.wanted.Wait()
			continue
		}
		q.runHead(background)
	}
}

// runHead carries the head out. The caller holds mu, which is given up meanwhile.
func (q *localQueue) runHead(how patience) {
	q.running = true
	err := q.unlocked(q.head(), how)
	q.running = false
	if err == nil {
		q.done++
	}
	q.idle.Broadcast()
	if q.issued != q.done {
		q.wanted.Signal()
	}
}

func (q *localQueue) unlocked(c *Call, how patience) error {
	q.mu.Unlock()
	defer q.mu.Lock()
	return q.member.carry(c, how)
}

// Await implements [Awaiter].
func (q *localQueue) Await(ticket uint64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.done < ticket {
		err := q.dead()
		switch {
		case err != nil:
			return q.failed(ticket, err)
		case q.running:
			q.sleep(ticket)
		default:
			q.runHead(foreground)
		}
	}
	return nil
}

// Done implements [Awaiter].
func (q *localQueue) Done(ticket uint64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.done >= ticket
}

// sleep waits for a change, without the token. The caller holds mu, which is given up meanwhile.
func (q *localQueue) sleep(ticket uint64) {
	token := q.member.endpoint.token
	token.Release()
	for q.done < ticket && q.running && q.dead() == nil {
		q.idle.Wait()
	}
	q.mu.Unlock()
	token.Acquire()
	q.mu.Lock()
}

// failed makes the error of a call that will not be done. The caller holds mu, which is given up meanwhile.
func (q *localQueue) failed(ticket uint64, err error) error {
	op := q.pending[(ticket-1)%uint64(len(q.pending))].Op
	q.mu.Unlock()
	q.member.group.quiesce()
	q.mu.Lock()
	return q.member.opError(op, err)
}

// wake makes everybody who waits look again.
func (q *localQueue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.idle.Broadcast()
	q.wanted.Broadcast()
}

// close ends the queue.
func (q *localQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.idle.Broadcast()
	q.wanted.Broadcast()
}

// unfinished is the oldest call that is not done, if any.
func (q *localQueue) unfinished() (Signature, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.issued == q.done {
		return Signature{}, false
	}
	return q.head().Signature(len(q.member.group.ranks)), true
}
