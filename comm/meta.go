package comm

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"carve/tensor"
	"carve/unit"
)

// Meta is the endpoint of one rank of a world that is not there, of any size. Every operation is over at once, moves
// nothing, and is recorded: what the rank would send and receive, and how long it would have to be hidden.
//
// Calls are checked as by every engine. One goroutine uses it.
type Meta struct {
	rank, size int
	token      *Token
	options    MetaOptions
	groups     map[string]*metaCarrier
	joined     []*metaCarrier // the values of groups in the order of joining

	mu      sync.Mutex // guards what follows
	failure *Failure
	closed  bool
}

// MetaOptions say who hears of operations.
type MetaOptions struct {
	// Now counts what the rank does besides; a transfer is stamped with it. nil means always 0.
	Now func() int
	// Issue is told of every operation when it is issued, and Wait when it was waited for, or, if nobody has by then, when
	// the endpoint is closed. nil means nobody is.
	Issue, Wait func(Transfer)
}

// Transfer is one operation of one rank as a [Meta] endpoint records it.
type Transfer struct {
	Group  *Group
	Number int // of the operation in its group, counted from 0 in the order of issue
	Op     Op
	Reduce tensor.ReduceOp // of the operations that reduce
	Peer   int             // root, destination or source, as a position in the group
	DType  tensor.DType
	Bytes  unit.Bytes // [Call.Size]
	Mode   CallMode
	// Issued and Waited are [MetaOptions].Now when the operation was issued, and when it was first waited for; before that
	// both are the same. What lies between can hide it.
	Issued, Waited int
}

// CallMode is how an operation was called.
type CallMode uint8

// The modes.
const (
	Blocking  CallMode = iota // the rank stood still from issue to end
	Started                   // the rank went on, and waited later
	Abandoned                 // started, and nobody waited
)

// String is the name in tables.
func (m CallMode) String() string {
	switch m {
	case Blocking:
		return "blocking"
	case Started:
		return "started"
	case Abandoned:
		return "abandoned"
	}
	return fmt.Sprintf("callmode(%d)", uint8(m))
}

// Hidden is what the rank did between issue and wait, in the unit of [MetaOptions].Now. 0 means that the operation is
// exposed: on the critical path of the rank.
func (t Transfer) Hidden() int { return t.Waited - t.Issued }

// Wire is the bytes that the busiest link of this rank carries for it, by a ring ([Op.BusFactor]).
func (t Transfer) Wire() float64 { return float64(t.Bytes) * t.Op.BusFactor(t.Group.Size()) }

// NewMeta is the endpoint of a rank of a world of size ranks. Its maker holds the compute token.
func NewMeta(rank, size int, o MetaOptions) (*Meta, error) {
	if size < 1 || rank < 0 || rank >= size {
		return nil, fmt.Errorf("comm: rank %d of a world of %d; use 0 to %d", rank, size, size-1)
	}
	if o.Now == nil {
		o.Now = func() int { return 0 }
	}
	if o.Issue == nil {
		o.Issue = func(Transfer) {}
	}
	if o.Wait == nil {
		o.Wait = func(Transfer) {}
	}
	return &Meta{rank: rank, size: size, token: NewToken(), options: o, groups: map[string]*metaCarrier{}}, nil
}

// Rank implements [Endpoint].
func (m *Meta) Rank() int { return m.rank }

// Size implements [Endpoint].
func (m *Meta) Size() int { return m.size }

// Token implements [Endpoint].
func (m *Meta) Token() *Token { return m.token }

// Fail implements [Endpoint].
func (m *Meta) Fail(err error) { m.fail(m.rank, err) }

// Cancel implements [Endpoint].
func (m *Meta) Cancel(err error) { m.fail(Nobody, err) }

func (m *Meta) fail(rank int, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failure == nil {
		m.failure = &Failure{Rank: rank, Err: err}
	}
}

// Err implements [Endpoint].
func (m *Meta) Err() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.failure != nil:
		return m.failure
	case m.closed:
		return &Failure{Rank: Nobody, Err: ErrClosed}
	}
	return nil
}

// Group implements [Endpoint].
func (m *Meta) Group(name string, ranks []int) (*Group, error) {
	if err := checkRanks(name, ranks, m.rank, m.size); err != nil {
		return nil, err
	}
	if c := m.groups[name]; c != nil {
		if !slices.Equal(c.group.ranks, ranks) {
			return nil, fmt.Errorf("comm: group %q on rank %d is asked for with other ranks; use one name for each set", name, m.rank)
		}
		return c.group, nil
	}
	c := &metaCarrier{owner: m}
	c.group = NewGroup(name, ranks, slices.Index(ranks, m.rank), c)
	m.groups[name] = c
	m.joined = append(m.joined, c)
	return c.group, nil
}

// Close implements [Endpoint]. Operations that nobody waited for are recorded as such and are an error.
func (m *Meta) Close() error {
	m.mu.Lock()
	closed, failed := m.closed, m.failure != nil
	m.closed = true
	m.mu.Unlock()
	if closed {
		return nil
	}
	var left []error
	for _, c := range m.joined {
		left = append(left, c.abandon()...)
	}
	m.token.Open()
	if failed {
		return nil //nolint:nilerr // the failure is known; what it left behind is no second one
	}
	return errors.Join(left...)
}
