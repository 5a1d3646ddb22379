package optim_test

import (
	"strings"

	"carve/comm"
	"carve/tensor"
)

// fault is a mistake in communication, planted between a rank and one of its groups.
type fault struct {
	group string // how its name ends
	kind  faultKind
}

type faultKind uint8

const (
	dropped faultKind = iota
	doubled
	averaged
)

// faultyEndpoint makes groups, one of which is at fault.
type faultyEndpoint struct {
	comm.Endpoint
	fault fault
}

// Group implements [comm.Endpoint].
func (e faultyEndpoint) Group(name string, ranks []int) (*comm.Group, error) {
	g, err := e.Endpoint.Group(name, ranks)
	if err == nil && e.fault.group != "" && strings.HasSuffix(name, e.fault.group) {
		g = g.With(&faulty{Carrier: g.Carrier(), kind: e.fault.kind})
	}
	return g, err
}

// faulty spoils every fourth collective, from the first on.
type faulty struct {
	comm.Carrier
	kind  faultKind
	calls int
}

// Start implements [comm.Carrier].
func (f *faulty) Start(c comm.Call) comm.Work {
	f.calls++
	if f.calls%4 != 1 {
		return f.Carrier.Start(c)
	}
	switch f.kind {
	case dropped:
		return comm.Work{}
	case averaged:
		c.Reduce = tensor.Avg
	case doubled:
		_ = f.Carrier.Start(c)
	}
	return f.Carrier.Start(c)
}

// Do implements [comm.Carrier].
func (f *faulty) Do(c comm.Call) error { return f.Start(c).Wait() }
