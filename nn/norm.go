package nn

import "carve/tensor"

// norm is RMS normalisation, or layer normalisation where it has a shift, of rows or of heads.
type norm struct {
	scale, shift *weight
	eps          float64
}

// normStats are the statistics of a forward that its backward needs, [T heads].
type normStats struct{ mean, rstd *tensor.Tensor }

func (s *normStats) each(visit func(**tensor.Tensor)) {
	visit(&s.mean)
	visit(&s.rstd)
}

func (s normStats) free() {
	s.mean.Free()
	s.rstd.Free()
}

// forward sets y to the normalised x.
func (n *norm) forward(r *Rank, y, x tensor.Columns) (s normStats) {
	s.rstd = r.statistics(x.T.Rows(), x.Heads)
	if n.shift != nil {
		s.mean = r.statistics(x.T.Rows(), x.Heads)
	}
	n.again(r, y, x, s)
	return s
}

// again is forward with the statistics' tensors at hand; it computes them anew.
func (n *norm) again(r *Rank, y, x tensor.Columns, s normStats) {
	op := tensor.Norm{Y: y, X: x, W: n.scale.value, B: n.shift.optional(), Mean: s.mean, RStd: s.rstd, Eps: n.eps}
	if n.shift != nil {
		r.Dev.LayerNorm(op)
		return
	}
	r.Dev.RMSNorm(op)
}

// backward completes op, which says what to do with DX, DY, X and Y, and runs it.
func (n *norm) backward(r *Rank, op tensor.NormBackward, s normStats) {
	op.W, op.B = n.scale.value, n.shift.optional()
	op.DW, op.DB = n.scale.sum(r), n.shift.sum(r)
	op.Mean, op.RStd = s.mean, s.rstd
	if n.shift != nil {
		r.Dev.LayerNormBackward(op)
		return
	}
	r.Dev.RMSNormBackward(op)
}

// residual is the backward of a norm at the entry of a branch: the gradient dn of the norm's result becomes dx's
// share of the residual stream's gradient, which is added to dx. It returns the norm's result again, for the
// weight gradient of what follows, and takes over dn and s.
func (n *norm) residual(r *Rank, dx, dn, x *tensor.Tensor, s normStats) *tensor.Tensor {
	y := r.activation(x.Rows(), x.Cols())
	n.backward(r, tensor.NormBackward{
		DX: whole(dx), DY: whole(dn), X: whole(x), Y: whole(y), Accumulate: true,
	}, s)
	dn.Free()
	s.free()
	return y
}
