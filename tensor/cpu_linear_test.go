package tensor

import (
	"fmt"
	"testing"
)

func matMulTwin(op MatMul) []float64 {
	at := func(t *Tensor, v []float64, trans bool, i, j int) float64 {
		if trans {
			i, j = j, i
		}
		return v[i*t.Cols()+j]
	}
	a, b, c := values(op.A), values(op.B), values(op.C)
	var bias, residual []float64
	if op.Bias != nil {
		bias = values(op.Bias)
	}
	if op.Residual != nil {
		residual = values(op.Residual)
	}
	k := op.A.Cols()
	if op.TransA {
		k = op.A.Rows()
	}
	for i := range op.C.Rows() {
		for j := range op.C.Cols() {
			s := 0.0
			for l := range k {
				s += at(op.A, a, op.TransA, i, l) * at(op.B, b, op.TransB, l, j)
			}
			if bias != nil {
				s += bias[j]
			}
			if residual != nil {
				s += residual[i*op.C.Cols()+j]
			}
			if op.Accumulate {
				s += c[i*op.C.Cols()+j]
			}
			c[i*op.C.Cols()+j] = s
		}
	}
	return c
}

// The kernel's own tests go through shapes; here is that every field of the operation arrives.
func TestMatMul(t *testing.T) {
	const m, n, kk = 13, 21, 8
	var cases []opCase
	for form := range 32 {
		cases = append(cases, opCase{fmt.Sprintf("form %05b", form), func(k *kit) (c trial) {
			op := MatMul{A: k.random(m, kk), B: k.random(kk, n), C: k.randomOf(k.statistics(), m, n), Accumulate: form&4 != 0}
			if form&1 != 0 {
				op.A, op.TransA = k.random(kk, m), true
			}
			if form&2 != 0 {
				op.B, op.TransB = k.random(n, kk), true
			}
			if form&8 != 0 {
				op.Bias = k.random(n)
			}
			if form&16 != 0 {
				op.Residual = k.random(m, n)
			}
			c.expect(op.C, matMulTwin(op))
			c.call = func() { k.dev.MatMul(op) }
			return c
		}})
	}
	cases = append(cases, opCase{"no rows", func(k *kit) (c trial) {
		op := MatMul{A: k.random(0, kk), B: k.random(kk, n), C: k.random(0, n)}
		c.expect(op.C, nil)
		c.call = func() { k.dev.MatMul(op) }
		return c
	}})
	testCases(t, cases)
}

// TestMatMulOfNothing wants the product over no rows to be zero, whatever the device computed before.
func TestMatMulOfNothing(t *testing.T) {
	for _, d := range []DType{FP32, BF16, FP64} {
		k := newKit(d, 1)
		k.dev.MatMul(MatMul{C: k.random(7, 5), A: k.random(9, 7), B: k.random(9, 5), TransA: true}) // leaves sums in the workspace
		c := k.random(16, 16)
		k.dev.MatMul(MatMul{C: c, A: k.random(0, 16), B: k.random(0, 16), TransA: true})
		for i, v := range values(c) {
			if v != 0 {
				t.Errorf("%v: element %d is %v", d, i, v)
			}
		}
		k.close()
	}
}
