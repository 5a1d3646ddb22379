package comm_test

import (
	"testing"

	"carve/cluster"
	"carve/collective"
	"carve/comm"
	"carve/comm/commtest"
)

// TestRouteConformance carries collectives out by every algorithm, as messages: results are those of the plain engine, to
// the bit. Failures are checked with the cheapest.
func TestRouteConformance(t *testing.T) {
	levels := []cluster.Level{
		{Size: 2, Latency: 1e-6, Bandwidth: 1e10, Oversubscription: 1}, {Size: 8, Latency: 1e-5, Bandwidth: 1e9, Oversubscription: 1},
	}
	suite := func(o comm.RouteOptions, sizes ...int) commtest.Suite {
		return commtest.Suite{Sizes: sizes, New: func(n int) commtest.World {
			l := comm.NewLocal(n, comm.LocalOptions{})
			ends := l.Endpoints()
			for i := range ends {
				ends[i] = comm.Route(ends[i], o)
			}
			return commtest.World{Endpoints: ends, Close: l.Close}
		}}
	}
	for _, a := range collective.Algorithms() {
		for _, c := range commtest.Results() {
			switch c.Name {
			case "operations", "rank order", "identities":
				t.Run(a.String()+" "+c.Name, func(t *testing.T) { c.Run(t, suite(comm.RouteOptions{Algorithm: &a, Levels: levels}, 4)) })
			}
		}
	}
	for _, c := range append(commtest.Results(), commtest.Failures()...) {
		if c.Name != "operations" {
			t.Run("best "+c.Name, func(t *testing.T) { c.Run(t, suite(comm.RouteOptions{}, 3)) })
		}
	}
}
