package nn

import "carve/tensor"

// sharedExperts are the experts that every row passes, as one feed-forward, split over the tensor axis like a dense
// one. A gate may weigh its result by the sigmoid of one logit (Qwen2-MoE), as a router of a single expert. It
// multiplies what the second matrix gets, as in [experts].
type sharedExperts struct {
	up   Linear
	act  activation
	down Linear
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

// forward is this rank's term of the result, plus residual, which may be nil. n and residual stay the caller's.
func (l *sharedExperts) forward(r *Rank, s *sharedSaved, n, residual *tensor.Tensor) *tensor.Tensor {
	s.u = l.up.product(r, n, nil, nil)
	h := l.act.forward(r, s.u, l.down.weight.value.Dim(1))
	if l.gate != nil {
		s.gate = l.gate.forward(r, n)
		r.Dev.ScaleRows(h, h, s.gate.gate)
	}
	y := l.down.product(r, h, nil, residual)
	h.Free()
	return y
}

// backward is this rank's term of the gradient of n. dy stays the caller's.
func (l *sharedExperts) backward(r *Rank, s *sharedSaved, dy *tensor.Tensor) (dn *tensor.Tensor) {
	dh := l.down.input(r, dy)
	if l.gate == nil {
		h := l.act.backward(r, dh, s.u)
		dh.Free()
		r.WeightGradKeep(&l.down, dy, h)
		return l.up.input(r, s.u)
	}
	r.Dev.ScaleRows(dh, dh, s.gate.gate)
	h := l.act.backward(r, dh, s.u)
	pull := r.statistics(dy.Rows(), 1)
	r.Dev.DotRows(pull, dh, h)
	dh.Free()
	r.Dev.ScaleRows(h, h, s.gate.gate)
	r.WeightGradKeep(&l.down, dy, h)
	dn = l.up.input(r, s.u)
	l.gate.backward(r, &s.gate, dn, nil, pull)
	pull.Free()
	return dn
}

// weightGrad is the gradients of the matrices that read n, after backward. It takes over n.
func (l *sharedExperts) weightGrad(r *Rank, s *sharedSaved, n *tensor.Tensor) {
	if l.gate != nil {
		l.gate.weightGrad(r, &s.gate, n)
	}
	r.WeightGrad(&l.up, s.u, n)
	s.u = nil
}
