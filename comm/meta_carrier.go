package comm

import (
	"fmt"
	"slices"

	"carve/unit"
)

// metaCarrier records one rank's operations in one group.
type metaCarrier struct {
	owner   *Meta
	group   *Group
	issued  int
	flights []Transfer // started and not waited for, in the order of issue
}

// Do implements [Carrier].
func (c *metaCarrier) Do(call Call) error {
	t, err := c.issue(&call, Blocking)
	if err != nil {
		return err
	}
	c.owner.options.Wait(t)
	return nil
}

// Start implements [Carrier].
func (c *metaCarrier) Start(call Call) Work {
	t, err := c.issue(&call, Started)
	if err != nil {
		return NewWork(failedWork{err}, 0)
	}
	c.flights = append(c.flights, t)
	return NewWork(c, uint64(t.Number))
}

// issue checks a call, makes its record and carries it out: only who listens hears of it.
func (c *metaCarrier) issue(call *Call, mode CallMode) (Transfer, error) {
	m := c.owner
	err := m.Err()
	if err == nil {
		if err = call.Validate(c.group.rank, c.group.Size()); err != nil {
			m.Fail(err)
		}
	}
	if err != nil {
		return Transfer{}, &OpError{Rank: m.rank, Group: c.group.name, Op: call.Op, Err: err}
	}
	now := m.options.Now()
	s := call.Signature(c.group.Size())
	t := Transfer{
		Group: c.group, Mode: mode, Number: c.issued, Op: call.Op, Reduce: s.Reduce, Peer: call.Peer, DType: s.DType,
		Bytes: unit.Bytes(call.Size(c.group.Size())), Issued: now, Waited: now,
	}
	c.issued++
	m.options.Issue(t)
	if call.Listener != nil {
		call.Listener.Finished(call.Cookie)
	}
	return t, nil
}

// Await implements [Awaiter].
func (c *metaCarrier) Await(ticket uint64) error {
	i := slices.IndexFunc(c.flights, func(t Transfer) bool { return t.Number == int(ticket) })
	if i < 0 { // recorded before
		return nil
	}
	t := c.flights[i]
	c.flights = slices.Delete(c.flights, i, i+1)
	t.Waited = c.owner.options.Now()
	c.owner.options.Wait(t)
	return nil
}

// Done implements [Awaiter].
func (c *metaCarrier) Done(uint64) bool { return true }

// abandon records what nobody waited for.
func (c *metaCarrier) abandon() (left []error) {
	for _, t := range c.flights {
		t.Mode = Abandoned
		c.owner.options.Wait(t)
		left = append(left, fmt.Errorf("comm: operation %d of group %q, %v, was started on rank %d and never waited for", t.Number, c.group.name, t.Op, c.owner.rank))
	}
	c.flights = nil
	return left
}
