package comm_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"carve/comm"
	"carve/tensor"
	"carve/trace"

	"github.com/google/go-cmp/cmp"
)

// everyOperation calls each operation of a group of the world's ranks once, and some of them started.
func everyOperation(e comm.Endpoint, a *tensor.Arena) error {
	n := e.Size()
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i
	}
	g, err := e.Group("all", ranks)
	if err != nil {
		return err
	}
	small, big, other := a.NewZero(tensor.Activation, tensor.FP32, 5), a.NewZero(tensor.Activation, tensor.BF16, 3*n), a.NewZero(tensor.Activation, tensor.BF16, 3*n)
	part := a.NewZero(tensor.Activation, tensor.BF16, 3)
	counts := make([]int, n)
	for i := range counts {
		counts[i] = 2
	}
	next, before := (e.Rank()+1)%n, (e.Rank()+n-1)%n
	works := []comm.Work{
		g.RecvStart(a.NewZero(tensor.Activation, tensor.FP32, 5), before), g.SendStart(small, next),
		g.AllReduceStart(a.NewZero(tensor.Activation, tensor.FP64, 7), tensor.Sum),
	}
	err = errors.Join(
		g.Barrier(), g.Broadcast(small, 1), g.Reduce(small, tensor.Max, 0), g.AllReduce(small, tensor.Avg),
		g.Gather(big, part, 0), g.AllGather(big, part), g.Scatter(part, big, 1), g.ReduceScatter(part, big, tensor.Sum),
		g.AllToAll(other, big), g.AllToAllV(other, big, counts, counts),
	)
	for _, w := range works {
		err = errors.Join(err, w.Wait())
	}
	return err
}

// count sums calls and bytes as [comm.Observed.Costs] does.
func count(costs []comm.Cost) map[comm.Op][2]int {
	sums := map[comm.Op][2]int{}
	for _, c := range costs {
		sums[c.Op] = [2]int{c.Calls, int(c.Bytes)}
	}
	return sums
}

// TestMetaCountsAsObserved holds that what is recorded of one rank is what is observed of it in a real world. Recorded
// operations are left out in turn: the comparison must notice.
func TestMetaCountsAsObserved(t *testing.T) {
	const n = 3
	world := comm.NewLocal(n, comm.LocalOptions{})
	defer world.Close()
	endpoints := world.Endpoints()
	observed := make([]*comm.Observed, n)
	for i := range endpoints {
		observed[i] = comm.Observe(endpoints[i], comm.ObserveOptions{Clock: func() trace.Tick { return 0 }})
		endpoints[i] = observed[i]
	}
	arenas := make([]*tensor.Arena, n)
	for i := range arenas {
		arenas[i] = tensor.NewArena(tensor.ArenaOptions{})
		defer arenas[i].Close()
	}
	if err := comm.Run(context.Background(), endpoints, func(e comm.Endpoint) error { return everyOperation(e, arenas[e.Rank()]) }); err != nil {
		t.Fatal(err)
	}
	for rank := range n {
		var log []comm.Transfer
		m, err := comm.NewMeta(rank, n, comm.MetaOptions{Wait: func(t comm.Transfer) { log = append(log, t) }})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(everyOperation(m, tensor.NewArena(tensor.ArenaOptions{Meta: true})), m.Close()); err != nil {
			t.Fatal(err)
		}
		want := count(observed[rank].Costs())
		if diff := cmp.Diff(want, sumTransfers(log)); diff != "" {
			t.Errorf("rank %d (-observed +recorded):\n%s", rank, diff)
		}
		for skip := range log {
			if cmp.Equal(want, sumTransfers(slices.Delete(slices.Clone(log), skip, skip+1))) {
				t.Errorf("rank %d: nobody misses %v", rank, log[skip].Op)
			}
		}
	}
}

func sumTransfers(log []comm.Transfer) map[comm.Op][2]int {
	sums := map[comm.Op][2]int{}
	for _, t := range log {
		s := sums[t.Op]
		sums[t.Op] = [2]int{s[0] + 1, s[1] + int(t.Bytes)}
	}
	return sums
}

// TestMetaStamps holds what a record says of hiding.
func TestMetaStamps(t *testing.T) {
	now, issued := 0, 0
	var log []comm.Transfer
	m, err := comm.NewMeta(3, 5, comm.MetaOptions{
		Now: func() int { return now }, Issue: func(comm.Transfer) { issued++ }, Wait: func(t comm.Transfer) { log = append(log, t) },
	})
	if err != nil {
		t.Fatal(err)
	}
	g, err := m.Group("odd", []int{1, 3})
	if err != nil {
		t.Fatal(err)
	}
	x := tensor.NewArena(tensor.ArenaOptions{Meta: true}).New(tensor.Gradient, tensor.BF16, 10)
	first := g.AllReduceStart(x, tensor.Sum)
	second := g.AllReduceStart(x, tensor.Sum)
	now = 4
	if err := errors.Join(second.Wait(), g.Send(x, 0), first.Wait(), first.Wait()); err != nil || !first.Done() {
		t.Fatal(err)
	}
	g.RecvStart(x, 0)
	if err := m.Close(); err == nil {
		t.Error("an operation that nobody waits for is fine")
	}
	type line struct {
		number, issued, hidden int
		op                     comm.Op
		mode                   comm.CallMode
		wire                   float64
	}
	var got []line
	for _, t := range log {
		got = append(got, line{t.Number, t.Issued, t.Hidden(), t.Op, t.Mode, t.Wire()})
	}
	want := []line{
		{1, 0, 4, comm.AllReduce, comm.Started, 20},
		{2, 4, 0, comm.Send, comm.Blocking, 20},
		{0, 0, 4, comm.AllReduce, comm.Started, 20},
		{3, 4, 0, comm.Recv, comm.Abandoned, 20},
	}
	if !slices.Equal(got, want) || issued != len(want) {
		t.Errorf("got %v, want %v; %d issued", got, want, issued)
	}
}

// TestMetaRefuses holds that wrong calls are refused as by other engines, and end the world.
func TestMetaRefuses(t *testing.T) {
	if _, err := comm.NewMeta(4, 4, comm.MetaOptions{}); err == nil {
		t.Error("rank 4 of 4")
	}
	m, err := comm.NewMeta(0, 1<<20, comm.MetaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, ranks := range [][]int{{1, 2}, {0, 0}, {0, 1 << 20}, nil} {
		if _, err := m.Group("bad", ranks); err == nil {
			t.Errorf("a group of %v", ranks)
		}
	}
	g, err := m.Group("pair", []int{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := m.Group("pair", []int{0, 1}); err != nil || again != g {
		t.Errorf("asked again: %v, %v", again, err)
	}
	if _, err := m.Group("pair", []int{0, 2}); err == nil {
		t.Error("one name for two groups")
	}
	x := tensor.NewArena(tensor.ArenaOptions{Meta: true}).New(tensor.Gradient, tensor.BF16, 10)
	if err := g.AllGather(x, x); !errors.Is(err, comm.ErrInvalid) {
		t.Errorf("an all-gather in place of everything: %v", err)
	}
	if err := g.Barrier(); !errors.Is(err, comm.ErrInvalid) || m.Err() == nil {
		t.Errorf("after a failure: %v", err)
	}
}

// TestSameGroup holds every endpoint to one handle for a group: who compares groups, to join what goes over the same one,
// counts on it.
func TestSameGroup(t *testing.T) {
	world := comm.NewLocal(2, comm.LocalOptions{})
	defer world.Close()
	meta, err := comm.NewMeta(0, 2, comm.MetaOptions{})
	if err != nil {
		t.Fatal(err)
	}
	local := world.Rank(0)
	for name, e := range map[string]comm.Endpoint{
		"local": local, "observed": comm.Observe(local, comm.ObserveOptions{}), "meta": meta,
		"twice observed": comm.Observe(comm.Observe(local, comm.ObserveOptions{}), comm.ObserveOptions{}),
	} {
		one, err := e.Group("pair", []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		if two, err := e.Group("pair", []int{0, 1}); err != nil || one != two {
			t.Errorf("%s: asked again, another group: %v", name, err)
		}
	}
}
