package comm

import "carve/tensor"

// reducer stands in for tensor.Reducer until that lands.
type reducer struct{}

func newReducer() *reducer { return &reducer{} }

func (r *reducer) Reduce(dsts, srcs []*tensor.Tensor, op tensor.ReduceOp, lo, hi int) {
	if lo >= hi {
		return
	}
	var d, s [64]*tensor.Tensor
	ds, ss := append(d[:0], dsts...), append(s[:0], srcs...)
	switch srcs[0].DType() {
	case tensor.FP32:
		combine(ds, ss, op, lo, hi, (*tensor.Tensor).F32)
	case tensor.FP64:
		combine(ds, ss, op, lo, hi, (*tensor.Tensor).F64)
	case tensor.Int32:
		combine(ds, ss, op, lo, hi, (*tensor.Tensor).I32)
	case tensor.BF16:
		panic("stand-in")
	}
}

func combine[T int32 | float32 | float64](dsts, srcs []*tensor.Tensor, op tensor.ReduceOp, lo, hi int, of func(*tensor.Tensor) []T) {
	for ; lo < hi; lo += 1024 {
		var acc [1024]T
		k := min(1024, hi-lo)
		a := acc[:k]
		copy(a, of(srcs[0])[lo:lo+k])
		for _, s := range srcs[1:] {
			x := of(s)[lo : lo+k]
			for i := range a {
				switch op {
				case tensor.Sum, tensor.Avg:
					a[i] += x[i]
				case tensor.Min:
					a[i] = min(a[i], x[i])
				case tensor.Max:
					a[i] = max(a[i], x[i])
				}
			}
		}
		if op == tensor.Avg {
			for i := range a {
				a[i] /= T(len(srcs))
			}
		}
		for _, t := range dsts {
			copy(of(t)[lo:lo+k], a)
		}
	}
}

func (r *reducer) Copy(dst *tensor.Tensor, dlo int, src *tensor.Tensor, slo, n int) {
	size := dst.DType().Size()
	copy(dst.Raw()[dlo*size:(dlo+n)*size], src.Raw()[slo*size:(slo+n)*size])
}
