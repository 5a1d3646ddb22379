//go:build amd64 && !noasm

package kernel

import "unsafe"

// sum32 sums as many elements as make whole vectors and returns their number.
func (r Reducer) sum32(dsts, srcs [][]float32, op Combine) (done int) {
	n := len(srcs[0]) &^ 15
	if !op.sums() || n == 0 || len(dsts) == 0 {
		return 0
	}
	fits(dsts, n)
	fits(srcs, n)
	switch {
	case r.features.AVX512:
		reduceSumAVX512(n, unsafe.SliceData(dsts), len(dsts), unsafe.SliceData(srcs), len(srcs), op.divisor(len(srcs)))
	case r.features.AVX2:
		reduceSumAVX2(n, unsafe.SliceData(dsts), len(dsts), unsafe.SliceData(srcs), len(srcs), op.divisor(len(srcs)))
	default:
		return 0
	}
	return n
}

// sumBF16 is sum32 on bf16.
func (r Reducer) sumBF16(dsts, srcs [][]uint16, op Combine) (done int) {
	n := len(srcs[0]) &^ 15
	if !op.sums() || n == 0 || len(dsts) == 0 {
		return 0
	}
	fits(dsts, n)
	fits(srcs, n)
	switch {
	case r.features.AVX512:
		reduceSumBF16AVX512(n, unsafe.SliceData(dsts), len(dsts), unsafe.SliceData(srcs), len(srcs), op.divisor(len(srcs)))
	case r.features.AVX2:
		reduceSumBF16AVX2(n, unsafe.SliceData(dsts), len(dsts), unsafe.SliceData(srcs), len(srcs), op.divisor(len(srcs)))
	default:
		return 0
	}
	return n
}

// divisor is what the sum of n operands is divided by.
func (op Combine) divisor(n int) float32 {
	if op == CombineAvg {
		return float32(n)
	}
	return 1
}

// sums reports whether op begins with a sum.
func (op Combine) sums() bool { return op == CombineSum || op == CombineAvg }

// fits panics unless every run has n elements.
func fits[T any](runs [][]T, n int) {
	for _, r := range runs {
		_ = r[:n]
	}
}
