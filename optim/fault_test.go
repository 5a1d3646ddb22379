package optim_test

import (
	"carve/comm"
	"carve/nn"
	"carve/tensor"
)

// fault is a mistake in communication, planted between a rank and its groups.
type fault uint8

const (
	none fault = iota
	droppedData
	doubledData
	averagedData
	droppedTensor
	droppedTwins
)

// plant wraps the groups' carriers.
func (f fault) plant(g nn.Groups) nn.Groups {
	switch f {
	case none, droppedTwins:
	case droppedData, doubledData, averagedData:
		if g.Data != nil {
			g.Data = g.Data.With(&faulty{Carrier: g.Data.Carrier(), fault: f})
		}
	case droppedTensor:
		if g.Tensor != nil {
			g.Tensor = g.Tensor.With(&faulty{Carrier: g.Tensor.Carrier(), fault: f})
		}
	}
	return g
}

// plantTwins wraps the carrier of the group that Build makes.
func (f fault) plantTwins(g nn.Groups) nn.Groups {
	if f == droppedTwins {
		g.Twins = g.Twins.With(&faulty{Carrier: g.Twins.Carrier(), fault: f})
	}
	return g
}

// faulty spoils one collective of every step.
type faulty struct {
	comm.Carrier
	fault fault
	calls int
}

// Start implements [comm.Carrier].
func (f *faulty) Start(c comm.Call) comm.Work {
	f.calls++
	if f.calls%4 != 1 {
		return f.Carrier.Start(c)
	}
	switch f.fault {
	case droppedData, droppedTensor, droppedTwins:
		return comm.Work{}
	case averagedData:
		c.Reduce = tensor.Avg
	case doubledData:
		_ = f.Carrier.Start(c)
	case none:
	}
	return f.Carrier.Start(c)
}

// Do implements [comm.Carrier].
func (f *faulty) Do(c comm.Call) error { return f.Start(c).Wait() }
