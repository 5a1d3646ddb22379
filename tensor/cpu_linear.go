package tensor

import "carve/tensor/internal/kernel"

// MatMul implements [LinearDevice].
func (c *CPU) MatMul(op MatMul) {
	c.product = op.gemm()
	if op.C.Len() == 0 {
		return
	}
	c.ctx.Gemm(&c.product)
}

// gemm is the operation in the kernel's terms, with shapes checked.
func (op *MatMul) gemm() kernel.Gemm {
	const name = "matmul"
	m, k := op.A.Rows(), op.A.Cols()
	if op.TransA {
		m, k = k, m
	}
	kb, n := op.B.Rows(), op.B.Cols()
	if op.TransB {
		kb, n = n, kb
	}
	need(k == kb, name, "inner sizes differ")
	need(op.C.Rows() == m && op.C.Cols() == n, name, "C is not rows of A by columns of B")
	g := kernel.Gemm{M: m, N: n, K: k, A: matrix(whole(op.A), 0, 0), B: matrix(whole(op.B), 0, 0), C: matrix(whole(op.C), 0, 0)}
	g.A.Trans, g.B.Trans = op.TransA, op.TransB
	if op.Accumulate {
		g.Write = kernel.Accumulate
	}
	if op.Bias != nil {
		wantLen(name, "bias", op.Bias, n)
		g.Bias = matrix(whole(op.Bias), 0, 0)
	}
	if op.Residual != nil {
		sameLen(name, op.Residual, op.C)
		g.Residual = matrix(whole(op.Residual), 0, 0)
	}
	return g
}

// matrix is the rows of one head from row on, as an operand of a product.
func matrix(c Columns, row, head int) kernel.Mat {
	i := row*c.T.Cols() + c.Start + head*c.Width
	m := kernel.Mat{LD: c.T.Cols()}
	switch c.T.dtype {
	case FP32:
		m.F32 = c.T.F32()[i:]
	case BF16:
		m.BF16 = c.T.BF16()[i:]
	case FP64:
		m.F64 = c.T.F64()[i:]
	case Int32:
		panic("tensor: a product of int32")
	}
	return m
}
