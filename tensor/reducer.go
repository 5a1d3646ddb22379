package tensor

import (
	"fmt"
	"unsafe"

	"carve/tensor/internal/kernel"
)

// Reducer is the arithmetic of collectives: it combines and copies elements of several ranks' tensors, which may be of
// different arenas. It has no state, so that every goroutine may use one at once.
type Reducer struct {
	kernel kernel.Reducer
}

// NewReducer makes a reducer for this CPU.
func NewReducer() *Reducer { return &Reducer{kernel: kernel.NewReducer(kernel.Detect())} }

// manyRanks is the number of operands up to which Reduce allocates nothing.
const manyRanks = 16

// Reduce combines elements [lo, hi) of srcs in their order and writes the result to the same elements of every one of
// dsts. A source may be a destination. All are of one dtype; bf16 is combined in fp32 and rounded once; Avg
// divides once, and truncates int32 toward zero.
func (r *Reducer) Reduce(dsts, srcs []*Tensor, op ReduceOp, lo, hi int) {
	if lo >= hi || len(srcs) == 0 {
		return
	}
	how := combination(op)
	switch srcs[0].dtype {
	case FP32:
		var d, s [manyRanks][]float32
		r.kernel.Float32(ranges(d[:0], dsts, FP32, lo, hi), ranges(s[:0], srcs, FP32, lo, hi), how)
	case BF16:
		var d, s [manyRanks][]uint16
		r.kernel.BF16(ranges(d[:0], dsts, BF16, lo, hi), ranges(s[:0], srcs, BF16, lo, hi), how)
	case FP64:
		var d, s [manyRanks][]float64
		r.kernel.Float64(ranges(d[:0], dsts, FP64, lo, hi), ranges(s[:0], srcs, FP64, lo, hi), how)
	case Int32:
		var d, s [manyRanks][]int32
		r.kernel.Int32(ranges(d[:0], dsts, Int32, lo, hi), ranges(s[:0], srcs, Int32, lo, hi), how)
	}
}

// ranges appends elements [lo, hi) of every tensor to rs.
func ranges[T any](rs [][]T, ts []*Tensor, d DType, lo, hi int) [][]T {
	for _, t := range ts {
		t.want(d)
		rs = append(rs, unsafe.Slice((*T)(t.data), t.stored())[lo:hi])
	}
	return rs
}

func combination(op ReduceOp) kernel.Combine {
	switch op {
	case Sum:
		return kernel.CombineSum
	case Avg:
		return kernel.CombineAvg
	case Min:
		return kernel.CombineMin
	case Max:
		return kernel.CombineMax
	}
	panic(fmt.Sprintf("tensor: reduction %d is not known", uint8(op)))
}

// Copy copies n elements of src from slo on to dst from dlo on. Both are of one dtype.
func (r *Reducer) Copy(dst *Tensor, dlo int, src *Tensor, slo, n int) {
	if dst.dtype != src.dtype {
		panic(fmt.Sprintf("tensor: copy of %v to %v", src, dst))
	}
	size := dst.dtype.Size()
	copy(dst.Raw()[dlo*size:(dlo+n)*size], src.Raw()[slo*size:(slo+n)*size])
}
