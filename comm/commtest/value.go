package commtest

import (
	"fmt"
	"math"

	"carve/tensor"
)

// dtypes are the dtypes that engines carry.
func dtypes() []tensor.DType {
	return []tensor.DType{tensor.FP32, tensor.BF16, tensor.FP64, tensor.Int32}
}

// reductions are all reductions.
func reductions() []tensor.ReduceOp {
	return []tensor.ReduceOp{tensor.Sum, tensor.Avg, tensor.Min, tensor.Max}
}

// Elements of every dtype are float64 here: each dtype's values are exact in it.

// get is element i of t.
func get(t *tensor.Tensor, i int) float64 {
	switch t.DType() {
	case tensor.FP32:
		return float64(t.F32()[i])
	case tensor.BF16:
		return float64(math.Float32frombits(uint32(t.BF16()[i]) << 16))
	case tensor.FP64:
		return t.F64()[i]
	case tensor.Int32:
		return float64(t.I32()[i])
	}
	panic(fmt.Sprintf("commtest: dtype %v", t.DType()))
}

// set sets element i of t to x, which must be a value of its dtype.
func set(t *tensor.Tensor, i int, x float64) {
	switch t.DType() {
	case tensor.FP32:
		t.F32()[i] = float32(x)
	case tensor.BF16:
		t.BF16()[i] = uint16(math.Float32bits(float32(x)) >> 16)
	case tensor.FP64:
		t.F64()[i] = x
	case tensor.Int32:
		t.I32()[i] = int32(x)
	}
}

// round is the value of the dtype that is nearest to x; ties go to the even one.
func round(d tensor.DType, x float64) float64 {
	switch d {
	case tensor.FP32:
		return float64(float32(x))
	case tensor.BF16:
		bits := math.Float32bits(float32(x))
		bits += 0x7fff + bits>>16&1
		return float64(math.Float32frombits(bits &^ 0xffff))
	case tensor.FP64:
		return x
	case tensor.Int32:
		return math.Trunc(x)
	}
	panic(fmt.Sprintf("commtest: dtype %v", d))
}

// whole is a small integer for element i of a rank's operand: sums of it are exact in every dtype,
// in whatever order.
func whole(seed uint64, rank, i int) float64 {
	return float64(mix(seed, rank, i)%17) - 8
}

// rough is a number for which the order of a sum matters.
func rough(d tensor.DType, seed uint64, rank, i int) float64 {
	bits := mix(seed, rank, i)
	x := math.Ldexp(float64(bits>>12)/(1<<52)-0.5, int(bits%13))
	if d == tensor.Int32 {
		return float64(int32(bits))
	}
	return round(d, x)
}

// mix hashes a position: the finalizer of SplitMix64.
func mix(seed uint64, rank, i int) uint64 {
	z := seed + uint64(rank+1)*0x9e3779b97f4a7c15 + uint64(i+1)*0xd1342543de82ef95
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fold combines one element of every rank in the order of the ranks, with the arithmetic of the dtype: the dumb
// twin of every reduction.
func fold(d tensor.DType, op tensor.ReduceOp, xs []float64) float64 {
	acc := xs[0]
	for _, x := range xs[1:] {
		switch op {
		case tensor.Sum, tensor.Avg:
			acc = add(d, acc, x)
		case tensor.Min:
			acc = min(acc, x)
		case tensor.Max:
			acc = max(acc, x)
		}
	}
	if op == tensor.Avg {
		acc = divide(d, acc, len(xs))
	}
	return round(d, acc)
}

// add adds in the precision of accumulation: fp32 for bf16.
func add(d tensor.DType, a, b float64) float64 {
	switch d {
	case tensor.FP32, tensor.BF16:
		return float64(float32(a) + float32(b))
	case tensor.FP64:
		return a + b
	case tensor.Int32:
		return float64(int32(a) + int32(b))
	}
	panic(fmt.Sprintf("commtest: dtype %v", d))
}

func divide(d tensor.DType, a float64, n int) float64 {
	switch d {
	case tensor.FP32, tensor.BF16:
		return float64(float32(a) / float32(n))
	case tensor.FP64:
		return a / float64(n)
	case tensor.Int32:
		return float64(int32(a) / int32(n))
	}
	panic(fmt.Sprintf("commtest: dtype %v", d))
}
