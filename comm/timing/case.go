package timing

import (
	"math"
	"strings"

	"carve/comm"
	"carve/tensor"
)

// Place says whether source and destination of an operation are different memory.
type Place uint8

// The places.
const (
	Apart Place = iota
	InPlace
)

// Name is the name of an operation in tables and flags: "all_reduce"; "send_recv" for messages around the group.
func Name(op comm.Op) string {
	if op == comm.Send {
		return "send_recv"
	}
	return strings.ReplaceAll(op.String(), "-", "_")
}

// Ops are the operations that can be timed.
func Ops() (list []comm.Op) {
	for _, op := range comm.Ops() {
		if op != comm.Recv {
			list = append(list, op)
		}
	}
	return list
}

// Places are the ways to call an operation, the usual one first.
func Places(op comm.Op) []Place {
	switch op {
	case comm.Barrier, comm.Broadcast, comm.Reduce:
		return []Place{InPlace}
	case comm.AllToAll, comm.AllToAllV, comm.Send, comm.Recv:
		return []Place{Apart}
	default:
		return []Place{Apart, InPlace}
	}
}

// root of the operations that have one.
const root = 0

// operation is one operation on one member.
type operation struct {
	g        *comm.Group
	op       comm.Op
	place    Place
	count    int // elements that each member contributes to each block
	src, dst *tensor.Tensor
	counts   []int
}

// newOperation cuts the operands from two tensors of the whole size.
func newOperation(g *comm.Group, op comm.Op, place Place, a, b *tensor.Tensor, count int) *operation {
	n, at := g.Size(), g.Rank()
	o := &operation{g: g, op: op, place: place, count: count}
	block := func(t *tensor.Tensor) *tensor.Tensor { return t.Slice(at*count, (at+1)*count) }
	in, out := 1, 1 // blocks of source and destination
	switch op {
	case comm.Gather, comm.AllGather:
		out = n
	case comm.Scatter, comm.ReduceScatter:
		in = n
	case comm.AllToAll, comm.AllToAllV:
		in, out = n, n
	default:
	}
	o.src, o.dst = a.Slice(0, in*count), b.Slice(0, out*count)
	if place == InPlace {
		switch {
		case in < out:
			o.src = block(o.dst)
		case out < in:
			o.dst = block(o.src)
		default:
			o.dst = o.src
		}
	}
	for range n {
		o.counts = append(o.counts, count)
	}
	return o
}

// call carries the operation out.
func (o *operation) call() error {
	g, n := o.g, o.g.Size()
	switch o.op {
	case comm.Barrier:
		return g.Barrier()
	case comm.Broadcast:
		return g.Broadcast(o.src, root)
	case comm.Reduce:
		return g.Reduce(o.src, tensor.Sum, root)
	case comm.AllReduce:
		return g.AllReduceTo(o.dst, o.src, tensor.Sum)
	case comm.Gather:
		return g.Gather(o.dst, o.src, root)
	case comm.AllGather:
		return g.AllGather(o.dst, o.src)
	case comm.Scatter:
		return g.Scatter(o.dst, o.src, root)
	case comm.ReduceScatter:
		return g.ReduceScatter(o.dst, o.src, tensor.Sum)
	case comm.AllToAll:
		return g.AllToAll(o.dst, o.src)
	case comm.AllToAllV:
		return g.AllToAllV(o.dst, o.src, o.counts, o.counts)
	default:
		if n == 1 {
			return nil
		}
		send := g.SendStart(o.src, (g.Rank()+1)%n)
		recv := g.RecvStart(o.dst, (g.Rank()+n-1)%n)
		if err := recv.Wait(); err != nil {
			return err
		}
		return send.Wait()
	}
}

// value is element i of what a member contributes: so small that every sum of up to 128 members is exact in every dtype.
func value(member, i int) float64 { return float64((i + member) % 3) }

// fill writes what this member contributes.
func (o *operation) fill() {
	for i := range o.src.Len() {
		set(o.src, i, value(o.g.Rank(), i))
	}
}

// wrong counts the elements that are not what they should be.
func (o *operation) wrong() (count int) {
	n, at := o.g.Size(), o.g.Rank()
	sum := func(i int) (s float64) {
		for m := range n {
			s += value(m, i)
		}
		return s
	}
	t, want := o.dst, sum
	switch o.op {
	case comm.Barrier:
		return 0
	case comm.Broadcast:
		t, want = o.src, func(i int) float64 { return value(root, i) }
	case comm.Reduce:
		if t = o.src; at != root {
			want = func(i int) float64 { return value(at, i) }
		}
	case comm.AllReduce:
	case comm.Gather, comm.AllGather:
		if o.op == comm.Gather && at != root {
			return 0
		}
		want = func(i int) float64 { return value(i/o.count, i%o.count) }
	case comm.Scatter:
		want = func(i int) float64 { return value(root, at*o.count+i) }
	case comm.ReduceScatter:
		want = func(i int) float64 { return sum(at*o.count + i) }
	case comm.AllToAll, comm.AllToAllV:
		want = func(i int) float64 { return value(i/o.count, at*o.count+i%o.count) }
	default:
		if n == 1 {
			return 0
		}
		want = func(i int) float64 { return value((at+n-1)%n, i) }
	}
	for i := range t.Len() {
		if get(t, i) != want(i) {
			count++
		}
	}
	return count
}

// set and get are an element of any dtype.
func set(t *tensor.Tensor, i int, x float64) {
	switch t.DType() {
	case tensor.FP32:
		t.F32()[i] = float32(x)
	case tensor.BF16:
		t.BF16()[i] = uint16(math.Float32bits(float32(x)) >> 16) // small whole numbers are exact
	case tensor.FP64:
		t.F64()[i] = x
	case tensor.Int32:
		t.I32()[i] = int32(x)
	}
}

func get(t *tensor.Tensor, i int) float64 {
	switch t.DType() {
	case tensor.FP32:
		return float64(t.F32()[i])
	case tensor.BF16:
		return float64(math.Float32frombits(uint32(t.BF16()[i]) << 16))
	case tensor.FP64:
		return t.F64()[i]
	case tensor.Int32:
	}
	return float64(t.I32()[i])
}
