package kernel

// Combine is how Reduce combines elements.
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

// Reduce combines the runs srcs, which are of one length, in their order and writes the result to every run of dsts. A
// source may be a destination. Floating elements combine in T.
func Reduce[T Float | int32](dsts, srcs [][]T, op Combine) {
	var acc [reduceBlock]T
	n := len(srcs[0])
	for lo := 0; lo < n; lo += reduceBlock {
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

// ReduceBF16 is Reduce on bf16 numbers, combined in fp32 and rounded once.
func ReduceBF16(dsts, srcs [][]uint16, op Combine) {
	var acc, x [reduceBlock]float32
	n := len(srcs[0])
	for lo := 0; lo < n; lo += reduceBlock {
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
