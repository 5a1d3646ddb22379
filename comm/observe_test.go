package comm_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"carve/comm"
	"carve/comm/commtest"
	"carve/tensor"
	"carve/trace"
	"carve/unit"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// observed is a program of two ranks for which it is known who waits for whom and how long. Times are those of rank 1;
// rank 0 is half a second behind from its second operation on.
func observed(e comm.Endpoint, g *comm.Group, a *tensor.Arena) error {
	x := a.NewZero(tensor.Gradient, tensor.FP32, 4096)
	here, there := a.NewZero(tensor.Activation, tensor.BF16, 4), a.NewZero(tensor.Activation, tensor.BF16, 4)
	compute := func(halves int) {
		<-time.After(time.Duration(halves) * time.Second / 2)
		e.Token().Yield()
		synctest.Wait() // so that what can happen happens now
	}
	me, other := g.Rank(), 1-g.Rank()
	// Exposed: rank 0 waits for 3 s.
	compute(6 * me)
	if err := g.AllReduce(x, tensor.Sum); err != nil {
		return err
	}
	// Hidden: started at 3 and 3.5 s, moved when both have yielded at 4.5 s.
	compute(other)
	sum := g.AllReduceStart(x, tensor.Sum)
	compute(2)
	compute(2)
	if err := sum.Wait(); err != nil {
		return err
	}
	// Half hidden: rank 0 sends at 5.5 s what rank 1 begins to receive at 5 s and waits for.
	var message comm.Work
	if me == 0 {
		message = g.SendStart(here, other)
	} else {
		message = g.RecvStart(there, other)
	}
	return firstError(message.Wait(), g.AllToAllV(there, here, []int{1 + me, 2}, []int{1 + me, 2}))
}

// TestObserve checks what was measured, and the trace.
func TestObserve(t *testing.T) {
	var costs [2][]comm.Cost
	var recorders []*trace.Recorder
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		clock := func() trace.Tick { return trace.Tick(time.Since(begin)) }
		l, a := comm.NewLocal(2, comm.LocalOptions{}), tensor.NewArena(tensor.ArenaOptions{})
		defer a.Close()
		endpoints := l.Endpoints()
		for i, e := range endpoints {
			recorders = append(recorders, trace.NewRecorder(i, trace.Options{Events: 30, Collectives: 10}))
			endpoints[i] = comm.Observe(e, comm.ObserveOptions{Clock: clock, Trace: recorders[i]})
		}
		err := comm.Run(t.Context(), endpoints, func(e comm.Endpoint) error {
			g, err := e.Group("dp", []int{0, 1})
			if err == nil {
				err = observed(e, g, a)
			}
			costs[e.Rank()] = e.(*comm.Observed).Costs()
			return err
		})
		if err := firstError(err, l.Close()); err != nil {
			t.Error(err)
		}
	})
	cost := func(op comm.Op, calls int, bytes unit.Bytes, waited, total unit.Seconds) comm.Cost {
		return comm.Cost{Group: "dp", Size: 2, Op: op, Calls: calls, Bytes: bytes, Waited: waited, Total: total}
	}
	want := [2][]comm.Cost{
		{cost(comm.AllReduce, 2, 32768, 3, 3+1), cost(comm.AllToAllV, 1, 6, 0, 0), cost(comm.Send, 1, 8, 0, 0)},
		{cost(comm.AllReduce, 2, 32768, 0, 0+1.5), cost(comm.AllToAllV, 1, 8, 0, 0), cost(comm.Recv, 1, 8, 0.5, 0.5)},
	}
	if diff := cmp.Diff(want, costs); diff != "" {
		t.Errorf("costs (-want +got):\n%s", diff)
	}
	var out bytes.Buffer
	if err := trace.WriteChrome(&out, trace.Perfetto, recorders...); err != nil {
		t.Fatal(err)
	}
	golden(t, "observe.json", out.Bytes())
}

// golden compares got with a file of testdata.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestObservedConformance holds that observing changes nothing else.
func TestObservedConformance(t *testing.T) {
	begin := time.Now()
	clock := func() trace.Tick { return trace.Tick(time.Since(begin)) }
	suite := commtest.Suite{Sizes: []int{2, 3}, New: func(n int) commtest.World {
		w := local(n)
		for i, e := range w.Endpoints {
			w.Endpoints[i] = comm.Observe(e, comm.ObserveOptions{Clock: clock, Trace: trace.NewRecorder(i, trace.Options{Events: 64})})
		}
		return w
	}}
	for _, c := range append(commtest.Results(), commtest.Failures()...) {
		if c.Name == "operations" || c.Name == "started operations" {
			continue // long, and more of the same
		}
		t.Run(c.Name, func(t *testing.T) { c.Run(t, suite) })
	}
}
