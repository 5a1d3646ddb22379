package comm

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"carve/tensor"
	"carve/unit"
)

// Local is a world whose ranks are goroutines of this process. They read and write each other's tensors directly.
type Local struct {
	failure atomic.Pointer[Failure] // set once
	reducer *tensor.Reducer
	arena   *tensor.Arena // of copies of small operands
	looks   int           // before a waiting goroutine lets others run for the first time
	roomy   bool          // every rank can have a processor

	workers   sync.WaitGroup
	endpoints []*localEndpoint

	mu        sync.Mutex // guards what follows; locked before any queue or pair
	groups    []*localGroup
	unmatched []error // sends and receives that a rank left behind
}

// LocalOptions say how a local world behaves; the zero value is the usual one.
type LocalOptions struct {
	// Looks is how often a goroutine that waits for another rank looks before it lets others run; 0 chooses by the
	// numbers of ranks and processors.
	Looks int
}

// NewLocal makes a world of n ranks, one or more.
func NewLocal(n int, o LocalOptions) *Local {
	l := &Local{reducer: tensor.NewReducer(), looks: o.Looks, endpoints: make([]*localEndpoint, n)}
	l.arena = tensor.NewArena(tensor.ArenaOptions{Chunk: 256 * unit.KiB})
	l.roomy = n <= runtime.GOMAXPROCS(0)
	switch {
	case l.looks != 0:
	case l.roomy:
		l.looks = firstLooks
	default:
		l.looks = moreLooks
	}
	for i := range l.endpoints {
		l.endpoints[i] = &localEndpoint{world: l, rank: i, token: NewToken(), groups: map[string]*localMember{}}
	}
	return l
}

// Size is the number of ranks.
func (l *Local) Size() int { return len(l.endpoints) }

// Rank is the endpoint of rank r. It is given to one goroutine, which holds the rank's compute token from then on.
func (l *Local) Rank(r int) Endpoint { return l.endpoints[r] }

// Endpoints is every rank's endpoint.
func (l *Local) Endpoints() []Endpoint {
	all := make([]Endpoint, len(l.endpoints))
	for i, e := range l.endpoints {
		all[i] = e
	}
	return all
}

// Fail ends the world because of rank r; Nobody for no rank. Only the first failure counts.
func (l *Local) Fail(r int, err error) { l.fail(&Failure{Rank: r, Err: err}) }

// Err is the [*Failure] that ended the world, or nil.
func (l *Local) Err() error {
	if f := l.failure.Load(); f != nil {
		return f
	}
	return nil
}

// Close ends the world and waits for its goroutines. Ranks that have not left yet get ErrClosed from their operations.
// Unless the world failed before, Close reports sends and receives that nobody matched.
func (l *Local) Close() error {
	failed := l.Err() != nil
	l.Fail(Nobody, ErrClosed)
	for _, e := range l.endpoints {
		e.token.Open()
	}
	l.workers.Wait()
	l.releaseArena()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.groups {
		for i := range g.pairs {
			l.unmatched = append(l.unmatched, g.pairs[i].leftovers(Nobody)...)
		}
	}
	if failed {
		return nil
	}
	return errors.Join(l.unmatched...)
}

// releaseArena gives the copies' memory back, unless some rank may still use them.
func (l *Local) releaseArena() {
	for _, e := range l.endpoints {
		if !e.left() {
			return
		}
	}
	l.arena.Close()
}

// fail ends the world with f, if it has not ended yet, and wakes everybody who waits for something.
func (l *Local) fail(f *Failure) {
	if !l.failure.CompareAndSwap(nil, f) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.groups {
		g.wakeSleepers()
		for i := range g.members {
			g.members[i].queue.wake()
		}
		for i := range g.pairs {
			g.pairs[i].wake()
		}
	}
}

// group returns the group of the given name and ranks, new or known.
func (l *Local) group(name string, ranks []int) (*localGroup, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, g := range l.groups {
		if g.name != name {
			continue
		}
		if slices.Equal(g.ranks, ranks) {
			return g, nil
		}
		for _, r := range ranks {
			if slices.Contains(g.ranks, r) {
				return nil, fmt.Errorf("comm: group %q of ranks %v has rank %d in common with the group of that name of ranks %v",
					name, ranks, r, g.ranks)
			}
		}
	}
	g := newLocalGroup(l, name, ranks)
	l.groups = append(l.groups, g)
	return g, nil
}
