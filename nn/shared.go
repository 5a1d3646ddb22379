package nn

import "carve/tensor"

// sharedExperts are the experts that every row passes, as one feed-forward, split over the tensor axis like a dense
// one. A gate may weigh its result by the sigmoid of one logit (Qwen2-MoE), as a router of a single expert. It
// multiplies what the second matrix gets, as in [experts].
type sharedExperts struct {
	up   Column
	act  activation
	down Row
	gate *Router // nil for none
}

// sharedSaved is what one micro-batch leaves for the backward.
type sharedSaved struct {
	u    *tensor.Tensor // [T 2F] or [T F]
	gate routes         // of one expert
}

func (s *sharedSaved) free() {
	s.u.Free()
	s.gate.free()
	*s = sharedSaved{}
}

func (l *sharedExperts) params() []*Param {
	params := collect(l.up.weight, l.down.weight)
	if l.gate != nil {
		params = append(params, collect(l.gate.weight)...)
	}
	return params
}

// forward is this rank's term of the result, plus residual, which may be nil, of all rows n [T H]. Both stay the caller's.
func (l *sharedExperts) forward(r *Rank, s *sharedSaved, n, residual *tensor.Tensor) (y *tensor.Tensor) {
	s.u = r.activation(n.Rows(), l.up.out())
	r.Dev.MatMul(tensor.MatMul{C: s.u, A: n, B: l.up.weight.value, TransB: true})
	h := l.act.forward(r, s.u)
	if l.gate != nil {
		s.gate = l.gate.forward(r, n)
		r.Dev.ScaleRows(h, h, s.gate.gate)
	}
	y = r.activation(n.Rows(), l.down.out())
	r.Dev.MatMul(tensor.MatMul{C: y, A: h, B: l.down.weight.value, TransB: true, Residual: residual})
	h.Free()
	return y
}

// backward is this rank's term of the gradient of n. all is all rows of dy, which is the caller's; it takes over all where
// that is a copy.
func (l *sharedExperts) backward(r *Rank, s *sharedSaved, all, dy *tensor.Tensor) (dn *tensor.Tensor) {
	up := l.up.weight.value
	dh := r.activation(all.Rows(), l.down.in())
	r.Dev.MatMul(tensor.MatMul{C: dh, A: all, B: l.down.weight.value})
	dn = r.activation(all.Rows(), l.up.in())
	if l.gate == nil {
		h := l.act.backward(r, dh, s.u)
		dh.Free()
		l.down.Grad(r, all, dy, h)
		r.Dev.MatMul(tensor.MatMul{C: dn, A: s.u, B: up})
		return dn
	}
	r.Dev.ScaleRows(dh, dh, s.gate.gate)
	h := l.act.backward(r, dh, s.u)
	pull := r.statistics(all.Rows(), 1)
	r.Dev.DotRows(pull, dh, h)
	dh.Free()
	r.Dev.ScaleRows(h, h, s.gate.gate)
	l.down.Grad(r, all, dy, h)
	r.Dev.MatMul(tensor.MatMul{C: dn, A: s.u, B: up})
	l.gate.backward(r, &s.gate, dn, nil, pull)
	pull.Free()
	return dn
}

// weightGrad is the gradients of the matrices that read n, after backward. It takes over all rows of n.
func (l *sharedExperts) weightGrad(r *Rank, s *sharedSaved, n *tensor.Tensor) {
	if l.gate != nil {
		l.gate.weightGrad(r, &s.gate, n)
	}
	r.WeightGrad(&l.up.Linear, s.u, n)
	s.u = nil
}
