package comm_test

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"carve/comm"
	"carve/tensor"
)

// TestCrowded runs many more ranks than there are processors, whatever they are told about spinning.
func TestCrowded(t *testing.T) {
	const ranks, rounds = 24, 8
	for _, looks := range []int{0, 1, 1 << 14} {
		a := tensor.NewArena(tensor.ArenaOptions{Chunk: 1 << 20})
		l := comm.NewLocal(ranks, comm.LocalOptions{Looks: looks})
		all := make([]int, ranks)
		for i := range all {
			all[i] = i
		}
		err := comm.Run(t.Context(), l.Endpoints(), func(e comm.Endpoint) error {
			g, err := e.Group("all", all)
			if err != nil {
				return err
			}
			x := a.NewZero(tensor.Gradient, tensor.FP64, 1+e.Size())
			for i := range x.F64() {
				x.F64()[i] = 1
			}
			for range rounds {
				if err := g.AllReduce(x, tensor.Avg); err != nil {
					return err
				}
			}
			if slices.Max(x.F64()) != 1 || slices.Min(x.F64()) != 1 {
				t.Errorf("rank %d has %v", e.Rank(), x.F64())
			}
			return nil
		})
		if err := firstError(err, l.Close()); err != nil {
			t.Fatal(err)
		}
		a.Close()
	}
}

// TestToken holds under fake time that a rank computes alone: a started operation moves nothing before the ranks yield,
// and then does so without being waited for.
func TestToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, l, begin := tensor.NewArena(tensor.ArenaOptions{}), comm.NewLocal(2, comm.LocalOptions{}), time.Now()
		defer a.Close()
		err := comm.Run(t.Context(), l.Endpoints(), func(e comm.Endpoint) error {
			g, err := e.Group("dp", []int{0, 1})
			if err != nil {
				return err
			}
			x := a.NewZero(tensor.Gradient, tensor.FP32, 1<<16) // too large for the short way, which needs no token
			var done finished
			w := g.Carrier().Start(comm.Call{Op: comm.AllReduce, Dst: x, Src: x, Listener: &done})
			<-time.After(time.Minute)
			if done.Load() {
				t.Errorf("rank %d: somebody reduced while the rank computed", e.Rank())
			}
			<-time.After(time.Minute)
			e.Token().Yield()
			<-time.After(time.Minute)
			if !done.Load() {
				t.Errorf("rank %d: nobody reduced when the rank had yielded", e.Rank())
			}
			return w.Wait()
		})
		if err := firstError(err, l.Close()); err != nil {
			t.Error(err)
		}
		if d := time.Since(begin); d != 3*time.Minute {
			t.Errorf("the program took %v", d)
		}
	})
}

// finished is a listener that remembers.
type finished struct{ atomic.Bool }

func (f *finished) Finished(uint64) { f.Store(true) }

// TestAfterClose calls what can no longer be done.
func TestAfterClose(t *testing.T) {
	a, l := tensor.NewArena(tensor.ArenaOptions{Chunk: 1 << 16}), comm.NewLocal(2, comm.LocalOptions{})
	defer a.Close()
	x := a.NewZero(tensor.Gradient, tensor.FP32, 4)
	var groups [2]*comm.Group
	for r := range groups {
		g, err := l.Rank(r).Group("dp", []int{0, 1})
		if err != nil {
			t.Fatal(err)
		}
		groups[r] = g
	}
	if err := firstError(l.Rank(1).Close(), l.Rank(1).Close()); err != nil {
		t.Fatal(err)
	}
	g := groups[1]
	for name, err := range map[string]error{
		"all-reduce": g.AllReduce(x, tensor.Sum),
		"started":    g.AllReduceStart(x, tensor.Sum).Wait(),
		"send":       g.Send(x, 0),
		"receive":    g.RecvStart(x, 0).Wait(),
	} {
		if !errors.Is(err, comm.ErrClosed) {
			t.Errorf("%s of a rank that has left: %v", name, err)
		}
	}
	if _, err := l.Rank(1).Group("new", []int{1}); !errors.Is(err, comm.ErrClosed) {
		t.Errorf("a group of a rank that has left: %v", err)
	}
	if err := l.Err(); err != nil {
		t.Errorf("the world has failed: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := groups[0].AllReduce(x, tensor.Sum); !errors.Is(err, comm.ErrClosed) {
		t.Errorf("an operation of a closed world: %v", err)
	}
}

// TestPanicInBackground holds that a started operation on a tensor that its rank has freed, which is the rank's bug,
// ends the world and not the process.
func TestPanicInBackground(t *testing.T) {
	l := comm.NewLocal(2, comm.LocalOptions{})
	arenas := [2]*tensor.Arena{}
	for i := range arenas {
		arenas[i] = tensor.NewArena(tensor.ArenaOptions{Chunk: 1 << 20})
		defer arenas[i].Close()
	}
	err := comm.Run(t.Context(), l.Endpoints(), func(e comm.Endpoint) error {
		g, err := e.Group("dp", []int{0, 1})
		if err != nil {
			return err
		}
		x := arenas[e.Rank()].NewZero(tensor.Gradient, tensor.FP32, 1<<16)
		if e.Rank() == 0 {
			x.Free()
		}
		w := g.AllReduceStart(x, tensor.Sum)
		e.Token().Release()
		defer e.Token().Acquire()
		for e.Err() == nil {
			<-time.After(time.Millisecond)
		}
		return w.Wait()
	})
	if _, ok := errors.AsType[*comm.PanicError](err); !ok {
		t.Errorf("the world says %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// TestCosts are the small facts about operations.
func TestCosts(t *testing.T) {
	for _, tc := range []struct {
		op   comm.Op
		n    int
		want float64
	}{
		{comm.AllReduce, 4, 1.5},
		{comm.AllReduce, 1, 0},
		{comm.AllGather, 4, 0.75},
		{comm.ReduceScatter, 2, 0.5},
		{comm.AllToAll, 8, 0.875},
		{comm.AllToAllV, 8, 0.875},
		{comm.Gather, 2, 0.5},
		{comm.Scatter, 2, 0.5},
		{comm.Broadcast, 4, 1},
		{comm.Reduce, 4, 1},
		{comm.Send, 2, 1},
		{comm.Recv, 2, 1},
		{comm.Barrier, 2, 0},
	} {
		if got := tc.op.BusFactor(tc.n); got != tc.want {
			t.Errorf("bus factor of %v over %d is %v, want %v", tc.op, tc.n, got, tc.want)
		}
	}
	a := tensor.NewArena(tensor.ArenaOptions{Meta: true})
	big, small := a.New(tensor.Gradient, tensor.BF16, 12), a.New(tensor.Gradient, tensor.BF16, 4)
	for _, tc := range []struct {
		call comm.Call
		want int
	}{
		{comm.Call{Op: comm.Barrier}, 0},
		{comm.Call{Op: comm.AllReduce, Dst: big, Src: big}, 24},
		{comm.Call{Op: comm.AllGather, Dst: big, Src: small}, 24},
		{comm.Call{Op: comm.ReduceScatter, Dst: small, Src: big}, 24},
		{comm.Call{Op: comm.Gather, Peer: 1, Src: small}, 24},
		{comm.Call{Op: comm.Scatter, Peer: 1, Dst: small}, 24},
		{comm.Call{Op: comm.Scatter, Dst: small, Src: big}, 24},
		{comm.Call{Op: comm.AllToAll, Dst: big, Src: big}, 24},
		{comm.Call{Op: comm.AllToAllV, Dst: big, Src: big, SendCounts: []int{1, 2, 3}}, 12},
		{comm.Call{Op: comm.Broadcast, Dst: small}, 8},
		{comm.Call{Op: comm.Recv, Dst: small}, 8},
		{comm.Call{Op: comm.Send, Src: small}, 8},
	} {
		if got := tc.call.Size(3); got != tc.want {
			t.Errorf("size of %v is %d, want %d", tc.call.Op, got, tc.want)
		}
	}
}
