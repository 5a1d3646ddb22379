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
	said := make([]Signature, len(m.group.members))
	for i := range said {
		said[i] = m.call(i).Signature
	}
	odd, err := disagreement(m.group.name, m.group.ranks, m.seq, said)
	m.group.world.Fail(m.group.ranks[odd], err)
	return m.group.world.failure.Load()
}

// disagreement finds the first member that called something else than most did, and says so; the error is nil when all
// called the same.
func disagreement(group string, ranks []int, seq uint64, said []Signature) (odd int, err error) {
	votes := map[Signature]int{}
	best := 0
	for _, s := range said {
		votes[s]++
	}
	for i, s := range said {
		if votes[s] > votes[said[best]] {
			best = i
		}
	}
	most := said[best]
	for odd < len(said) && said[odd] == most {
		odd++
	}
	if odd == len(said) {
		return odd, nil
	}
	return odd, fmt.Errorf("%w: operation %d of group %q is %v on rank %d, but %v on rank %d (%d of %d ranks)",
		ErrMismatch, seq, group, said[odd], ranks[odd], most, ranks[best], votes[most], len(ranks))
}

// verifyCounts compares what each member sends with what each other one expects.
func (m *localMember) verifyCounts() error {
	odd, err := miscount(m.group.name, m.group.ranks, m.seq, m.countsOf)
	if err == nil {
		return nil
	}
	m.group.world.Fail(m.group.ranks[odd], err)
	return m.group.world.failure.Load()
}

// miscount finds the first member of a variable all-to-all that sends another number of elements than the receiver expects. A
// member's counts are those that it sends, and then those that it expects.
func miscount(group string, ranks []int, seq uint64, countsOf func(member int) []int) (odd int, err error) {
	n := len(ranks)
	for i := range n {
		for j := range n {
			sent, expected := countsOf(i)[j], countsOf(j)[n+i]
			if sent == expected {
				continue
			}
			return i, fmt.Errorf("%w: in operation %d of group %q, all-to-all-v, rank %d sends %d elements to rank %d, which expects %d",
				ErrMismatch, seq, group, ranks[i], sent, ranks[j], expected)
		}
	}
	return 0, nil
}
