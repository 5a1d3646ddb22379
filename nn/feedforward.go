package nn

import "carve/tensor"

// FeedForward is the second branch of a block: y = x + down(act(up(norm(x)))), where act is SwiGLU over a fused gate
// and up projection (Llama) or GELU (GPT-2).
//
// Of one micro-batch it keeps x [T H], the projection's result [T 2F] (GELU: [T F]) and the statistics [T]. The
// norm's and the activation's results are computed again in the backward.
type FeedForward struct {
	name string
	norm norm
	up   Column // gate and up, fused, for SwiGLU
	act  activation
	down Row

	saved pool[feedForwardSaved]
}

// activation is the non-linear function of a feed-forward layer.
type activation uint8

const (
	swiGLU activation = iota
	gelu
)

// forward is act(u); u stays the caller's.
func (a activation) forward(r *Rank, u *tensor.Tensor) *tensor.Tensor {
	features := u.Cols()
	if a == swiGLU {
		features /= 2
	}
	h := r.activation(u.Rows(), features)
	switch a {
	case swiGLU:
		r.Dev.SwiGLU(h, u)
	case gelu:
		r.Dev.GELU(h, u)
	}
	return h
}

// backward turns u into its gradient, given that of act(u), and returns act(u) once more.
func (a activation) backward(r *Rank, dh, u *tensor.Tensor) (h *tensor.Tensor) {
	h = r.activation(dh.Rows(), dh.Cols())
	switch a {
	case swiGLU:
		r.Dev.SwiGLUBackward(u, h, dh, u)
	case gelu:
		r.Dev.GELUBackward(u, h, dh, u)
	}
	return h
}

// feedForwardSaved is what one micro-batch leaves for the backward.
type feedForwardSaved struct {
	layer *FeedForward
	batch *Batch
	x     *tensor.Tensor // [T H]
	u     *tensor.Tensor // [T 2F] or [T F]
	stats normStats
}

// Free gives the memory back.
func (s *feedForwardSaved) Free() {
	s.x.Free()
	s.u.Free()
	s.stats.free()
	s.layer.saved.put(s)
}

// Each implements [Saved].
func (s *feedForwardSaved) Each(visit func(**tensor.Tensor)) {
	visit(&s.x)
	visit(&s.u)
	s.stats.each(visit)
}

// Name is the module's name.
func (l *FeedForward) Name() string { return l.name }

// Params lists the layer's parameters.
func (l *FeedForward) Params() []*Param {
	return collect(l.norm.scale, l.norm.shift, l.up.weight, l.up.bias, l.down.weight, l.down.bias)
}

// Forward implements [Layer].
func (l *FeedForward) Forward(r *Rank, b *Batch, x *tensor.Tensor) (*tensor.Tensor, Saved) {
	r.Arena.At(l.name)
	s := l.saved.get()
	s.layer, s.batch, s.x = l, b, x
	n := r.activation(x.Rows(), x.Cols())
	s.stats = l.norm.forward(r, whole(n), whole(x))
	s.u = l.up.Forward(r, n, b.rows())
	n.Free()
	h := l.act.forward(r, s.u) // [T F]
	y := l.down.Forward(r, b, h, x)
	h.Free()
	if !b.Mode.Keeps() {
		s.Free()
		return y, nil
	}
	return y, s
}

// Backward implements [Layer].
func (l *FeedForward) Backward(r *Rank, dy *tensor.Tensor, saved Saved) *tensor.Tensor {
	r.Arena.At(l.name)
	s := saved.(*feedForwardSaved)
	dh, all := l.down.Input(r, s.batch, dy) // [T F]
	h := l.act.backward(r, dh, s.u)
	dh.Free()
	l.down.Grad(r, all, dy, h)
	du := s.u
	s.u = nil
	dn := l.up.Input(r, du)
	n := l.norm.residual(r, dy, dn, s.x, s.stats)
	s.stats = normStats{}
	l.up.Grad(r, du, n)
	s.Free()
	return dy
}
