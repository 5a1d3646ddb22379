package nn

import "carve/tensor"

// experts are the feed-forwards of a layer that this rank holds: neighbours in the order of their numbers, each with the weights
// of one dense feed-forward, whole or split over the tensor axis. Each computes a contiguous run of rows, one product per
// matrix.
//
// The gate multiplies what the second matrix gets, which is the same as multiplying what it gives and needs neither
// the experts' results in the backward nor a second buffer of their size.
type experts struct {
	each     []expert
	act      activation
	features int // F of this rank's part
}

type expert struct {
	up   Linear // gate and up, fused, for SwiGLU
	down Linear
}

// expertsSaved is what one micro-batch's R rows leave for the backward.
type expertsSaved struct {
	x    *tensor.Tensor // [R H]
	u    *tensor.Tensor // [R 2F] or [R F]
	gate *tensor.Tensor // [R 1], full precision
}

func (s *expertsSaved) free() {
	s.x.Free()
	s.u.Free()
	s.gate.Free()
	*s = expertsSaved{}
}

// params lists the parameters.
func (l *experts) params() (params []*Param) {
	for i := range l.each {
		params = append(params, collect(l.each[i].up.weight, l.each[i].down.weight)...)
	}
	return params
}

// forward computes the rows of s.x, rows[i] of them for expert i, in turn, into y [R H], and fills s.u.
func (l *experts) forward(r *Rank, rows []int, s *expertsSaved) (y *tensor.Tensor) {
	s.u = r.activation(s.x.Rows(), l.each[0].up.out())
	l.runs(rows, func(e *expert, lo, hi int) { e.up.forward(r, s.u, s.x, lo, hi) })
	h := l.act.forward(r, s.u) // [R F]
	r.Dev.ScaleRows(h, h, s.gate)
	y = r.activation(s.x.Rows(), s.x.Cols())
	l.runs(rows, func(e *expert, lo, hi int) { e.down.forward(r, y, h, lo, hi) })
	h.Free()
	return y
}

// runs calls f with the rows [lo, hi) of every expert that has some.
func (l *experts) runs(rows []int, f func(e *expert, lo, hi int)) {
	lo := 0
	for i, n := range rows {
		if n > 0 {
			f(&l.each[i], lo, lo+n)
		}
		lo += n
	}
}

// forward is rows [lo, hi) of y = x·Wᵀ.
func (l *Linear) forward(r *Rank, y, x *tensor.Tensor, lo, hi int) {
	ys, xs := y.RowRange(lo, hi), x.RowRange(lo, hi)
	r.Dev.MatMul(tensor.MatMul{C: ys, A: xs, B: l.weight.value, TransB: true})
	ys.Free()
	xs.Free()
}

// backward is rows [lo, hi) of dx = dy·W.
func (l *Linear) backward(r *Rank, dx, dy *tensor.Tensor, lo, hi int) {
	dxs, dys := dx.RowRange(lo, hi), dy.RowRange(lo, hi)
	r.Dev.MatMul(tensor.MatMul{C: dxs, A: dys, B: l.weight.value})
	dxs.Free()
	dys.Free()
}

// backward computes the gradient of the rows, dx [R H], and of each row's gate, times the gate, pull [R 1]. It takes
// over dy and s.
func (l *experts) backward(r *Rank, rows []int, dy *tensor.Tensor, s *expertsSaved) (dx, pull *tensor.Tensor) {
	dh := r.activation(dy.Rows(), l.features)
	l.runs(rows, func(e *expert, lo, hi int) { e.down.backward(r, dh, dy, lo, hi) })
	r.Dev.ScaleRows(dh, dh, s.gate)
	h := l.act.backward(r, dh, s.u)
	pull = r.statistics(dy.Rows(), 1)
	r.Dev.DotRows(pull, dh, h)
	dh.Free()
	r.Dev.ScaleRows(h, h, s.gate)
	dx = r.activation(dy.Rows(), dy.Cols())
	l.runs(rows, func(e *expert, lo, hi int) { e.up.backward(r, dx, s.u, lo, hi) })
	l.runs(rows, func(e *expert, lo, hi int) {
		r.WeightGrad(&e.down, dy.RowRange(lo, hi), h.RowRange(lo, hi))
		r.WeightGrad(&e.up, s.u.RowRange(lo, hi), s.x.RowRange(lo, hi))
	})
	r.WeightGradDone(dy, h)
	r.WeightGradDone(s.u, s.x)
	s.u, s.x = nil, nil
	s.free()
	return dx, pull
}
