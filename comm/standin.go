package comm

import (
	"math"

	"carve/tensor"
)

// reducer is the portable arithmetic of collectives, until package tensor has it.
type reducer struct{}

func newReducer() *reducer { return &reducer{} }

// Reduce combines elements [lo, hi) of srcs in their order into every one of dsts.
func (r *reducer) Reduce(dsts, srcs []*tensor.Tensor, op tensor.ReduceOp, lo, hi int) {
	if lo >= hi {
		return
	}
	same := func(x float32) float32 { return x }
	switch srcs[0].DType() {
	case tensor.FP32:
		combine(dsts, srcs, op, lo, hi, (*tensor.Tensor).F32, same, same)
	case tensor.FP64:
		id := func(x float64) float64 { return x }
		combine(dsts, srcs, op, lo, hi, (*tensor.Tensor).F64, id, id)
	case tensor.Int32:
		id := func(x int32) int32 { return x }
		combine(dsts, srcs, op, lo, hi, (*tensor.Tensor).I32, id, id)
	case tensor.BF16:
		combine(dsts, srcs, op, lo, hi, (*tensor.Tensor).BF16, widen, narrow)
	}
}

func widen(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }

func narrow(x float32) uint16 {
	bits := math.Float32bits(x)
	if x != x {
		return uint16(bits>>16) | 1
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

func combine[E uint16 | int32 | float32 | float64, T int32 | float32 | float64](dsts, srcs []*tensor.Tensor, op tensor.ReduceOp,
	lo, hi int, of func(*tensor.Tensor) []E, in func(E) T, out func(T) E,
) {
	for i := lo; i < hi; i++ {
		acc := in(of(srcs[0])[i])
		for _, s := range srcs[1:] {
			x := in(of(s)[i])
			switch op {
			case tensor.Sum, tensor.Avg:
				acc += x
			case tensor.Min:
				acc = min(acc, x)
			case tensor.Max:
				acc = max(acc, x)
			}
		}
		if op == tensor.Avg {
			acc /= T(len(srcs))
		}
		for _, t := range dsts {
			of(t)[i] = out(acc)
		}
	}
}

// Copy copies n elements of src from slo on to dst from dlo on.
func (r *reducer) Copy(dst *tensor.Tensor, dlo int, src *tensor.Tensor, slo, n int) {
	size := dst.DType().Size()
	copy(dst.Raw()[dlo*size:(dlo+n)*size], src.Raw()[slo*size:(slo+n)*size])
}
