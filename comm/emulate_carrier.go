package comm

import (
	"sync"

	"carve/collective"
)

// emulatedCarrier is a member's part of a group on emulated links. Their lock guards it.
type emulatedCarrier struct {
	owner  *emulatedEndpoint
	group  *Group // of the engine below
	shared *emulatedGroup

	changed sync.Cond    // an operation is over
	slots   []emulatedAt // ring by ticket; tickets from first to next are in it
	first   uint64
	next    uint64
	issued  uint64 // collectives
	over    uint64 // collectives that are over on the links
}

// emulatedAt is a started operation.
type emulatedAt struct {
	op       Op
	work     Work            // of the engine below
	computed bool            // by the engine below
	carried  bool            // on the links
	end      collective.Tick // of the later of the two
	listener Listener
	cookie   uint64
}

func (s *emulatedAt) over() bool { return s.computed && s.carried }

func newEmulatedCarrier(e *emulatedEndpoint, g *Group, shared *emulatedGroup) *emulatedCarrier {
	c := &emulatedCarrier{owner: e, group: g, shared: shared, slots: make([]emulatedAt, 8)}
	c.changed.L = &e.net.mu
	e.net.mu.Lock()
	defer e.net.mu.Unlock()
	shared.members[g.rank] = c
	return c
}

// Do implements [Carrier].
func (c *emulatedCarrier) Do(call Call) error { return c.Start(call).Wait() }

// Start implements [Carrier].
func (c *emulatedCarrier) Start(call Call) Work {
	if call.Validate(c.group.rank, c.group.Size()) != nil {
		return c.group.carrier.Start(call) // which refuses it
	}
	net := c.owner.net
	net.mu.Lock()
	net.begin()
	ticket := c.board(&call)
	if call.Op.PointToPoint() {
		c.pair(&call).post(&call, ticket, c.now())
	} else {
		c.shared.issue(c, &call, ticket)
	}
	net.mu.Unlock()
	call.Listener, call.Cookie = c, ticket
	work := c.group.carrier.Start(call)
	net.mu.Lock()
	defer net.mu.Unlock()
	if ticket >= c.first {
		c.slot(ticket).work = work
	}
	return NewWork(c, ticket)
}

// pair is the messages that a call belongs to.
func (c *emulatedCarrier) pair(call *Call) *emulatedPair {
	n := c.group.Size()
	if call.Op == Send {
		return &c.shared.pairs[c.group.rank*n+call.Peer]
	}
	return &c.shared.pairs[call.Peer*n+c.group.rank]
}

// now is the time at which the rank would be here if it had never been woken late.
func (c *emulatedCarrier) now() collective.Tick { return c.owner.net.now() - c.owner.late }

func (c *emulatedCarrier) slot(ticket uint64) *emulatedAt {
	return &c.slots[ticket%uint64(len(c.slots))]
}

// board gives a call a ticket.
func (c *emulatedCarrier) board(call *Call) (ticket uint64) {
	n := uint64(len(c.slots))
	if c.next-c.first == n {
		grown := make([]emulatedAt, 2*n)
		for i := c.first; i < c.next; i++ {
			grown[i%(2*n)] = c.slots[i%n]
		}
		c.slots = grown
	}
	ticket = c.next
	c.next++
	*c.slot(ticket) = emulatedAt{op: call.Op, listener: call.Listener, cookie: call.Cookie}
	return ticket
}

// carried marks what is over on the links. The driver calls it.
func (c *emulatedCarrier) carried(ticket uint64, at collective.Tick) {
	s := c.slot(ticket)
	s.carried, s.end = true, max(s.end, at)
	if listener, cookie := c.settle(s); listener != nil {
		net := c.owner.net
		net.finished = append(net.finished, completion{listener, cookie})
	}
}

// Finished implements [Listener]: the engine below has computed.
func (c *emulatedCarrier) Finished(ticket uint64) {
	net := c.owner.net
	net.mu.Lock()
	s := c.slot(ticket)
	s.computed, s.end = true, max(s.end, net.now())
	listener, cookie := c.settle(s)
	net.mu.Unlock()
	if listener != nil {
		listener.Finished(cookie)
	}
}

// settle wakes who waits for an operation that is over, and returns who else wants to know.
func (c *emulatedCarrier) settle(s *emulatedAt) (Listener, uint64) {
	if !s.over() {
		return nil, 0
	}
	listener, cookie := s.listener, s.cookie
	for c.first < c.next && c.slot(c.first).over() {
		c.first++
	}
	c.changed.Broadcast()
	return listener, cookie
}

// Await implements [Awaiter].
func (c *emulatedCarrier) Await(ticket uint64) error {
	net := c.owner.net
	net.mu.Lock()
	if ticket < c.first || c.slot(ticket).over() {
		net.mu.Unlock()
		return nil
	}
	work := c.slot(ticket).work
	net.mu.Unlock()
	if err := work.Wait(); err != nil {
		return err
	}
	net.mu.Lock()
	defer net.mu.Unlock()
	if ticket < c.first || c.slot(ticket).over() {
		c.owner.late = 0 // the engine below came last
	}
	for ticket >= c.first && !c.slot(ticket).over() {
		if net.failure != nil {
			return &OpError{Rank: c.owner.Rank(), Group: c.group.name, Op: c.slot(ticket).op, Err: net.failure}
		}
		c.sleep(ticket)
	}
	return nil
}

// sleep waits for a change without the token. The caller holds the links' lock, which is given up meanwhile.
func (c *emulatedCarrier) sleep(ticket uint64) {
	token, mu := c.owner.Token(), &c.owner.net.mu
	token.Release()
	c.changed.Wait()
	if s := c.slot(ticket); s.over() {
		c.owner.late = c.owner.net.now() - s.end
	}
	mu.Unlock()
	token.Acquire()
	mu.Lock()
}

// Done implements [Awaiter].
func (c *emulatedCarrier) Done(ticket uint64) bool {
	c.owner.net.mu.Lock()
	defer c.owner.net.mu.Unlock()
	return ticket < c.first || c.slot(ticket).over()
}
