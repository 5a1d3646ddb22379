package comm

import (
	"fmt"
	"slices"
	"sync"

	"carve/cluster"
	"carve/collective"
	"carve/tensor"
	"carve/unit"
)

// RouteOptions say how a routed endpoint carries collectives out.
type RouteOptions struct {
	// Algorithm is the one to use wherever it has a way; nil chooses the cheapest for each operation and size.
	Algorithm *collective.Algorithm
	// Levels are the links that the choice is made for, and where a hierarchical algorithm finds its levels; nil is one level.
	Levels []cluster.Level
}

// Route wraps an endpoint so that its collectives become messages, by the schedules of package collective. Results are those of
// the engine below, bit for bit: contributions travel as they are, and are combined in the order of the positions where a block is
// complete. So reductions by a ring or a tree move more bytes than the schedule says; the schedule is what is at work here, not
// the speed. All ranks of a world are wrapped alike.
func Route(e Endpoint, o RouteOptions) Endpoint {
	if o.Levels == nil {
		o.Levels = []cluster.Level{{Size: e.Size(), Latency: 1e-6, Bandwidth: 1e10, Oversubscription: 1}}
	}
	return &routedEndpoint{Endpoint: e, options: o, arena: tensor.NewArena(tensor.ArenaOptions{Chunk: 256 * unit.KiB}), reducer: tensor.NewReducer()}
}

// routedEndpoint is the place of a rank whose collectives are messages.
type routedEndpoint struct {
	Endpoint
	options RouteOptions
	arena   *tensor.Arena
	reducer *tensor.Reducer
	workers sync.WaitGroup
	closed  sync.Once

	mu       sync.Mutex // guards carriers
	carriers []*routedCarrier
}

// Group implements [Endpoint].
func (e *routedEndpoint) Group(name string, ranks []int) (*Group, error) {
	g, err := e.Endpoint.Group(name, ranks)
	if err != nil || g.Size() == 1 {
		return g, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, c := range e.carriers {
		if c.group.Name() == name {
			return g.With(c), nil
		}
	}
	wires, err := e.Endpoint.Group(name+" (routed)", ranks)
	if err != nil {
		return nil, err
	}
	place, err := collective.Place(e.options.Levels, ranks)
	if err != nil {
		return nil, err
	}
	c := &routedCarrier{owner: e, group: g, wires: wires, place: place, routes: map[flowKey]*route{}}
	c.changed.L = &c.mu
	e.carriers = append(e.carriers, c)
	return g.With(c), nil
}

// Close implements [Endpoint].
func (e *routedEndpoint) Close() error {
	e.mu.Lock()
	carriers := e.carriers
	e.mu.Unlock()
	for _, c := range carriers {
		if call, unfinished := c.close(); unfinished && e.Err() == nil {
			e.Fail(fmt.Errorf("%w: %v of group %q is unfinished; wait for started operations", ErrLeft, call.Op, c.group.name))
		}
	}
	err := e.Endpoint.Close()
	e.workers.Wait()
	e.closed.Do(e.arena.Close) // nobody reads the rank's blocks any more
	return err
}

// routedCarrier carries the collectives of one group out, one after the other, in a goroutine of its own.
type routedCarrier struct {
	owner  *routedEndpoint
	group  *Group // of the engine below: messages, and agreement on what is called
	wires  *Group // the same ranks: messages of collectives
	place  *collective.Placement
	routes map[flowKey]*route // of the worker
	number int                // of the operation under way; of the worker

	mu      sync.Mutex // guards what follows
	changed sync.Cond
	pending []Call
	issued  uint64
	done    uint64
	err     error
	working bool
	closed  bool
}

// Do implements [Carrier].
func (c *routedCarrier) Do(call Call) error { return c.Start(call).Wait() }

// Start implements [Carrier].
func (c *routedCarrier) Start(call Call) Work {
	if call.Op.PointToPoint() || call.Validate(c.group.rank, c.group.Size()) != nil {
		return c.group.carrier.Start(call)
	}
	call.SendCounts, call.RecvCounts = slices.Clone(call.SendCounts), slices.Clone(call.RecvCounts)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending = append(c.pending, call)
	c.issued++
	if !c.working {
		c.working = true
		c.owner.workers.Go(c.work)
	}
	c.changed.Broadcast()
	return NewWork(c, c.issued)
}

// Await implements [Awaiter].
func (c *routedCarrier) Await(ticket uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.done < ticket {
		if c.err != nil {
			return c.err
		}
		c.owner.Token().Release()
		c.changed.Wait()
		c.mu.Unlock()
		c.owner.Token().Acquire()
		c.mu.Lock()
	}
	return nil
}

// Done implements [Awaiter].
func (c *routedCarrier) Done(ticket uint64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.done >= ticket
}

// close ends the worker, and returns an operation that was not finished, if there is one.
func (c *routedCarrier) close() (Call, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	c.changed.Broadcast()
	if len(c.pending) > 0 && c.err == nil {
		return c.pending[0], true
	}
	return Call{}, false
}

// work carries out what was issued, until an operation fails or the rank leaves.
func (c *routedCarrier) work() {
	for {
		call, on := c.next()
		if !on {
			return
		}
		c.owner.Token().Acquire()
		err := c.carry(&call)
		c.owner.Token().Release()
		if err == nil && call.Listener != nil {
			call.Listener.Finished(call.Cookie)
		}
		if !c.finish(err) {
			return
		}
	}
}

// next is the oldest call that is not done; false when there will be none.
func (c *routedCarrier) next() (Call, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.pending) == 0 && !c.closed {
		c.changed.Wait()
	}
	if len(c.pending) == 0 {
		return Call{}, false
	}
	return c.pending[0], true
}

// finish enters how a call ended, and tells whether there is more to do.
func (c *routedCarrier) finish(err error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.changed.Broadcast()
	if err != nil {
		c.err = err
		return false
	}
	c.pending = append(c.pending[:0], c.pending[1:]...)
	c.done++
	return true
}
