package comm_test

import (
	"context"
	"fmt"
	"testing"

	"carve/comm"
	"carve/tensor"
	"carve/unit"
)

// world makes n ranks that are all in one group, and runs f on each.
func world(tb testing.TB, n int, f func(g *comm.Group, a *tensor.Arena) error) {
	tb.Helper()
	l := comm.NewLocal(n, comm.LocalOptions{})
	ranks := make([]int, n)
	for i := range ranks {
		ranks[i] = i
	}
	arenas := make([]*tensor.Arena, n)
	for i := range arenas {
		arenas[i] = tensor.NewArena(tensor.ArenaOptions{})
		defer arenas[i].Close()
	}
	err := comm.Run(context.Background(), l.Endpoints(), func(e comm.Endpoint) error {
		g, err := e.Group("world", ranks)
		if err != nil {
			return err
		}
		return f(g, arenas[e.Rank()])
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := l.Close(); err != nil {
		tb.Fatal(err)
	}
}

// collectives are the operations that are measured: on a total of n elements, by the convention of nccl-tests.
var collectives = []struct {
	name string
	run  func(g *comm.Group, big, other, part *tensor.Tensor) error
}{
	{"allreduce", func(g *comm.Group, big, other, _ *tensor.Tensor) error { return g.AllReduceTo(other, big, tensor.Sum) }},
	{"allreduceinplace", func(g *comm.Group, big, _, _ *tensor.Tensor) error { return g.AllReduce(big, tensor.Max) }},
	{"allgather", func(g *comm.Group, big, _, part *tensor.Tensor) error { return g.AllGather(big, part) }},
	{"reducescatter", func(g *comm.Group, big, _, part *tensor.Tensor) error {
		return g.ReduceScatter(part, big, tensor.Sum)
	}},
	{"alltoall", func(g *comm.Group, big, other, _ *tensor.Tensor) error { return g.AllToAll(other, big) }},
	{"barrier", func(g *comm.Group, _, _, _ *tensor.Tensor) error { return g.Barrier() }},
	{"broadcast", func(g *comm.Group, big, _, _ *tensor.Tensor) error { return g.Broadcast(big, 0) }},
	{"sendrecv", func(g *comm.Group, big, _, _ *tensor.Tensor) error {
		if g.Rank()%2 == 0 {
			return g.Send(big, g.Rank()+1)
		}
		return g.Recv(big, g.Rank()-1)
	}},
}

func BenchmarkLocal(b *testing.B) {
	for _, op := range collectives {
		for _, ranks := range []int{1, 2, 4} {
			for _, size := range []unit.Bytes{unit.KiB, 64 * unit.KiB, unit.MiB, 16 * unit.MiB, 64 * unit.MiB} {
				b.Run(fmt.Sprintf("op=%s/ranks=%d/bytes=%s", op.name, ranks, size.Exact()), func(b *testing.B) {
					b.SetBytes(int64(size))
					n := int(size) / tensor.FP32.Size()
					world(b, ranks, func(g *comm.Group, a *tensor.Arena) error {
						big := a.NewZero(tensor.Communication, tensor.FP32, n)
						other := a.NewZero(tensor.Communication, tensor.FP32, n)
						part := a.NewZero(tensor.Communication, tensor.FP32, n/ranks)
						if err := g.Barrier(); err != nil {
							return err
						}
						if g.Rank() == 0 {
							b.ResetTimer()
						}
						for range b.N {
							if err := op.run(g, big, other, part); err != nil {
								return err
							}
						}
						return nil
					})
				})
			}
		}
	}
}
