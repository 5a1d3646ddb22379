package commtest

import (
	"fmt"

	"carve/comm"
	"carve/tensor"
)

// step is one collective of a program, the same on all members.
type step struct {
	op     comm.Op
	reduce tensor.ReduceOp
	dtype  tensor.DType
	count  int // elements that each member contributes
	root   int
	place  place
	how    how
	seed   uint64
	value  func(d tensor.DType, seed uint64, rank, i int) float64 // nil is whole numbers
}

// place says whether source and destination share memory.
type place uint8

const (
	apart place = iota
	inPlace
)

// how says how an operation is called.
type how uint8

const (
	blocking how = iota
	started
)

func (s step) String() string {
	sig := comm.Signature{Op: s.op, Reduce: s.reduce, DType: s.dtype, Count: s.count, Peer: int32(s.root)}
	return fmt.Sprintf("%v (place %d, how %d)", sig, s.place, s.how)
}

// element is element k of what member i contributes.
func (s step) element(i, k int) float64 {
	if s.value != nil {
		return s.value(s.dtype, s.seed, i, k)
	}
	return whole(s.seed, i, k)
}

// input is what member i contributes in a group of n: one block, or one for each member.
func (s step) input(i, n int) []float64 {
	switch s.op {
	case comm.Scatter, comm.ReduceScatter, comm.AllToAll:
		return s.elements(nil, i, 0, n*s.count)
	default:
		return s.elements(nil, i, 0, s.count)
	}
}

// elements appends n elements of member i's from lo on.
func (s step) elements(xs []float64, i, lo, n int) []float64 {
	for k := lo; k < lo+n; k++ {
		xs = append(xs, s.element(i, k))
	}
	return xs
}

// want is what member at receives in a group of n, and nil when it receives nothing.
func (s step) want(at, n int) []float64 {
	want := make([]float64, 0, n*s.count)
	switch s.op {
	case comm.Broadcast:
		return s.elements(want, s.root, 0, s.count)
	case comm.AllReduce:
		return s.folded(want, n, 0)
	case comm.ReduceScatter:
		return s.folded(want, n, at*s.count)
	case comm.AllGather:
		return s.blocks(want, n, 0)
	case comm.AllToAll:
		return s.blocks(want, n, at*s.count)
	case comm.Scatter:
		return s.elements(want, s.root, at*s.count, s.count)
	case comm.Reduce:
		if at == s.root {
			return s.folded(want, n, 0)
		}
	case comm.Gather:
		if at == s.root {
			return s.blocks(want, n, 0)
		}
	default:
	}
	return nil
}

// folded appends the combination of every member's block from element lo on.
func (s step) folded(want []float64, n, lo int) []float64 {
	xs := make([]float64, n)
	for k := lo; k < lo+s.count; k++ {
		for i := range xs {
			xs[i] = s.element(i, k)
		}
		want = append(want, fold(s.dtype, s.reduce, xs))
	}
	return want
}

// blocks appends every member's block from element lo on.
func (s step) blocks(want []float64, n, lo int) []float64 {
	for i := range n {
		want = s.elements(want, i, lo, s.count)
	}
	return want
}

// running is a step that one member has begun.
type running struct {
	step
	g        *comm.Group
	src, dst operand // dst is src, or a block of it, or the other way round, in place
	dt, st   *tensor.Tensor
	work     comm.Work
}

// begin prepares the operands and issues the step. A blocking one has finished when begin returns.
func (r *rank) begin(s step, g *comm.Group) (*running, error) {
	run := &running{step: s, g: g}
	input, want := s.input(g.Rank(), g.Size()), s.want(g.Rank(), g.Size())
	run.src = r.filled(s.dtype, input)
	run.st = run.src.t
	switch {
	case s.op == comm.Barrier || s.op == comm.Broadcast || s.op == comm.Reduce:
	case s.place == apart:
		run.dst = r.operand(s.dtype, len(want))
		run.dt = run.dst.t
	case len(input) == len(want) || want == nil:
		run.dt = run.st
	case len(input) < len(want):
		run.placeInDst(r, input, want)
	default:
		run.dt = run.st.Slice(g.Rank()*s.count, (g.Rank()+1)*s.count)
	}
	if s.how == started {
		run.work = run.start()
		return run, nil
	}
	return run, run.call()
}

// placeInDst makes the source a block of the destination.
func (run *running) placeInDst(r *rank, input, want []float64) {
	run.src = r.operand(run.dtype, len(want))
	run.dt = run.src.t
	at := run.g.Rank() * run.count
	run.st = run.dt.Slice(at, at+run.count)
	for i, x := range input {
		set(run.st, i, x)
	}
}

// finish waits for the step and checks every element of its operands.
func (run *running) finish() error {
	if err := run.work.Wait(); err != nil {
		return err
	}
	if err := run.verify(); err != nil {
		return fmt.Errorf("member %d of %d: %v: %w", run.g.Rank(), run.g.Size(), run.step, err)
	}
	return nil
}

func (run *running) verify() error {
	at, n := run.g.Rank(), run.g.Size()
	input, want := run.input(at, n), run.want(at, n)
	if run.dst.t != nil {
		if err := run.src.check("source", input); err != nil {
			return err
		}
		return run.dst.check("destination", want)
	}
	switch {
	case want == nil: // this member only contributes
		want = input
	case run.op == comm.Scatter || run.op == comm.ReduceScatter:
		want = append(append(append([]float64{}, input[:at*run.count]...), want...), input[(at+1)*run.count:]...)
	}
	return run.src.check("in place", want)
}

// call is the blocking call.
func (run *running) call() error {
	g, t := run.g, run.st
	switch run.op {
	case comm.Barrier:
		return g.Barrier()
	case comm.Broadcast:
		return g.Broadcast(t, run.root)
	case comm.Reduce:
		return g.Reduce(t, run.reduce, run.root)
	case comm.AllReduce:
		if run.place == inPlace {
			return g.AllReduce(t, run.reduce)
		}
		return g.AllReduceTo(run.dt, t, run.reduce)
	case comm.Gather:
		return g.Gather(run.dt, t, run.root)
	case comm.AllGather:
		return g.AllGather(run.dt, t)
	case comm.Scatter:
		return g.Scatter(run.dt, t, run.root)
	case comm.ReduceScatter:
		return g.ReduceScatter(run.dt, t, run.reduce)
	case comm.AllToAll:
		return g.AllToAll(run.dt, t)
	default:
		return fmt.Errorf("commtest: no step for %v", run.op)
	}
}

// start is the same, started.
func (run *running) start() comm.Work {
	g, t := run.g, run.st
	switch run.op {
	case comm.Broadcast:
		return g.BroadcastStart(t, run.root)
	case comm.Reduce:
		return g.ReduceStart(t, run.reduce, run.root)
	case comm.AllReduce:
		if run.place == inPlace {
			return g.AllReduceStart(t, run.reduce)
		}
		return g.AllReduceToStart(run.dt, t, run.reduce)
	case comm.Gather:
		return g.GatherStart(run.dt, t, run.root)
	case comm.AllGather:
		return g.AllGatherStart(run.dt, t)
	case comm.Scatter:
		return g.ScatterStart(run.dt, t, run.root)
	case comm.ReduceScatter:
		return g.ReduceScatterStart(run.dt, t, run.reduce)
	case comm.AllToAll:
		return g.AllToAllStart(run.dt, t)
	default:
		return g.BarrierStart()
	}
}
