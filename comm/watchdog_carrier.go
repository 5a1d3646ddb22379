package comm

import "runtime"

// watchedCarrier records the calls of one rank in one group.
type watchedCarrier struct {
	rank   *watched
	group  *Group
	handle *Group // what the endpoint returns
	index  int    // among the rank's carriers

	// Guarded by the rank's mutex:
	collectives    int   // issued
	sent, received []int // messages issued, by position
	progress       int64 // when an operation of the group last ended
}

// Do implements [Carrier].
func (c *watchedCarrier) Do(call Call) error {
	if call.Validate(c.group.rank, c.group.Size()) != nil {
		return c.group.carrier.Do(call) // which refuses it
	}
	ticket := c.begin(&call, 1)
	err := c.group.carrier.Do(call)
	c.end(ticket, err)
	return err
}

// Start implements [Carrier].
func (c *watchedCarrier) Start(call Call) Work {
	if call.Validate(c.group.rank, c.group.Size()) != nil {
		return c.group.carrier.Start(call)
	}
	ticket := c.begin(&call, 0)
	call.Listener, call.Cookie = c, ticket
	work := c.group.carrier.Start(call)
	r := c.rank
	r.mu.Lock()
	defer r.mu.Unlock()
	if o := r.live(ticket); o != nil {
		o.work = work
	}
	return NewWork(c, ticket)
}

// begin enters a call into the record.
func (c *watchedCarrier) begin(call *Call, waiters int) (ticket uint64) {
	r, now := c.rank, c.rank.dog.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	ticket, o := r.next()
	*o = watchedOp{
		carrier: c, ticket: ticket, sig: call.Signature(c.group.Size()), peer: Nobody, bytes: call.Size(c.group.Size()),
		issued: now, waiters: waiters, listener: call.Listener, cookie: call.Cookie,
	}
	if waiters > 0 {
		o.since = now
	}
	o.seq = c.number(call)
	if call.Op.PointToPoint() {
		o.peer = call.Peer
	}
	runtime.Callers(3, o.callers[:]) // from the caller of the method of Group on, or of a decorator
	return ticket
}

// number counts the call. The caller holds the rank's mutex.
func (c *watchedCarrier) number(call *Call) int {
	count := &c.collectives
	switch call.Op {
	case Send:
		count = &c.sent[call.Peer]
	case Recv:
		count = &c.received[call.Peer]
	case Barrier, Broadcast, Reduce, AllReduce, Gather, AllGather, Scatter, ReduceScatter, AllToAll, AllToAllV, numOps:
	}
	*count++
	return *count
}

// end enters the end of a blocking operation, or of waiting for a started one.
func (c *watchedCarrier) end(ticket uint64, err error) {
	r, now := c.rank, c.rank.dog.now()
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.live(ticket)
	if err != nil || o == nil {
		return
	}
	o.waiters--
	if !o.over {
		o.over, o.ended, c.progress = true, now, now
	}
}

// Finished implements [Listener]: a started operation has ended.
func (c *watchedCarrier) Finished(ticket uint64) {
	r, now := c.rank, c.rank.dog.now()
	r.mu.Lock()
	var listener Listener
	var cookie uint64
	if o := r.live(ticket); o != nil {
		listener, cookie = o.listener, o.cookie
		if !o.over {
			o.over, o.ended, c.progress = true, now, now
		}
	}
	r.mu.Unlock()
	if listener != nil {
		listener.Finished(cookie)
	}
}

// Await implements [Awaiter].
func (c *watchedCarrier) Await(ticket uint64) error {
	r, now := c.rank, c.rank.dog.now()
	r.mu.Lock()
	o := r.live(ticket)
	if o == nil {
		r.mu.Unlock()
		return nil
	}
	work := o.work
	o.waiters++
	if o.since == 0 {
		o.since = now
	}
	r.mu.Unlock()
	err := work.Wait()
	c.end(ticket, err)
	return err
}

// Done implements [Awaiter].
func (c *watchedCarrier) Done(ticket uint64) bool {
	r := c.rank
	r.mu.Lock()
	o := r.live(ticket)
	if o == nil {
		r.mu.Unlock()
		return true
	}
	work := o.work
	r.mu.Unlock()
	return work.Done()
}
