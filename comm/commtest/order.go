package commtest

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"carve/comm"
	"carve/tensor"

	"pgregory.net/rapid"
)

// dawdle makes this rank late, by an amount that differs from rank to rank.
func (r *rank) dawdle(seed uint64, most uint64) {
	for range mix(seed, r.Rank(), 0) % most {
		runtime.Gosched()
	}
}

// checkIssueOrder starts operations that depend on one another, and waits for the last only.
func checkIssueOrder(t rapid.TB, s Suite) {
	const length = 5
	for _, n := range s.sizes() {
		s.must(t, n, func(r *rank) error {
			x, y := r.filled(tensor.Int32, []float64{1, float64(r.Rank())}), r.operand(tensor.Int32, 2*n)
			var last comm.Work
			for range length {
				r.all.AllReduceStart(x.t, tensor.Sum)
				last = r.all.AllGatherStart(y.t, x.t)
				r.all.ReduceScatterStart(x.t, y.t, tensor.Max)
			}
			if err := r.all.Barrier(); err != nil {
				return err
			}
			if err := last.Wait(); err != nil {
				return err
			}
			want := []float64{1, float64(n * (n - 1) / 2)}
			for i := range length {
				want[0] *= float64(n)
				if i > 0 {
					want[1] *= float64(n)
				}
			}
			return x.check(fmt.Sprintf("chain of %d ranks", n), want)
		})
	}
}

// checkIndependence starts an operation of one group that cannot proceed before one of another group has, and
// works in overlapping groups at the same time.
func checkIndependence(t rapid.TB, s Suite) {
	for _, n := range s.several() {
		s.must(t, n, func(r *rank) error {
			other, err := r.Group("other", upTo(n))
			if err != nil {
				return err
			}
			x := r.filled(tensor.FP32, []float64{1})
			var w comm.Work
			if r.Rank() == 0 {
				w = r.all.AllReduceStart(x.t, tensor.Sum)
			}
			if err := other.Barrier(); err != nil {
				return err
			}
			if r.Rank() != 0 {
				w = r.all.AllReduceStart(x.t, tensor.Sum)
			}
			if err := w.Wait(); err != nil {
				return err
			}
			if err := x.check("all-reduce around a barrier", []float64{float64(n)}); err != nil {
				return err
			}
			return r.checkRows()
		})
	}
}

// checkRows sums over the two halves of the world, and over pairs across them, with all operations started at once.
func (r *rank) checkRows() error {
	n, k := r.Size(), r.Rank()
	half := upTo(n)[:(n+1)/2]
	if k >= len(half) {
		half = upTo(n)[len(half):]
	}
	mine, err := r.Group("half", half)
	if err != nil {
		return err
	}
	backwards := upTo(n)
	for i := range backwards {
		backwards[i] = n - 1 - i
	}
	reverse, err := r.Group("reverse", backwards)
	if err != nil {
		return err
	}
	if reverse.Rank() != n-1-k || reverse.Size() != n || reverse.Ranks()[0] != n-1 {
		return fmt.Errorf("rank %d has position %d of %v", k, reverse.Rank(), reverse.Ranks())
	}
	runs := make([]*running, 0, 3)
	for i, g := range []*comm.Group{mine, reverse, r.all} {
		// The twin's inputs go by position, hence the results are checked in every group alike.
		run, err := r.begin(step{op: comm.AllGather, dtype: tensor.FP64, count: 33, how: started, seed: uint64(i)}, g)
		if err != nil {
			return err
		}
		runs = append(runs, run)
	}
	runs[0], runs[2] = runs[2], runs[0]
	return finishAll(runs)
}

// checkMessages sends messages of many lengths between every pair in both directions, blocking and started.
func checkMessages(t rapid.TB, s Suite) {
	for _, n := range s.several() {
		s.must(t, n, func(r *rank) error {
			for from := range n {
				for to := range n {
					if from == to {
						continue
					}
					for i, d := range dtypes() {
						if err := r.message(from, to, d, lengths()[(from+to+i)%len(lengths())]); err != nil {
							return err
						}
					}
				}
			}
			return nil
		})
	}
}

// message sends three messages from one rank to another. The first two are started together.
func (r *rank) message(from, to int, d tensor.DType, count int) error {
	if r.Rank() != from && r.Rank() != to {
		return nil
	}
	var ops [3]operand
	var works [3]comm.Work
	var want [3][]float64
	for i := range ops {
		for k := range count {
			want[i] = append(want[i], whole(uint64(i), from, k))
		}
		if r.Rank() == from {
			ops[i] = r.filled(d, want[i])
		} else {
			ops[i] = r.operand(d, count)
		}
	}
	for i := range works[:2] {
		if r.Rank() == from {
			works[i] = r.all.SendStart(ops[i].t, to)
		} else {
			works[i] = r.all.RecvStart(ops[i].t, from)
		}
	}
	var err error
	if r.Rank() == from {
		err = r.all.Send(ops[2].t, to)
	} else {
		err = r.all.Recv(ops[2].t, from)
	}
	if err := first(err, works[1].Wait(), works[0].Wait()); err != nil {
		return err
	}
	for i := range ops {
		if err := ops[i].check(fmt.Sprintf("message %d from %d to %d", i, from, to), want[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkRing passes blocks around a ring: every rank starts to send before it receives, while a collective of the same
// group is under way.
func checkRing(t rapid.TB, s Suite) {
	for _, n := range s.several() {
		s.must(t, n, func(r *rank) error {
			next, prev := (r.Rank()+1)%n, (r.Rank()+n-1)%n
			sum := r.filled(tensor.Int32, []float64{float64(r.Rank())})
			late := r.all.AllReduceStart(sum.t, tensor.Sum)
			have, got := r.filled(tensor.FP32, []float64{float64(r.Rank()), 3}), r.operand(tensor.FP32, 2)
			for i := range n {
				send, recv := r.all.SendStart(have.t, next), r.all.RecvStart(got.t, prev)
				if err := first(recv.Wait(), send.Wait()); err != nil {
					return err
				}
				if err := got.check("ring", []float64{float64((r.Rank() + n - 1 - i) % n), 3}); err != nil {
					return err
				}
				have, got = got, have
			}
			return first(late.Wait(), sum.check("all-reduce beside a ring", []float64{float64(n * (n - 1) / 2)}))
		})
	}
}

// counter is a listener that counts.
type counter struct {
	calls   atomic.Int64
	cookies atomic.Uint64
}

func (c *counter) Finished(cookie uint64) {
	c.cookies.Add(cookie)
	c.calls.Add(1)
}

// checkOverlap computes, yielding now and then, until a started operation has finished without anybody waiting for
// it; and holds the token for itself while it does not yield.
func checkOverlap(t rapid.TB, s Suite) {
	for _, n := range s.sizes() {
		s.must(t, n, func(r *rank) error {
			var heard counter
			x := r.operand(tensor.FP32, 1<<16)
			w := r.all.Carrier().Start(comm.Call{Op: comm.AllReduce, Dst: x.t, Src: x.t, Listener: &heard})
			for heard.calls.Load() == 0 {
				r.Token().Yield()
				runtime.Gosched()
				if err := r.Err(); err != nil {
					return err
				}
			}
			return first(w.Wait(), r.all.Barrier())
		})
	}
}

// checkListeners holds that every operation reports its end exactly once.
func checkListeners(t rapid.TB, s Suite) {
	for _, n := range s.several() {
		s.must(t, n, func(r *rank) error {
			var heard counter
			x, y, z, c := r.operand(tensor.FP32, 1), r.operand(tensor.FP32, 1), r.operand(tensor.FP32, 1), r.all.Carrier()
			calls := []comm.Call{
				{Op: comm.Barrier},
				{Op: comm.AllReduce, Dst: x.t, Src: x.t},
				{Op: comm.Send, Peer: (r.Rank() + 1) % n, Src: y.t},
				{Op: comm.Recv, Peer: (r.Rank() + n - 1) % n, Dst: z.t},
				{Op: comm.Barrier},
			}
			var works []comm.Work
			for i, call := range calls {
				call.Listener, call.Cookie = &heard, 1<<i
				works = append(works, c.Start(call))
			}
			for _, w := range works {
				if err := first(w.Wait(), w.Wait()); err != nil {
					return err
				}
			}
			if k, sum := heard.calls.Load(), heard.cookies.Load(); k != int64(len(calls)) || sum != 1<<len(calls)-1 {
				return fmt.Errorf("%d operations reported %d ends with cookies %b", len(calls), k, sum)
			}
			return nil
		})
	}
}
