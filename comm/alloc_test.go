package comm_test

import (
	"runtime"
	"testing"

	"carve/comm"
	"carve/tensor"
	"carve/trace"
)

// everything calls every operation once, half of them started.
func everything(g *comm.Group, small, big, other *tensor.Tensor, counts []int) error {
	n, k := g.Size(), g.Rank()
	sum := g.AllReduceStart(small, tensor.Sum)
	send, recv := g.SendStart(big, (k+1)%n), g.RecvStart(other, (k+n-1)%n)
	if err := firstError(recv.Wait(), send.Wait(), sum.Wait()); err != nil {
		return err
	}
	var works [4]comm.Work
	works[0] = g.AllGatherStart(other, small)
	works[1] = g.ReduceScatterStart(small, big, tensor.Avg)
	works[2] = g.BarrierStart()
	works[3] = g.AllToAllVStart(other, big, counts, counts)
	for _, w := range works {
		if err := w.Wait(); err != nil {
			return err
		}
	}
	if k%2 == 0 && k+1 < n {
		if err := g.Send(small, k+1); err != nil {
			return err
		}
	} else if k%2 == 1 {
		if err := g.Recv(small, k-1); err != nil {
			return err
		}
	}
	return firstError(g.Barrier(), g.Broadcast(big, 1), g.Reduce(big, tensor.Max, 0), g.AllReduce(big, tensor.Min),
		g.Gather(other, small, 0), g.AllGather(other, small), g.Scatter(small, other, 1),
		g.ReduceScatter(small, big, tensor.Sum), g.AllToAll(other, big), g.AllToAllV(other, big, counts, counts))
}

// TestNoAllocation holds that no operation allocates after warm-up, observed and watched or not: of many windows of rounds, one
// at least is without any allocation. The runtime allocates now and then, for instance when a goroutine first sleeps on
// another thread.
func TestNoAllocation(t *testing.T) {
	const ranks, windows, rounds = 3, 25, 20
	for _, elements := range []int{8, 4_000} {
		var stats [windows + 1]runtime.MemStats
		l := comm.NewLocal(ranks, comm.LocalOptions{})
		a := tensor.NewArena(tensor.ArenaOptions{Chunk: 1 << 20})
		endpoints, dog := l.Endpoints(), comm.NewWatchdog(comm.WatchdogOptions{Keep: 50})
		for i := 1; i < ranks; i++ {
			endpoints[i] = dog.Watch(endpoints[i])
			r := trace.NewRecorder(i, trace.Options{Events: 100})
			endpoints[i] = comm.Observe(endpoints[i], comm.ObserveOptions{Clock: func() trace.Tick { return 0 }, Trace: r})
		}
		err := comm.Run(t.Context(), endpoints, func(e comm.Endpoint) error {
			g, err := e.Group("all", []int{0, 1, 2})
			if err != nil {
				return err
			}
			small := a.NewZero(tensor.Communication, tensor.FP32, elements)
			big := a.NewZero(tensor.Communication, tensor.FP32, elements*ranks)
			other := a.NewZero(tensor.Communication, tensor.FP32, elements*ranks)
			counts := []int{elements, elements, elements}
			for round := range windows * rounds {
				if round%rounds == 0 && g.Rank() == 0 {
					runtime.ReadMemStats(&stats[round/rounds])
				}
				if err := everything(g, small, big, other, counts); err != nil {
					return err
				}
			}
			if g.Rank() == 0 {
				runtime.ReadMemStats(&stats[windows])
			}
			return g.Barrier()
		})
		if err := firstError(err, l.Close()); err != nil {
			t.Fatal(err)
		}
		a.Close()
		least := stats[windows].Mallocs
		for i := range windows {
			least = min(least, stats[i+1].Mallocs-stats[i].Mallocs)
		}
		if least > 0 {
			t.Errorf("at least %d allocations in %d rounds of every operation on %d elements", least, rounds, elements)
		}
	}
}
