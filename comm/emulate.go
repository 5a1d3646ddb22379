package comm

import (
	"slices"
	"sync"
	"time"

	"carve/cluster"
	"carve/collective"
)

// EmulateOptions say what network is emulated.
type EmulateOptions struct {
	// Levels are the links of the cluster.
	Levels []cluster.Level
	// Scale multiplies every time of the network; 0 is 1. A processor that computes a thousand times slower than the
	// device of the cluster overlaps as the cluster would with a scale of a thousand.
	Scale float64
	// Algorithm is the one to use wherever it has a way; nil chooses the cheapest for each operation and size.
	Algorithm *collective.Algorithm
}

// Emulated is the links of a cluster between the ranks of this process. Operations compute what the engine below computes, and
// take the time that their messages would take on those links: ranks wait, and other goroutines of the rank have the compute token
// meanwhile. Operations begin when all members have come; those of one group follow each other on every member.
//
// A goroutine is woken some time after the end that it waited for: a timer is late, or other ranks have the processors. On a cluster it
// would not be, so that time does not count: what the rank calls next counts as called so much earlier.
type Emulated struct {
	options EmulateOptions
	began   time.Time

	mu       sync.Mutex // guards what follows; only a token's lock is taken under it
	network  *collective.Network
	groups   []*emulatedGroup
	finished []completion // by the network, not yet told
	failure  error        // of the world, once the driver has seen it
	open     []Endpoint   // that have not left
	kick     chan struct{}
	drive    sync.WaitGroup
	driving  bool
}

// completion is an operation that is over on a rank, and who wants to know.
type completion struct {
	listener Listener
	cookie   uint64
}

// NewEmulated makes the links for a world of ranks.
func NewEmulated(ranks int, o EmulateOptions) (*Emulated, error) {
	if o.Scale == 0 {
		o.Scale = 1
	}
	n, err := collective.NewNetwork(o.Levels, ranks, o.Scale)
	if err != nil {
		return nil, err
	}
	return &Emulated{options: o, began: time.Now(), network: n, kick: make(chan struct{}, 1)}, nil
}

// Emulate wraps the endpoint of a rank. All ranks are wrapped before one of them communicates.
func (e *Emulated) Emulate(end Endpoint) Endpoint {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open = append(e.open, end)
	return &emulatedEndpoint{Endpoint: end, net: e}
}

// emulatedEndpoint is the place of a rank on the links.
type emulatedEndpoint struct {
	Endpoint
	net  *Emulated
	late collective.Tick // how much later the rank went on than it would have; the links' lock guards it

	mu       sync.Mutex // guards carriers
	carriers []*emulatedCarrier
}

// Group implements [Endpoint].
func (e *emulatedEndpoint) Group(name string, ranks []int) (*Group, error) {
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
	shared, err := e.net.group(name, ranks)
	if err != nil {
		return nil, err
	}
	c := newEmulatedCarrier(e, g, shared)
	e.carriers = append(e.carriers, c)
	return g.With(c), nil
}

// Close implements [Endpoint].
func (e *emulatedEndpoint) Close() error {
	err := e.Endpoint.Close()
	n := e.net
	n.mu.Lock()
	n.open = slices.DeleteFunc(n.open, func(other Endpoint) bool { return other == e.Endpoint })
	last := len(n.open) == 0
	n.wake()
	n.mu.Unlock()
	if last {
		n.drive.Wait()
	}
	return err
}

// group is what the members of a group share.
func (e *Emulated) group(name string, ranks []int) (*emulatedGroup, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, g := range e.groups {
		if g.name == name && slices.Equal(g.ranks, ranks) {
			return g, nil
		}
	}
	g, err := newEmulatedGroup(e, name, ranks)
	if err != nil {
		return nil, err
	}
	e.groups = append(e.groups, g)
	return g, nil
}

// now is the time on the links.
func (e *Emulated) now() collective.Tick { return int64(time.Since(e.began)) }

// wake makes the driver look again. The caller holds mu.
func (e *Emulated) wake() {
	select {
	case e.kick <- struct{}{}:
	default:
	}
}

// begin starts the driver with the first operation. The caller holds mu.
func (e *Emulated) begin() {
	if !e.driving {
		e.driving = true
		e.drive.Go(e.run)
	}
}

const (
	// grain is the shortest sleep of the driver: about what a timer is late by anyway. What happens on the links keeps its exact time;
	// only the ranks hear of it late.
	grain = 40 * time.Microsecond
	// glance is how often the driver looks whether the world has failed.
	glance = 100 * time.Millisecond
)

// run drives the links until every rank has left.
func (e *Emulated) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		sleep, on := e.step()
		if !on {
			return
		}
		timer.Reset(sleep)
		select {
		case <-timer.C:
		case <-e.kick:
		}
	}
}

// step lets everything happen that is due, and says how long there is nothing more to do.
func (e *Emulated) step() (sleep time.Duration, on bool) {
	e.mu.Lock()
	e.finished = e.finished[:0]
	now := e.now()
	e.network.Advance(now)
	sleep = glance
	if next, ok := e.network.Next(); ok {
		sleep = min(max(time.Duration(next-now), grain), glance)
	}
	on = len(e.open) > 0
	if on && e.failure == nil {
		e.look()
	}
	e.mu.Unlock()
	for _, d := range e.finished { // only this goroutine appends to it
		d.listener.Finished(d.cookie)
	}
	return sleep, on
}

// look ends all waiting when the world has failed. The caller holds mu.
func (e *Emulated) look() {
	if e.failure = e.open[0].Err(); e.failure == nil {
		return
	}
	for _, g := range e.groups {
		for _, m := range g.members {
			if m != nil {
				m.changed.Broadcast()
			}
		}
	}
}
