package comm

import "fmt"

// Do implements [Carrier].
func (m *localMember) Do(c Call) error {
	if err := m.check(&c); err != nil {
		return err
	}
	if c.Op.PointToPoint() {
		return m.post(&c).Wait()
	}
	ticket, err := m.queue.issue(&c)
	if err != nil {
		return err
	}
	return m.queue.Await(ticket)
}

// Start implements [Carrier].
func (m *localMember) Start(c Call) Work {
	err := m.check(&c)
	if err == nil && c.Op.PointToPoint() {
		return m.post(&c)
	}
	var ticket uint64
	if err == nil {
		ticket, err = m.queue.issue(&c)
	}
	if err != nil {
		return NewWork(failedWork{err}, 0)
	}
	m.queue.rouse()
	return NewWork(&m.queue, ticket)
}

// failedWork is an operation that was never issued.
type failedWork struct{ err error }

func (f failedWork) Await(uint64) error { return f.err }

// Done implements [Awaiter].
func (f failedWork) Done(uint64) bool { return false }

// check refuses an invalid call. The others would wait for this rank in vain, so the world ends.
func (m *localMember) check(c *Call) error {
	err := c.Validate(m.at, len(m.group.members))
	if err == nil {
		return nil
	}
	err = m.opError(c.Op, err)
	m.endpoint.Fail(err)
	return err
}

func (m *localMember) opError(op Op, err error) error {
	return &OpError{Rank: m.rank, Group: m.group.name, Op: op, Err: err}
}

// carry carries out one collective: it meets the others, checks that all called the same, does this member's
// part, and meets them again.
func (m *localMember) carry(c *Call, how patience) error {
	err := m.exchange(c, how)
	if err != nil {
		m.group.quiesce()
		return m.opError(c.Op, err)
	}
	if c.Listener != nil {
		c.Listener.Finished(c.Cookie)
	}
	return nil
}

func (m *localMember) exchange(c *Call, how patience) error {
	mine := m.publish(c)
	if err := m.meet(before, how); err != nil {
		return err
	}
	if err := m.verify(mine); err != nil {
		return err
	}
	if c.Op == Barrier {
		return nil
	}
	if err := m.work(mine, how); err != nil || m.staged {
		return err
	}
	return m.meet(after, how)
}

// verify compares all members' calls. On a difference every member arrives at the same error.
func (m *localMember) verify(mine *board) error {
	for i := range m.group.members {
		if m.call(i).Signature != mine.Signature {
			return m.mismatch()
		}
	}
	if mine.Op == AllToAllV {
		return m.verifyCounts()
	}
	return nil
}

// mismatch ends the world because of the first member that called something else than most did.
func (m *localMember) mismatch() error {
	votes := map[Signature]int{}
	best := 0
	for i := range m.group.members {
		votes[m.call(i).Signature]++
	}
	for i := range m.group.members {
		if votes[m.call(i).Signature] > votes[m.call(best).Signature] {
			best = i
		}
	}
	most, odd := m.call(best).Signature, 0
	for m.call(odd).Signature == most {
		odd++
	}
	ranks := m.group.ranks
	m.group.world.Fail(ranks[odd], fmt.Errorf("%w: operation %d of group %q is %v on rank %d, but %v on rank %d (%d of %d ranks)",
		ErrMismatch, m.seq, m.group.name, m.call(odd).Signature, ranks[odd], most, ranks[best], votes[most], len(ranks)))
	return m.group.world.failure.Load()
}

// verifyCounts compares what each member sends with what each other one expects.
func (m *localMember) verifyCounts() error {
	n, ranks := len(m.group.members), m.group.ranks
	for i := range n {
		for j := range n {
			sent, expected := m.countsOf(i)[j], m.countsOf(j)[n+i]
			if sent == expected {
				continue
			}
			m.group.world.Fail(ranks[i], fmt.Errorf("%w: in operation %d of group %q, all-to-all-v, rank %d sends %d elements to rank %d, which expects %d",
				ErrMismatch, m.seq, m.group.name, ranks[i], sent, ranks[j], expected))
			return m.group.world.failure.Load()
		}
	}
	return nil
}
