package comm

import (
	"fmt"
	"slices"
	"sync"
)

// localEndpoint is the place of one rank.
type localEndpoint struct {
	world   *Local
	rank    int
	token   *Token
	sharing sharing
	workers sync.WaitGroup

	mu     sync.Mutex // guards what follows
	groups map[string]*localMember
	joined []*localMember // the values of groups in the order of joining
	closed bool
}

func (e *localEndpoint) Rank() int        { return e.rank }
func (e *localEndpoint) Size() int        { return e.world.Size() }
func (e *localEndpoint) Token() *Token    { return e.token }
func (e *localEndpoint) Fail(err error)   { e.world.Fail(e.rank, err) }
func (e *localEndpoint) Cancel(err error) { e.world.Fail(Nobody, err) }
func (e *localEndpoint) Err() error       { return e.world.Err() }

// Group implements [Endpoint].
func (e *localEndpoint) Group(name string, ranks []int) (*Group, error) {
	if err := checkRanks(name, ranks, e.rank, e.Size()); err != nil {
		return nil, err
	}
	g, err := e.world.group(name, slices.Clone(ranks))
	if err != nil {
		return nil, err
	}
	m := &g.members[slices.Index(ranks, e.rank)]
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil, fmt.Errorf("comm: group %q on rank %d: %w", name, e.rank, ErrClosed)
	}
	if e.groups[name] == nil {
		e.groups[name] = m
		e.joined = append(e.joined, m)
		m.handle = NewGroup(name, ranks, m.at, m)
	}
	return m.handle, nil
}

// checkRanks checks the arguments of Group for every engine.
func checkRanks(name string, ranks []int, rank, size int) error {
	if len(ranks) > 0 && ranks[0] >= 0 && ranks[len(ranks)-1] < size && ascending(ranks) {
		if _, ok := slices.BinarySearch(ranks, rank); ok {
			return nil // the usual group, of however many ranks
		}
	}
	seen := make(map[int]bool, len(ranks))
	for _, r := range ranks {
		if r < 0 || r >= size {
			return fmt.Errorf("comm: group %q has rank %d in a world of %d", name, r, size)
		}
		if seen[r] {
			return fmt.Errorf("comm: group %q has rank %d twice", name, r)
		}
		seen[r] = true
	}
	if !seen[rank] {
		return fmt.Errorf("comm: group %q of ranks %v is asked for by rank %d, which is not in it", name, ranks, rank)
	}
	return nil
}

// ascending tells whether each rank is above the one before.
func ascending(ranks []int) bool {
	for i, r := range ranks[1:] {
		if r <= ranks[i] {
			return false
		}
	}
	return true
}

// Close implements [Endpoint].
func (e *localEndpoint) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	joined := e.joined
	e.mu.Unlock()

	err := e.checkFinished(joined)
	for _, m := range joined {
		m.leave()
	}
	e.token.Open()
	e.workers.Wait()
	for _, m := range joined {
		m.group.quiesce()
	}
	return err
}

func (e *localEndpoint) left() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.closed
}

// checkFinished fails the world when a collective of this rank is not finished, unless it has failed before.
func (e *localEndpoint) checkFinished(joined []*localMember) error {
	for _, m := range joined {
		call, unfinished := m.queue.unfinished()
		if !unfinished || e.world.failure.Load() != nil {
			continue
		}
		err := fmt.Errorf("%w: %v of group %q is unfinished; wait for started operations", ErrLeft, call, m.group.name)
		e.Fail(err)
		return err
	}
	return nil
}
