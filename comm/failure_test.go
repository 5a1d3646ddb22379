package comm_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"carve/comm"
	"carve/tensor"
)

// TestFailureAtOnce holds under fake time that a failure reaches every blocked rank in the moment it happens, whatever
// it waits for.
func TestFailureAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, a := comm.NewLocal(6, comm.LocalOptions{}), tensor.NewArena(tensor.ArenaOptions{})
		defer a.Close()
		begin, cause := time.Now(), errors.New("disk full")
		x := func(n int) *tensor.Tensor { return a.NewZero(tensor.Gradient, tensor.FP32, n) }
		err := comm.Run(t.Context(), l.Endpoints(), func(e comm.Endpoint) error {
			g, err := e.Group("all", []int{0, 1, 2, 3, 4, 5})
			if err != nil {
				return err
			}
			switch e.Rank() {
			case 0:
				<-time.After(time.Hour)
				return cause
			case 1:
				err = g.AllReduce(x(8), tensor.Sum)
			case 2:
				err = g.Recv(x(8), 0)
			case 3:
				err = g.Send(x(8), 0)
			case 4:
				err = g.AllReduceStart(x(8), tensor.Sum).Wait()
			case 5:
				g.AllReduceStart(x(8), tensor.Sum)
				err = g.RecvStart(x(8), 3).Wait()
			}
			if d := time.Since(begin); d != time.Hour || !errors.Is(err, cause) {
				t.Errorf("rank %d hears after %v: %v", e.Rank(), d, err)
			}
			return err
		})
		const want = "rank 0 failed: disk full"
		if err == nil || err.Error() != want {
			t.Errorf("the world says %v, want %s", err, want)
		}
		if err := l.Close(); err != nil {
			t.Errorf("Close of a failed world: %v", err)
		}
	})
}

// TestMessages shows what users read.
func TestMessages(t *testing.T) {
	a := tensor.NewArena(tensor.ArenaOptions{Chunk: 1 << 16})
	defer a.Close()
	x := func(n int) *tensor.Tensor { return a.NewZero(tensor.Gradient, tensor.FP32, n) }
	for _, tc := range []struct {
		name string
		run  func(g *comm.Group) error
		want string
	}{
		{
			"length",
			func(g *comm.Group) error { return g.AllReduce(x(8+8*(g.Rank()/2)), tensor.Sum) },
			"rank 2 failed: members of the group called different operations: operation 1 of group \"dp\" is " +
				"all-reduce sum of fp32[16] on rank 2, but all-reduce sum of fp32[8] on rank 0 (2 of 3 ranks)",
		},
		{
			"counts",
			func(g *comm.Group) error {
				return g.AllToAllV(x(9), x(9), []int{1, 2, 3}, []int{1 + g.Rank(), 1 + g.Rank(), 1})
			},
			"rank 2 failed: members of the group called different operations: in operation 1 of group \"dp\", all-to-all-v, " +
				"rank 2 sends 2 elements to rank 1, which expects 1",
		},
		{
			"argument",
			func(g *comm.Group) error {
				if g.Rank() < 2 {
					return g.Barrier()
				}
				return g.AllGather(x(8), x(3))
			},
			"rank 2 failed: comm: all-gather of group \"dp\" on rank 2: invalid arguments: " +
				"destination fp32 [8] gradient and source fp32 [3] gradient do not fit in a group of 3",
		},
		{
			"early",
			func(g *comm.Group) error {
				if g.Rank() == 2 {
					return nil
				}
				return g.Broadcast(x(8), 1)
			},
			"rank 2 failed: left too early: before broadcast from 1 of fp32[8] of group \"dp\"",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := comm.NewLocal(3, comm.LocalOptions{})
			err := comm.Run(t.Context(), l.Endpoints(), func(e comm.Endpoint) error {
				g, err := e.Group("dp", []int{0, 1, 2})
				if err != nil {
					return err
				}
				return tc.run(g)
			})
			if err == nil || err.Error() != tc.want {
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
