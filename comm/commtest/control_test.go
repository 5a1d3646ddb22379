package commtest_test

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"carve/comm"
	"carve/comm/commtest"
	"carve/tensor"
)

// fault spoils one carrier's calls.
type fault func(g *comm.Group, c comm.Call) comm.Work

// faultyEndpoint plants a fault in the groups of one rank.
type faultyEndpoint struct {
	comm.Endpoint
	plant fault
}

func (e *faultyEndpoint) Group(name string, ranks []int) (*comm.Group, error) {
	g, err := e.Endpoint.Group(name, ranks)
	if err != nil {
		return nil, err
	}
	return g.With(&faultyCarrier{g, e.plant}), nil
}

type faultyCarrier struct {
	*comm.Group
	plant fault
}

func (f *faultyCarrier) Do(c comm.Call) error        { return f.plant(f.Group, c).Wait() }
func (f *faultyCarrier) Start(c comm.Call) comm.Work { return f.plant(f.Group, c) }

// after is a Work that is over when w is, after f was called.
type after struct {
	w comm.Work
	f func() error
}

func (a after) Await(uint64) error {
	if err := a.w.Wait(); err != nil {
		return err
	}
	return a.f()
}

func (a after) Done(uint64) bool { return false }

// spoil changes the first element of what the operation has received.
func spoil(g *comm.Group, c comm.Call) comm.Work {
	w := g.Carrier().Start(c)
	return comm.NewWork(after{w, func() error {
		if c.Dst != nil && c.Dst.Len() > 0 {
			c.Dst.Raw()[0] ^= 1
		}
		return nil
	}}, 0)
}

// controls are faults with a check that must notice them.
var controls = []struct {
	name  string
	check string
	plant fault
	says  string
	where where
}{
	{"wrong element", "operations", spoil, "element", lastRank},
	{"wrong element of a message", "messages", spoil, "message", lastRank},
	{"wrong element of a variable all-to-all", "variable all-to-all", spoil, "destination", lastRank},
	{"reduction left out", "identities", func(g *comm.Group, c comm.Call) comm.Work {
		if c.Op == comm.Reduce {
			c.Reduce = tensor.Max
		}
		return g.Carrier().Start(c)
	}, "different operations", lastRank},
	{"guard overwritten", "started operations", func(g *comm.Group, c comm.Call) comm.Work {
		w := g.Carrier().Start(c)
		return comm.NewWork(after{w, func() error {
			if c.Dst != nil && c.Dst.Len() > 0 {
				raw := c.Dst.Raw()
				unsafe.Slice(unsafe.SliceData(raw), len(raw)+1)[len(raw)] ^= 1 // the guard behind the destination
			}
			return nil
		}}, 0)
	}, "element", lastRank},
	{"source overwritten", "operations", func(g *comm.Group, c comm.Call) comm.Work {
		w := g.Carrier().Start(c)
		return comm.NewWork(after{w, func() error {
			if c.Src != nil && c.Dst != c.Src && c.Src.Len() > 0 {
				c.Src.Raw()[0] ^= 1
			}
			return nil
		}}, 0)
	}, "element", lastRank},
	{"no wait", "started operations", func(g *comm.Group, c comm.Call) comm.Work {
		g.Carrier().Start(c)
		return comm.Work{}
	}, "", lastRank},
	{"deaf listener", "listeners", func(g *comm.Group, c comm.Call) comm.Work {
		c.Listener = nil
		return g.Carrier().Start(c)
	}, "reported 0 ends", lastRank},
	{"synchronous start", "messages cross", func(g *comm.Group, c comm.Call) comm.Work {
		_ = g.Carrier().Start(c).Wait()
		return comm.Work{}
	}, "hangs", everyRank},
	{"lost failure", "failing rank", func(g *comm.Group, c comm.Call) comm.Work {
		w := g.Carrier().Start(c)
		return comm.NewWork(after{comm.Work{}, func() error {
			_ = w.Wait()
			return nil
		}}, 0)
	}, "no error", lastRank},
	{"mismatch not noticed", "mismatches", func(g *comm.Group, c comm.Call) comm.Work {
		return g.Carrier().Start(comm.Call{Op: comm.Barrier})
	}, "does not say", lastRank},
	{"argument not checked", "invalid arguments", func(g *comm.Group, c comm.Call) comm.Work {
		return g.Carrier().Start(comm.Call{Op: comm.Barrier})
	}, "", lastRank},
}

// TestControls plants faults in a good engine: the suite must notice each of them. The good engine itself passes
// in package comm.
func TestControls(t *testing.T) {
	checks := append(commtest.Results(), commtest.Failures()...)
	for _, c := range controls {
		t.Run(c.name, func(t *testing.T) {
			i := slices.IndexFunc(checks, func(check commtest.Check) bool { return check.Name == c.check })
			got := commtest.Fails(checks[i], commtest.Suite{
				New:   func(n int) commtest.World { return plant(n, c.plant, c.where) },
				Sizes: []int{2, 3},
				Limit: 2 * time.Second,
			})
			if got == "" || !strings.Contains(got, c.says) {
				t.Errorf("check %q says %q, which lacks %q", c.check, got, c.says)
			}
		})
	}
}

// TestNoFault is the control of the controls: the wrapper alone changes nothing.
func TestNoFault(t *testing.T) {
	var calls atomic.Int64
	honest := func(g *comm.Group, c comm.Call) comm.Work {
		calls.Add(1)
		return g.Carrier().Start(c)
	}
	for _, check := range append(commtest.Results(), commtest.Failures()...) {
		if check.Name == "operations" || check.Name == "started operations" {
			continue // long, and nothing new
		}
		if got := commtest.Fails(check, commtest.Suite{New: func(n int) commtest.World { return plant(n, honest, everyRank) }, Sizes: []int{2, 3}}); got != "" {
			t.Errorf("%s: %s", check.Name, got)
		}
	}
	if calls.Load() == 0 {
		t.Error("the wrapper was not called")
	}
}

// where says which ranks have a fault.
type where uint8

const (
	lastRank where = iota
	everyRank
)

// plant makes a local world with a fault.
func plant(n int, f fault, where where) commtest.World {
	l := comm.NewLocal(n, comm.LocalOptions{})
	endpoints := l.Endpoints()
	for i, e := range endpoints {
		if i == n-1 || where == everyRank {
			endpoints[i] = &faultyEndpoint{e, f}
		}
	}
	return commtest.World{Endpoints: endpoints, Close: l.Close}
}
