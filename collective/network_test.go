package collective_test

import (
	"fmt"
	"math"
	"testing"

	"carve/cluster"
	"carve/collective"

	"pgregory.net/rapid"
)

// stopwatch notes when members finish.
type stopwatch struct {
	last  collective.Tick
	count int
}

func (s *stopwatch) Finished(_ uint64, _ int, at collective.Tick) {
	s.last = max(s.last, at)
	s.count++
}

// timed runs one operation on idle links.
func timed(t testing.TB, levels []cluster.Level, op collective.Op, c collective.Choice, ranks []int, bytes float64) (simulated, theory float64, ok bool) {
	t.Helper()
	p, err := collective.Place(levels, ranks)
	if err != nil {
		t.Fatal(err)
	}
	cost, ok := p.Cost(op, c, bytes)
	if !ok {
		return 0, 0, false
	}
	s, _ := p.Schedule(op, c, 0)
	n, err := collective.NewNetwork(levels, levels[len(levels)-1].Size, 1)
	if err != nil {
		t.Fatal(err)
	}
	var watch stopwatch
	n.Begin(0, collective.NewFlow(s), ranks, bytes/float64(max(1, s.Blocks)), nil, 0, &watch)
	n.Advance(math.MaxInt64)
	if watch.count != len(ranks) {
		t.Fatalf("%d of %d members finished", watch.count, len(ranks))
	}
	return float64(watch.last) / 1e9, float64(cost), true
}

// upTo is 0, 1, …, n-1.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// TestTheory holds the simulated time of every flat algorithm on one level to its formula: a nanosecond for each message,
// for rounding.
func TestTheory(t *testing.T) {
	for n := 1; n <= 17; n++ {
		for _, op := range collective.Ops() {
			for _, a := range collective.Algorithms() {
				for _, bytes := range []float64{0, 1e3, 1e6, 1e9} {
					if op == collective.Barrier {
						bytes = 0
					}
					got, want, ok := timed(t, levelsOf(n), op, collective.Choice{Algorithm: a}, upTo(n), bytes)
					if ok && math.Abs(got-want) > 1e-9*float64(2*n*n)+1e-9*want {
						t.Errorf("%v %v of %d, %v bytes: %v s, theory %v s", a, op, n, bytes, got, want)
					}
				}
			}
		}
	}
}

// TestTheoryOfLevels holds what is best on several levels, with oversubscription, to its formula within 5 %: a flat
// algorithm may be faster, because not all of its rounds cross the slowest level.
func TestTheoryOfLevels(t *testing.T) {
	const tolerance = 0.05
	shapes := []struct {
		levels []cluster.Level
		ranks  []int
	}{
		{levelsOf(4, 16), upTo(16)},
		{levelsOf(2, 8, 32), upTo(32)},
		{levelsOf(4, 16), []int{1, 5, 9, 13}},
		{oversubscribed(levelsOf(4, 16), 4), upTo(16)},
		{oversubscribed(levelsOf(4, 16), 8), upTo(8)},
		{oversubscribed(levelsOf(4, 16), 16), []int{0, 4, 8, 12}},
	}
	for i, s := range shapes {
		for _, op := range collective.Ops() {
			for _, bytes := range []float64{1e4, 1e7, 1e9} {
				p, err := collective.Place(s.levels, s.ranks)
				if err != nil {
					t.Fatal(err)
				}
				c, _ := p.Best(op, bytes)
				got, want, _ := timed(t, s.levels, op, c, s.ranks, bytes)
				least := want * (1 - tolerance)
				if c.Algorithm != collective.Hierarchical {
					least = 0
				}
				if want > 1e-3 && (got > want*(1+tolerance) || got < least) {
					t.Errorf("shape %d: %v %v of %v bytes: %v s, theory %v s", i, c.Algorithm, op, bytes, got, want)
				}
			}
		}
	}
}

// oversubscribed makes the outermost level that.
func oversubscribed(levels []cluster.Level, by float64) []cluster.Level {
	levels[len(levels)-1].Oversubscription = by
	return levels
}

// TestQueues checks messages that share a link by hand: 10 GB/s and 1 µs inside nodes of 2, 1 GB/s and 10 µs across.
func TestQueues(t *testing.T) {
	levels := levelsOf(2, 8)
	levels[0].Bandwidth, levels[1].Bandwidth = 10e9, 1e9
	cases := []struct {
		name  string
		over  float64
		pairs [][2]int
		want  []collective.Tick
	}{
		{"alone", 1, [][2]int{{0, 2}}, []collective.Tick{1_010_000}},
		{"both ways", 1, [][2]int{{0, 2}, {2, 0}}, []collective.Tick{1_010_000, 1_010_000}},
		{"one port out", 1, [][2]int{{0, 2}, {0, 4}}, []collective.Tick{1_010_000, 2_020_000}},
		{"one port in", 1, [][2]int{{0, 4}, {2, 4}}, []collective.Tick{1_010_000, 2_020_000}},
		{"ports of two levels", 1, [][2]int{{0, 2}, {0, 1}}, []collective.Tick{1_010_000, 101_000}},
		{"full bisection", 1, [][2]int{{0, 2}, {1, 3}}, []collective.Tick{1_010_000, 1_010_000}},
		{"half of it", 2, [][2]int{{0, 2}, {1, 3}}, []collective.Tick{1_010_000, 2_010_000}},
		{"half of it, alone", 2, [][2]int{{0, 2}}, []collective.Tick{1_010_000}},
	}
	for _, c := range cases {
		levels[1].Oversubscription = c.over
		n, err := collective.NewNetwork(levels, 8, 1)
		if err != nil {
			t.Fatal(err)
		}
		watches := make([]stopwatch, len(c.pairs))
		for i := range c.pairs {
			n.Send(0, c.pairs[i][:], 1e6, 0, &watches[i])
		}
		n.Advance(math.MaxInt64)
		for i, want := range c.want {
			if watches[i].last != want || watches[i].count != 2 {
				t.Errorf("%s: message %d arrives at %d, want %d", c.name, i, watches[i].last, want)
			}
		}
	}
}

// TestAdvanceInSteps holds that it does not matter how often the network is asked to go on.
func TestAdvanceInSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		steps := rapid.SliceOfN(rapid.Int64Range(0, 1e6), 1, 20).Draw(t, "steps")
		p, err := collective.Place(levelsOf(2, 6), upTo(6))
		if err != nil {
			t.Fatal(err)
		}
		c, _ := p.Best(collective.AllReduce, 1e6)
		s, _ := p.Schedule(collective.AllReduce, c, 0)
		end := func(stops []int64) string {
			n, err := collective.NewNetwork(levelsOf(2, 6), 6, 1)
			if err != nil {
				t.Fatal(err)
			}
			var watches [2]stopwatch
			for i := range watches {
				n.Begin(int64(i)*5000, collective.NewFlow(s), upTo(6), 1e6/6, nil, 0, &watches[i])
			}
			now := int64(0)
			for _, step := range stops {
				now += step
				n.Advance(now)
			}
			n.Advance(math.MaxInt64)
			return fmt.Sprint(watches)
		}
		if got, want := end(steps), end(nil); got != want {
			t.Fatalf("%s, in one go %s", got, want)
		}
	})
}

func TestNetworkRefuses(t *testing.T) {
	for _, c := range []struct {
		levels []cluster.Level
		ranks  int
		scale  float64
	}{{nil, 1, 1}, {levelsOf(4), 5, 1}, {levelsOf(4), 0, 1}, {levelsOf(4), 4, 0}, {levelsOf(4), 4, math.NaN()}, {levelsOf(4), 4, math.Inf(1)}} {
		if _, err := collective.NewNetwork(c.levels, c.ranks, c.scale); err == nil {
			t.Errorf("%+v is a network", c)
		}
	}
}
