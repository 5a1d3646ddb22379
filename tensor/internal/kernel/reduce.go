package kernel

// Combine is how a Reducer combines elements.
type Combine uint8

// The reductions. CombineAvg is the sum divided by the number of operands, once.
const (
	CombineSum Combine = iota
	CombineAvg
	CombineMin
	CombineMax
)

// reduceBlock is the number of elements that pass through the accumulator at once.
const reduceBlock = 512

// Reducer combines runs of several ranks. It has no state.
type Reducer struct{ features Features }

// NewReducer makes a Reducer that uses what the features allow.
func NewReducer(f Features) Reducer { return Reducer{f} }

// Float32 combines the runs srcs, which are of one length, in their order and writes the result to every run of dsts.
// A source may be a destination. Inlined into another package, it would make the caller's slices escape; so would the
// others.
//
//go:noinline
func (r Reducer) Float32(dsts, srcs [][]float32, op Combine) {
	done := r.sum32(dsts, srcs, op)
	reduce(dsts, srcs, op, done)
}

// Float64 is Float32 on fp64.
//
//go:noinline
func (r Reducer) Float64(dsts, srcs [][]float64, op Combine) { reduce(dsts, srcs, op, 0) }

// Int32 is Float32 on integers; averages are truncated toward zero.
//
//go:noinline
func (r Reducer) Int32(dsts, srcs [][]int32, op Combine) { reduce(dsts, srcs, op, 0) }

// BF16 is Float32 on bf16 numbers, combined in fp32 and rounded once.
//
//go:noinline
func (r Reducer) BF16(dsts, srcs [][]uint16, op Combine) {
	done := r.sumBF16(dsts, srcs, op)
	reduceBF16(dsts, srcs, op, done)
}

// reduce combines the elements from one on, in plain Go.
func reduce[T Float | int32](dsts, srcs [][]T, op Combine, from int) {
	var acc [reduceBlock]T
	n := len(srcs[0])
	for lo := from; lo < n; lo += reduceBlock {
		hi := min(n, lo+reduceBlock)
		a := acc[:hi-lo]
		copy(a, srcs[0][lo:hi])
		for _, s := range srcs[1:] {
			combine(a, s[lo:hi], op)
		}
		average(a, len(srcs), op)
		for _, d := range dsts {
			copy(d[lo:hi], a)
		}
	}
}

func reduceBF16(dsts, srcs [][]uint16, op Combine, from int) {
	var acc, x [reduceBlock]float32
	n := len(srcs[0])
	for lo := from; lo < n; lo += reduceBlock {
		hi := min(n, lo+reduceBlock)
		a := acc[:hi-lo]
		widen(a, srcs[0][lo:hi])
		for _, s := range srcs[1:] {
			widen(x[:hi-lo], s[lo:hi])
			combine(a, x[:hi-lo], op)
		}
		average(a, len(srcs), op)
		for _, d := range dsts {
			narrow(d[lo:hi], a)
		}
	}
}

func widen(dst []float32, x []uint16) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = expand(x[i])
	}
}

func narrow(dst []uint16, x []float32) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = round(x[i])
	}
}

func combine[T Float | int32](a, x []T, op Combine) {
	x = x[:len(a)]
	switch op {
	case CombineSum, CombineAvg:
		for i := range a {
			a[i] += x[i]
		}
	case CombineMin:
		for i := range a {
			a[i] = min(a[i], x[i])
		}
	case CombineMax:
		for i := range a {
			a[i] = max(a[i], x[i])
		}
	}
}

func average[T Float | int32](a []T, n int, op Combine) {
	if op != CombineAvg {
		return
	}
	for i := range a {
		a[i] /= T(n)
	}
}
