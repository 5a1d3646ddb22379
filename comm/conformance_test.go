package comm_test

import (
	"testing"

	"carve/comm"
	"carve/comm/commtest"
	"carve/tensor"
)

// TestMain lets the kernels measure the processor, which needs a clock that goes on, before a test has a bubble of its own
// time.
func TestMain(m *testing.M) {
	tensor.NewReducer()
	m.Run()
}

// local makes a local world for the suite.
func local(n int) commtest.World {
	l := comm.NewLocal(n, comm.LocalOptions{})
	return commtest.World{Endpoints: l.Endpoints(), Close: l.Close}
}

func TestLocalConformance(t *testing.T) {
	commtest.Run(t, commtest.Suite{New: local})
}
