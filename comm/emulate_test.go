package comm_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carve/cluster"
	"carve/collective"
	"carve/comm"
	"carve/comm/commtest"
	"carve/tensor"
)

// twoNodes is nodes of two: 10 µs and 10 GB/s inside, 100 µs and 1 GB/s across.
func twoNodes(most int) []cluster.Level {
	return []cluster.Level{
		{Size: 2, Latency: 10e-6, Bandwidth: 10e9, Oversubscription: 1},
		{Size: most, Latency: 100e-6, Bandwidth: 1e9, Oversubscription: 1},
	}
}

// oneLevel is n devices with 100 µs and 1 GB/s between each two.
func oneLevel(n int) []cluster.Level {
	return []cluster.Level{{Size: n, Latency: 100e-6, Bandwidth: 1e9, Oversubscription: 1}}
}

// emulated makes a world on emulated links.
func emulated(t testing.TB, n int, o comm.EmulateOptions) (*comm.Local, []comm.Endpoint) {
	t.Helper()
	l := comm.NewLocal(n, comm.LocalOptions{})
	net, err := comm.NewEmulated(n, o)
	if err != nil {
		t.Fatal(err)
	}
	ends := l.Endpoints()
	for i := range ends {
		ends[i] = net.Emulate(ends[i])
	}
	return l, ends
}

// TestEmulateConformance runs the suite in fake time, which stands still while somebody looks again and again; the check that
// does so runs in real time.
func TestEmulateConformance(t *testing.T) {
	suite := commtest.Suite{Sizes: []int{2, 4}, Limit: time.Hour, New: func(n int) commtest.World {
		l, ends := emulated(t, n, comm.EmulateOptions{Levels: twoNodes(8)})
		return commtest.World{Endpoints: ends, Close: l.Close}
	}}
	for _, c := range append(commtest.Results(), commtest.Failures()...) {
		t.Run(c.Name, func(t *testing.T) {
			if c.Name == "overlap" {
				c.Run(t, suite)
				return
			}
			synctest.Test(t, func(t *testing.T) {
				if got := commtest.Fails(c, suite); got != "" {
					t.Error(got)
				}
			})
		})
	}
}

// inWorld runs f as every rank of an emulated world in fake time.
func inWorld(t *testing.T, n int, o comm.EmulateOptions, f func(e comm.Endpoint, g *comm.Group, a *tensor.Arena) error) {
	t.Helper()
	l, ends := emulated(t, n, o)
	a := tensor.NewArena(tensor.ArenaOptions{})
	err := comm.Run(t.Context(), ends, func(e comm.Endpoint) error {
		g, err := e.Group("all", upTo(n))
		if err != nil {
			return err
		}
		return f(e, g, a)
	})
	if err := firstError(err, l.Close()); err != nil {
		t.Error(err)
	}
	a.Close()
}

// upTo is 0, 1, …, n-1.
func upTo(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// TestEmulatedTimes holds what ranks measure to the theory within 5 %, where that is above a millisecond. Time is that
// of a bubble: it passes only while every goroutine waits, so computing takes none.
func TestEmulatedTimes(t *testing.T) {
	const tolerance = 0.05
	for _, levels := range [][]cluster.Level{oneLevel(4), twoNodes(4)} {
		for _, scale := range []float64{1, 30} {
			t.Run(fmt.Sprintf("%d levels, scale %v", len(levels), scale), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { checkTimes(t, levels, scale, tolerance) })
			})
		}
	}
}

func checkTimes(t *testing.T, levels []cluster.Level, scale, tolerance float64) {
	const n = 4
	place, err := collective.Place(levels, upTo(n))
	if err != nil {
		t.Fatal(err)
	}
	inWorld(t, n, comm.EmulateOptions{Levels: levels, Scale: scale}, func(_ comm.Endpoint, g *comm.Group, a *tensor.Arena) error {
		for _, elements := range []int{4, 4_000, 4_000_000} {
			for _, m := range measurements(g, a, elements) {
				if err := g.Barrier(); err != nil {
					return err
				}
				start := time.Now()
				if err := m.call(); err != nil {
					return err
				}
				got := time.Since(start).Seconds()
				choice, theory := place.Best(m.op, float64(m.bytes))
				want := float64(theory) * scale
				exact := len(levels) == 1 || choice.Algorithm == collective.Hierarchical
				if want > 1e-3 && exact && math.Abs(got-want) > tolerance*want {
					t.Errorf("%v of %d bytes on member %d: %v s, theory %v s by %v", m.op, m.bytes, g.Rank(), got, want, choice.Algorithm)
				}
				if got > want*(1+tolerance)+1e-4 {
					t.Errorf("%v of %d bytes: %v s, theory at most %v s", m.op, m.bytes, got, want)
				}
			}
		}
		return nil
	})
}

// measurement is a call, and what it is to theory.
type measurement struct {
	op    collective.Op
	bytes int
	call  func() error
}

// measurements are calls after which all members are ready together: those whose end depends on the member are left out.
func measurements(g *comm.Group, a *tensor.Arena, elements int) []measurement {
	n := g.Size()
	small, big, other := a.NewZero(tensor.Communication, tensor.FP32, elements/n), a.NewZero(tensor.Communication, tensor.FP32, elements), a.NewZero(tensor.Communication, tensor.FP32, elements)
	bytes := big.Bytes()
	return []measurement{
		{collective.AllReduce, bytes, func() error { return g.AllReduce(big, tensor.Sum) }},
		{collective.AllGather, bytes, func() error { return g.AllGather(big, small) }},
		{collective.ReduceScatter, bytes, func() error { return g.ReduceScatter(small, big, tensor.Sum) }},
		{collective.AllToAll, bytes, func() error { return g.AllToAll(other, big) }},
	}
}

// TestEmulatedOverlap holds that time on the links passes while a rank computes, that operations of one group follow each
// other, and that groups share the links.
func TestEmulatedOverlap(t *testing.T) {
	const message = 10 * time.Millisecond // of 10 MB
	ms := func(d time.Duration) float64 { return float64(d.Round(100*time.Microsecond)) / 1e6 }
	synctest.Test(t, func(t *testing.T) {
		inWorld(t, 2, comm.EmulateOptions{Levels: oneLevel(2)}, func(e comm.Endpoint, g *comm.Group, a *tensor.Arena) error {
			other, err := e.Group("other", []int{0, 1})
			if err != nil {
				return err
			}
			x, y := a.NewZero(tensor.Communication, tensor.FP32, 2_500_000), a.NewZero(tensor.Communication, tensor.FP32, 2_500_000)
			cases := []struct {
				name  string
				start func() []comm.Work
				want  float64 // ms of the operations, without computing
			}{
				{"one", func() []comm.Work { return []comm.Work{g.AllReduceStart(x, tensor.Sum)} }, 10.2},
				{"two of a group", func() []comm.Work {
					return []comm.Work{g.AllReduceStart(x, tensor.Sum), g.AllReduceStart(y, tensor.Sum)}
				}, 20.4},
				{"two groups", func() []comm.Work {
					return []comm.Work{g.AllReduceStart(x, tensor.Sum), other.AllReduceStart(y, tensor.Sum)}
				}, 20.4},
				{"messages that cross", func() []comm.Work {
					return []comm.Work{g.SendStart(x, 1-g.Rank()), g.RecvStart(y, 1-g.Rank())}
				}, 10.1},
			}
			for _, c := range cases {
				for _, compute := range []time.Duration{0, message / 2, 5 * message} {
					if err := g.Barrier(); err != nil {
						return err
					}
					begin := time.Now()
					works := c.start()
					<-time.After(compute) // holding the token
					for _, w := range works {
						if err := w.Wait(); err != nil {
							return err
						}
					}
					if got, want := ms(time.Since(begin)), max(c.want, ms(compute)); math.Abs(got-want) > 0.2 {
						t.Errorf("%s beside %v of computing: %v ms, want %v ms", c.name, compute, got, want)
					}
				}
			}
			return nil
		})
	})
}

// TestEmulatedAlgorithms holds that an algorithm that is asked for is used where it has a way.
func TestEmulatedAlgorithms(t *testing.T) {
	const n, elements = 4, 1_000_000
	synctest.Test(t, func(t *testing.T) {
		for _, a := range collective.Algorithms() {
			inWorld(t, n, comm.EmulateOptions{Levels: oneLevel(n), Algorithm: &a}, func(_ comm.Endpoint, g *comm.Group, arena *tensor.Arena) error {
				x := arena.NewZero(tensor.Communication, tensor.FP32, elements)
				if err := g.Barrier(); err != nil {
					return err
				}
				begin := time.Now()
				if err := g.AllReduce(x, tensor.Sum); err != nil {
					return err
				}
				want, ok := collective.Flat(collective.AllReduce, a, n, float64(x.Bytes()), collective.Link{Latency: 100e-6, PerByte: 1e-9})
				if got := time.Since(begin).Seconds(); ok && math.Abs(got-float64(want)) > 1e-4 {
					t.Errorf("%v: %v s, theory %v", a, got, want)
				}
				return nil
			})
		}
	})
}

// TestEmulatedFailure holds that a failure ends at once what waits for a slow link.
func TestEmulatedFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, ends := emulated(t, 3, comm.EmulateOptions{Levels: oneLevel(3), Scale: 1e6})
		a := tensor.NewArena(tensor.ArenaOptions{})
		begin := time.Now()
		err := comm.Run(context.Background(), ends, func(e comm.Endpoint) error {
			g, err := e.Group("all", upTo(3))
			if err != nil {
				return err
			}
			w := g.AllReduceStart(a.NewZero(tensor.Communication, tensor.FP32, 1000), tensor.Sum)
			if e.Rank() == 2 {
				<-time.After(time.Second)
				return errDied
			}
			return w.Wait()
		})
		if err == nil || !strings.Contains(err.Error(), "rank 2 failed: died") {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(begin); waited > 2*time.Second {
			t.Errorf("the others waited %v", waited)
		}
		_ = l.Close()
	})
}

// TestEmulatedRefuses checks what is no network.
func TestEmulatedRefuses(t *testing.T) {
	for _, o := range []comm.EmulateOptions{{}, {Levels: oneLevel(2)}, {Levels: oneLevel(4), Scale: -1}} {
		if _, err := comm.NewEmulated(4, o); err == nil {
			t.Errorf("%+v is a network of 4", o)
		}
	}
}
