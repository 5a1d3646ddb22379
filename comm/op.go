package comm

import (
	"fmt"

	"carve/collective"
)

// Op is a communication operation.
type Op uint8

// The operations.
const (
	Barrier Op = iota
	Broadcast
	Reduce
	AllReduce
	Gather
	AllGather
	Scatter
	ReduceScatter
	AllToAll
	AllToAllV
	Send
	Recv
	numOps
)

// Collective is the operation as package collective names it; false for messages, which are none. Blocks of a variable
// all-to-all count as equal ones.
func (o Op) Collective() (_ collective.Op, ok bool) {
	switch o {
	case Barrier:
		return collective.Barrier, true
	case Broadcast:
		return collective.Broadcast, true
	case Reduce:
		return collective.Reduce, true
	case AllReduce:
		return collective.AllReduce, true
	case Gather:
		return collective.Gather, true
	case AllGather:
		return collective.AllGather, true
	case Scatter:
		return collective.Scatter, true
	case ReduceScatter:
		return collective.ReduceScatter, true
	case AllToAll, AllToAllV:
		return collective.AllToAll, true
	case Send, Recv, numOps:
	}
	return 0, false
}

// Ops lists every operation.
func Ops() []Op {
	return []Op{Barrier, Broadcast, Reduce, AllReduce, Gather, AllGather, Scatter, ReduceScatter, AllToAll, AllToAllV, Send, Recv}
}

// opNames are for people; the form with underscores is made from them.
var opNames = [numOps]string{
	"barrier", "broadcast", "reduce", "all-reduce", "gather", "all-gather", "scatter", "reduce-scatter",
	"all-to-all", "all-to-all-v", "send", "recv",
}

// String is the name for people: "all-reduce".
func (o Op) String() string {
	if o < numOps {
		return opNames[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// Reduces tells whether the operation combines elements.
func (o Op) Reduces() bool { return o == Reduce || o == AllReduce || o == ReduceScatter }

// Rooted tells whether the operation has a root.
func (o Op) Rooted() bool { return o == Broadcast || o == Reduce || o == Gather || o == Scatter }

// PointToPoint tells whether the operation has one peer instead of the whole group.
func (o Op) PointToPoint() bool { return o == Send || o == Recv }

// BusFactor turns algorithm bandwidth (size / time) into bus bandwidth, the rate at which the busiest
// link must have worked, for a group of n; the size is that of [Call.Size]. Factors of nccl-tests.
func (o Op) BusFactor(n int) float64 {
	switch o {
	case Barrier:
		return 0
	case AllReduce:
		return 2 * float64(n-1) / float64(n)
	case Gather, AllGather, Scatter, ReduceScatter, AllToAll, AllToAllV:
		return float64(n-1) / float64(n)
	case Broadcast, Reduce, Send, Recv:
		return 1
	case numOps:
	}
	panic(fmt.Sprintf("comm: operation %d is not known", uint8(o)))
}
