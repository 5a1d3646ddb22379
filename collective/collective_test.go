package collective_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"carve/cluster"
	"carve/collective"
	"carve/unit"

	"pgregory.net/rapid"
)

// TestEveryScheduleDelivers follows every algorithm for every operation, number of members and some roots.
func TestEveryScheduleDelivers(t *testing.T) {
	offered := map[string]int{}
	for n := 1; n <= 17; n++ {
		for _, op := range collective.Ops() {
			for _, a := range collective.Algorithms() {
				for _, root := range []int{0, n / 2, n - 1} {
					s, ok := collective.New(op, a, n, root)
					if !ok {
						continue
					}
					offered[fmt.Sprint(op, " ", a)]++
					if err := s.Follow(nil); err != nil {
						t.Fatalf("%v %v of %d, root %d: %v", a, op, n, root, err)
					}
				}
			}
		}
	}
	if len(offered) != 30 {
		t.Errorf("%d pairs of operation and algorithm: %v", len(offered), offered)
	}
}

// TestHierarchyDelivers follows the hierarchical schedules of groups on three levels, in any order of the ranks.
func TestHierarchyDelivers(t *testing.T) {
	levels := levelsOf(4, 8, 24)
	cases := map[string][]int{
		"two nodes":         {0, 1, 2, 3, 4, 5, 6, 7},
		"rails":             {1, 3, 5, 7, 9, 11, 17, 19, 21, 23, 13, 15},
		"three levels":      {0, 1, 4, 5, 8, 9, 12, 13, 16, 17, 20, 21},
		"shuffled":          {13, 0, 21, 5, 8, 1, 12, 9, 16, 20, 17, 4},
		"outer levels only": {0, 4, 8, 12, 16, 20},
	}
	for name, ranks := range cases {
		p, err := collective.Place(levels, ranks)
		if err != nil {
			t.Fatal(err)
		}
		for _, op := range collective.Ops() {
			c, ok := p.Of(op, collective.Hierarchical, 1e6)
			if want := op != collective.Barrier && op != collective.Gather && op != collective.Scatter; ok != want {
				t.Fatalf("%s: %v: offered %v", name, op, ok)
			}
			for root := range ranks {
				if s, ok := p.Schedule(op, c, root); ok {
					if err := s.Follow(nil); err != nil {
						t.Fatalf("%s: %v: %v", name, op, err)
					}
				}
			}
		}
	}
	irregular, err := collective.Place(levels, []int{0, 1, 2, 4})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := irregular.Of(collective.AllReduce, collective.Hierarchical, 1e6); ok {
		t.Error("a group of three ranks in one node and one in another is hierarchical")
	}
}

// TestFaultsAreCaught is the control of Follow: one wrong message of a schedule that is right.
func TestFaultsAreCaught(t *testing.T) {
	faults := map[string]func(s *collective.Schedule){
		"says 2":        func(s *collective.Schedule) { s.Rounds[1][0].Parts = 2 },
		"holds":         func(s *collective.Schedule) { s.Rounds[2] = s.Rounds[2][1:] },
		"a second":      func(s *collective.Schedule) { s.Rounds = append(s.Rounds[:1], s.Rounds...) },
		"carries":       func(s *collective.Schedule) { s.Rounds[1][2].Blocks = nil },
		"after the all": func(s *collective.Schedule) { s.Rounds[5][0].To = s.Rounds[5][0].From },
	}
	for want, spoil := range faults {
		s, _ := collective.New(collective.AllReduce, collective.Ring, 4, 0)
		for i := range s.Rounds {
			s.Rounds[i] = slices.Clone(s.Rounds[i])
		}
		spoil(&s)
		if err := s.Follow(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// levelsOf makes levels of the given sizes; every level is ten times slower than the one inside.
func levelsOf(sizes ...int) (levels []cluster.Level) {
	bandwidth, latency := unit.BytesPerSecond(100e9), unit.Seconds(1e-6)
	for _, size := range sizes {
		levels = append(levels, cluster.Level{Size: size, Latency: latency, Bandwidth: bandwidth, Oversubscription: 1})
		bandwidth, latency = bandwidth/10, latency*10
	}
	return levels
}

// TestCosts compares with figures worked out by hand: 1 µs a message, 1 ns a byte, 8 members.
func TestCosts(t *testing.T) {
	l := collective.Link{Latency: 1e-6, PerByte: 1e-9}
	cases := []struct {
		op    collective.Op
		a     collective.Algorithm
		bytes float64
		want  unit.Seconds
	}{
		{collective.AllReduce, collective.Ring, 8e6, 14e-6 + 14e-3},
		{collective.AllReduce, collective.Halving, 8e6, 6e-6 + 14e-3},
		{collective.AllReduce, collective.Doubling, 8e6, 3e-6 + 24e-3},
		{collective.AllReduce, collective.Tree, 8e6, 6e-6 + 48e-3},
		{collective.AllGather, collective.Doubling, 8e6, 3e-6 + 7e-3},
		{collective.Broadcast, collective.Tree, 8e6, 3e-6 + 24e-3},
		{collective.Broadcast, collective.Ring, 8e6, 10e-6 + 14e-3},
		{collective.Scatter, collective.Tree, 8e6, 3e-6 + 7e-3},
		{collective.AllToAll, collective.Direct, 8e6, 7e-6 + 7e-3},
		{collective.AllToAll, collective.Doubling, 8e6, 3e-6 + 12e-3},
		{collective.Barrier, collective.Doubling, 0, 3e-6},
	}
	for _, c := range cases {
		got, ok := collective.Flat(c.op, c.a, 8, c.bytes, l)
		if !ok || math.Abs(float64(got-c.want)) > 1e-12 {
			t.Errorf("%v %v: %v, want %v", c.a, c.op, got, c.want)
		}
	}
}

// TestIdentities holds that a cost is no more than that of the parts which do the same, and that the operations with
// arrows reversed cost the same.
func TestIdentities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 64).Draw(t, "members")
		bytes := rapid.Float64Range(0, 1e9).Draw(t, "bytes")
		level := cluster.Level{
			Size: n, Latency: unit.Seconds(rapid.Float64Range(0, 1e-3).Draw(t, "latency")),
			Bandwidth: unit.BytesPerSecond(rapid.Float64Range(1e6, 1e12).Draw(t, "bandwidth")), Oversubscription: 1,
		}
		ranks := make([]int, n)
		for i := range ranks {
			ranks[i] = i
		}
		p, err := collective.Place([]cluster.Level{level}, ranks)
		if err != nil {
			t.Fatal(err)
		}
		best := func(op collective.Op) float64 {
			_, cost := p.Best(op, bytes)
			return float64(cost)
		}
		noMore := func(op collective.Op, parts ...collective.Op) {
			sum := 0.0
			for _, part := range parts {
				sum += best(part)
			}
			if got := best(op); got > sum*(1+1e-9) {
				t.Fatalf("%v takes %v, %v take %v", op, got, parts, sum)
			}
		}
		noMore(collective.AllReduce, collective.ReduceScatter, collective.AllGather)
		noMore(collective.AllReduce, collective.Reduce, collective.Broadcast)
		noMore(collective.AllGather, collective.Gather, collective.Broadcast)
		noMore(collective.Broadcast, collective.Scatter, collective.AllGather)
		noMore(collective.Reduce, collective.ReduceScatter, collective.Gather)
		noMore(collective.ReduceScatter, collective.AllToAll) // and combining, which costs nothing here
		for _, pair := range [][2]collective.Op{
			{collective.Reduce, collective.Broadcast}, {collective.Gather, collective.Scatter}, {collective.AllGather, collective.ReduceScatter},
		} {
			if best(pair[0]) != best(pair[1]) {
				t.Fatalf("%v takes %v, %v takes %v", pair[0], best(pair[0]), pair[1], best(pair[1]))
			}
		}
	})
}
