package nn_test

import (
	"sync/atomic"
	"testing"

	"carve/comm"
	"carve/nn"
	"carve/tensor"
	"carve/trace"
)

// fakeClock is one rank's time, which passes only where the test says so.
type fakeClock struct{ now atomic.Int64 }

func (c *fakeClock) advance(d int)     { c.now.Add(int64(d)) }
func (c *fakeClock) reach(at int64)    { c.now.Store(max(c.now.Load(), at)) }
func (c *fakeClock) Clock() trace.Tick { return trace.Tick(c.now.Load()) }

// slowDevice is a device whose products take a tick for two multiplications.
type slowDevice struct {
	tensor.Device
	clock *fakeClock
}

func (d *slowDevice) MatMul(op tensor.MatMul) {
	d.Device.MatMul(op)
	d.clock.advance(op.A.Len() * op.C.Cols() / 2)
}

// slowEndpoint makes groups over one slow link.
type slowEndpoint struct {
	comm.Endpoint
	clock  *fakeClock
	hidden bool // whether what was started takes its time while the rank goes on
	yields bool // whether who waits lets the rank's other goroutine compute first
}

func (e slowEndpoint) Group(name string, ranks []int) (*comm.Group, error) {
	g, err := e.Endpoint.Group(name, ranks)
	if err != nil {
		return nil, err
	}
	l := &slowLink{group: g, clock: e.clock, hidden: e.hidden}
	if e.yields {
		l.token = e.Token()
	}
	return g.With(l), nil
}

// slowLink is a carrier whose operations take a tick a byte, one after the other.
type slowLink struct {
	group  *comm.Group
	clock  *fakeClock
	hidden bool
	token  *comm.Token // nil where nobody else computes
	free   int64       // when the link has nothing more to do
	under  []started
}

type started struct {
	work comm.Work
	call comm.Call
	ends int64
}

func (l *slowLink) cost(c *comm.Call) int64 { return int64(c.Size(l.group.Size())) }

func (l *slowLink) Do(c comm.Call) error {
	if l.token != nil {
		return l.Start(c).Wait()
	}
	err := l.group.Carrier().Do(c)
	l.free = max(l.free, int64(l.clock.Clock())) + l.cost(&c)
	l.clock.reach(l.free)
	return err
}

func (l *slowLink) Start(c comm.Call) comm.Work {
	l.free = max(l.free, int64(l.clock.Clock())) + l.cost(&c)
	quiet := c
	quiet.Listener = nil // the end is when the link says so
	l.under = append(l.under, started{l.group.Carrier().Start(quiet), c, l.free})
	ticket := uint64(len(l.under) - 1)
	if !l.hidden {
		l.clock.reach(l.free)
	}
	return comm.NewWork(l, ticket)
}

func (l *slowLink) Await(ticket uint64) error {
	s := l.under[ticket]
	err := s.work.Wait()
	if l.token != nil {
		l.token.Yield()
	}
	l.clock.reach(s.ends)
	if s.call.Listener != nil {
		s.call.Listener.Finished(s.call.Cookie)
		l.under[ticket].call.Listener = nil
	}
	return err
}

// Done tells whether the rank's time has passed an operation's end.
func (l *slowLink) Done(ticket uint64) bool { return int64(l.clock.Clock()) >= l.under[ticket].ends }

// simulate runs a job over slow links and returns how long a rank took, and how long it waited for its links.
func simulate(t *testing.T, rows bool, chunks int, hidden bool) (total, waited float64) {
	t.Helper()
	j := tensorJob()
	j.sequences, j.length = 8, 16
	var clocks [4]fakeClock
	var ends [4]*comm.Observed
	j.run(t, tensorLayout{tp: 4, rows: rows, chunks: chunks}.layout(func(r *nn.Rank, e comm.Endpoint) {
		clock := &clocks[e.Rank()]
		observed := comm.Observe(slowEndpoint{Endpoint: e, clock: clock, hidden: hidden}, comm.ObserveOptions{Clock: clock.Clock})
		ends[e.Rank()] = observed
		var err error
		r.Groups, err = nn.JoinGroups(observed, r.Mesh)
		nn.Must(err)
		r.Dev = &slowDevice{r.Dev, clock}
	}))
	return float64(clocks[1].Clock()) / 1e9, float64(ends[1].Waited())
}

// TestChunksHideCommunication measures the exposed time with a clock that the products and the links alone move: in chunks
// a good part of it disappears behind the products, and from the whole. Started operations that do not go on by themselves
// are the negative control.
func TestChunksHideCommunication(t *testing.T) {
	for _, rows := range []bool{false, true} {
		total, waited := simulate(t, rows, 1, true)
		hiddenTotal, hiddenWaited := simulate(t, rows, 4, true)
		if hiddenWaited > 0.75*waited || hiddenTotal > total-0.9*(waited-hiddenWaited) {
			t.Errorf("sp %v: exposed %.3g s of %.3g s at once, %.3g s of %.3g s in chunks", rows, waited, total, hiddenWaited, hiddenTotal)
		}
		if stuck, _ := simulate(t, rows, 4, false); stuck < 0.95*total {
			t.Errorf("sp %v: %.3g s with links that hide nothing, %.3g s at once", rows, stuck, total)
		}
	}
}
