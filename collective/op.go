package collective

import "fmt"

// Op is a collective operation.
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
	numOps
)

// Ops lists every operation.
func Ops() []Op {
	return []Op{Barrier, Broadcast, Reduce, AllReduce, Gather, AllGather, Scatter, ReduceScatter, AllToAll}
}

// String is the name of the operation.
func (o Op) String() string {
	names := [numOps]string{
		"barrier", "broadcast", "reduce", "all-reduce", "gather", "all-gather", "scatter", "reduce-scatter", "all-to-all",
	}
	if o < numOps {
		return names[o]
	}
	return fmt.Sprintf("op(%d)", uint8(o))
}

// combines tells whether blocks of different members are combined on the way.
func (o Op) combines() bool { return o == Reduce || o == AllReduce || o == ReduceScatter }

// Algorithm is a way to carry an operation out.
type Algorithm uint8

// The algorithms.
const (
	Direct       Algorithm = iota // every message straight to where it belongs
	Ring                          // neighbour to neighbour; what has a root begins with a tree
	Tree                          // binomial
	Doubling                      // distances of 1, 2, 4, …
	Halving                       // parts of a half, a quarter, …, then doubling
	Hierarchical                  // level of links by level
	numAlgorithms
)

// Algorithms lists every algorithm.
func Algorithms() []Algorithm {
	return []Algorithm{Direct, Ring, Tree, Doubling, Halving, Hierarchical}
}

// String is the name of the algorithm.
func (a Algorithm) String() string {
	names := [numAlgorithms]string{"direct", "ring", "tree", "doubling", "halving", "hierarchical"}
	if a < numAlgorithms {
		return names[a]
	}
	return fmt.Sprintf("algorithm(%d)", uint8(a))
}

// offers tells whether the algorithm has a way for the operation among n members of one level.
func (a Algorithm) offers(op Op, n int) bool {
	switch a {
	case Direct:
		return true
	case Ring:
		return op != Gather && op != Scatter && op != AllToAll && op != Barrier
	case Tree:
		return op != AllToAll
	case Doubling:
		return op == AllGather || op == ReduceScatter || op == AllToAll || op == Barrier || op == AllReduce && n&(n-1) == 0
	case Halving:
		return op == Broadcast || op == Reduce || op == AllReduce
	case Hierarchical, numAlgorithms:
	}
	return false
}

// log is ⌈log₂ n⌉.
func log(n int) (l int) {
	for 1<<l < n {
		l++
	}
	return l
}
