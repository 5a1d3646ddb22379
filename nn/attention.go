package nn

import "carve/tensor"

// Attention is the first branch of a block: y = x + out(attention(qkv(norm(x)))), causal, with grouped heads.
//
// Rotary positions and a norm of the query and key heads (Qwen3) are optional. Of one micro-batch it keeps x [T H],
// query, key and value [T (A+2K)·D], the attention's result [T A·D], and the statistics [T] and [B A S]. The norms'
// results, and with a norm of the heads the rotated query and key, are computed again in the backward.
type Attention struct {
	name         string
	norm         norm
	qkv          Column
	qNorm, kNorm *norm // nil for none
	rope         *rope // nil for none
	out          Row

	heads, keyHeads int // this rank's share of A and K
	width           int // D
	scale           float64
	first           int        // number of the first query head
	sequences       *sequences // nil where the context axis has one rank
	drop            dropout    // of the probabilities

	selective bool // attention is computed again in the backward, and its result and statistics are not kept

	saved pool[attentionSaved]
}

// attentionSaved is what one micro-batch leaves for the backward.
type attentionSaved struct {
	layer *Attention
	batch *Batch
	x     *tensor.Tensor // [T H]
	qkv   *tensor.Tensor // [T (A+2K)·D]; rotated where there is no norm of the heads
	out   *tensor.Tensor // [T A·D]
	lse   *tensor.Tensor // [B A S]; [B A/CP CP·S] where heads were exchanged for positions
	// swapped is all positions of some heads, as they were attended to, where heads were exchanged for positions,
	// [B·CP·S (A+2K)·D/CP]. qkv is then kept only for a norm of the heads.
	swapped *tensor.Tensor
	stats   normStats
	qStats  normStats
	kStats  normStats
}

// Free gives the memory back.
func (s *attentionSaved) Free() {
	s.x.Free()
	s.qkv.Free()
	s.out.Free()
	s.lse.Free()
	s.swapped.Free()
	s.stats.free()
	s.qStats.free()
	s.kStats.free()
	s.layer.saved.put(s)
}

// Each implements [Saved].
func (s *attentionSaved) Each(visit func(**tensor.Tensor)) {
	visit(&s.x)
	visit(&s.qkv)
	visit(&s.out)
	visit(&s.lse)
	visit(&s.swapped)
	s.stats.each(visit)
	s.qStats.each(visit)
	s.kStats.each(visit)
}

// Name is the module's name.
func (l *Attention) Name() string { return l.name }

// Params lists the layer's parameters.
func (l *Attention) Params() []*Param {
	params := collect(l.norm.scale, l.norm.shift, l.qkv.weight, l.qkv.bias)
	if l.qNorm != nil {
		params = append(params, collect(l.qNorm.scale, l.kNorm.scale)...)
	}
	return append(params, collect(l.out.weight, l.out.bias)...)
}

// Forward implements [Layer].
func (l *Attention) Forward(r *Rank, b *Batch, x *tensor.Tensor) (*tensor.Tensor, Saved) {
	r.Arena.At(l.name)
	s := l.saved.get()
	s.layer, s.batch, s.x = l, b, x
	n := r.activation(x.Rows(), x.Cols())
	s.stats = l.norm.forward(r, whole(n), whole(x))
	s.qkv = l.qkv.Forward(r, n, b.rows()) // [T (A+2K)·D]
	n.Free()
	qk := l.rotated(r, s)
	l.inside(r, s, qk)
	l.release(qk, s)
	y := l.out.Forward(r, b, s.out, x)
	switch {
	case !b.Mode.Keeps():
		s.Free()
		return y, nil
	case l.selective:
		s.forget()
	case s.swapped != nil && l.qNorm == nil: // the same numbers elsewhere
		s.qkv.Free()
		s.qkv = nil
	}
	return y, s
}

// inside makes and computes s.out and s.lse.
func (l *Attention) inside(r *Rank, s *attentionSaved, qk *tensor.Tensor) {
	b := s.batch
	s.out = r.activation(qk.Rows(), l.heads*l.width)
	s.lse = r.statistics(b.rows()/b.sequence(), l.heads, b.sequence())
	l.attend(r, s, qk)
}

// forget frees what inside made.
func (s *attentionSaved) forget() {
	for _, t := range [...]**tensor.Tensor{&s.out, &s.lse, &s.swapped} {
		(*t).Free()
		*t = nil
	}
}

// remember computes again what was forgotten.
func (l *Attention) remember(r *Rank, s *attentionSaved) {
	if s.out != nil {
		return
	}
	qk := s.qkv // rotated in place, unless there is a norm
	if l.qNorm != nil {
		qk = l.rotated(r, s)
	}
	l.inside(r, s, qk)
	l.release(qk, s)
}

// attend computes s.out and s.lse.
func (l *Attention) attend(r *Rank, s *attentionSaved, qk *tensor.Tensor) {
	if l.sequences == nil {
		r.Dev.Attention(l.operation(s, qk))
		return
	}
	if r.Context.Kind == ContextAllToAll {
		x := l.swap(r, s)
		defer x.free()
		x.forward(qk)
		return
	}
	p := l.blocks(r, s, qk)
	defer p.free()
	if r.Context.Kind == ContextAllGather {
		p.gather()
	} else {
		p.ring()
	}
}

// rotated is the tensor that holds query and key, normalised and rotated, in its first (A+K)·D columns: s.qkv
// itself, changed in place, or with a norm of the heads a new one, because the backward needs the norm's input.
func (l *Attention) rotated(r *Rank, s *attentionSaved) *tensor.Tensor {
	qk := s.qkv
	if l.qNorm != nil {
		qk = r.activation(s.qkv.Rows(), (l.heads+l.keyHeads)*l.width)
		if s.qStats.rstd == nil {
			s.qStats = l.qNorm.forward(r, l.query(qk), l.query(s.qkv))
			s.kStats = l.kNorm.forward(r, l.key(qk), l.key(s.qkv))
		} else {
			l.qNorm.again(r, l.query(qk), l.query(s.qkv), s.qStats)
			l.kNorm.again(r, l.key(qk), l.key(s.qkv), s.kStats)
		}
	}
	l.rope.turn(r, s.batch, l.query(qk))
	l.rope.turn(r, s.batch, l.key(qk))
	return qk
}

// release frees what rotated made.
func (l *Attention) release(qk *tensor.Tensor, s *attentionSaved) {
	if qk != s.qkv {
		qk.Free()
	}
}

// query, key and value are the runs of heads in a tensor laid out as the fused projection's result.
func (l *Attention) query(t *tensor.Tensor) tensor.Columns { return heads(t, 0, l.heads, l.width) }

func (l *Attention) key(t *tensor.Tensor) tensor.Columns {
	return heads(t, l.heads*l.width, l.keyHeads, l.width)
}

func (l *Attention) value(t *tensor.Tensor) tensor.Columns {
	return heads(t, (l.heads+l.keyHeads)*l.width, l.keyHeads, l.width)
}

// operation is the device's attention on what is saved.
func (l *Attention) operation(s *attentionSaved, qk *tensor.Tensor) tensor.Attention {
	b := s.batch
	return tensor.Attention{
		Out: l.query(s.out), LSE: s.lse,
		Q: l.query(qk), K: l.key(qk), V: l.value(s.qkv),
		Batch: b.rows() / b.sequence(), Scale: l.scale, Causal: true,
		QueryDoc: b.Documents, KeyDoc: b.Documents,
		Dropout: l.drop.attention(b, l.first),
	}
}

// Backward implements [Layer].
func (l *Attention) Backward(r *Rank, dy *tensor.Tensor, saved Saved) *tensor.Tensor {
	r.Arena.At(l.name)
	s := saved.(*attentionSaved)
	l.remember(r, s)
	dout, all := l.out.Input(r, s.batch, dy) // [T A·D]
	dqkv := l.attentionBackward(r, s, dout)
	dout.Free()
	l.out.Grad(r, all, dy, s.out)
	s.out = nil
	l.unrotate(r, s, dqkv)
	s.qkv.Free()
	s.qkv = nil
	dn := l.qkv.Input(r, dqkv)
	n := l.norm.residual(r, dy, dn, s.x, s.stats)
	s.stats = normStats{}
	l.qkv.Grad(r, dqkv, n)
	s.Free()
	return dy
}

// attentionBackward is the gradient of the rotated query and key and of value, laid out as qkv.
func (l *Attention) attentionBackward(r *Rank, s *attentionSaved, dout *tensor.Tensor) *tensor.Tensor {
	dqkv := r.activation(s.out.Rows(), (l.heads+2*l.keyHeads)*l.width)
	delta := r.statistics(s.lse.Dim(0), s.lse.Dim(1), s.lse.Dim(2))
	defer delta.Free()
	if s.swapped != nil {
		x := l.swap(r, s)
		defer x.free()
		x.backward(dout, dqkv, delta)
		s.swapped.Free()
		s.swapped = nil
		return dqkv
	}
	qk := s.qkv
	if l.qNorm != nil {
		qk = l.rotated(r, s)
	}
	defer l.release(qk, s)
	g := tensor.AttentionBackward{DOut: l.query(dout), DQ: l.query(dqkv), Delta: delta}
	if l.sequences == nil {
		g.Forward, g.DK, g.DV = l.operation(s, qk), l.key(dqkv), l.value(dqkv)
		r.Dev.AttentionBackward(g)
		return dqkv
	}
	p := l.blocks(r, s, qk)
	defer p.free()
	if r.Context.Kind == ContextAllGather {
		p.gatherBackward(&g, dqkv)
	} else {
		p.ringBackward(&g, dqkv)
	}
	return dqkv
}

// unrotate takes the gradients of query and key back through rotation and norm, in place.
func (l *Attention) unrotate(r *Rank, s *attentionSaved, dqkv *tensor.Tensor) {
	l.rope.turnBack(r, s.batch, l.query(dqkv))
	l.rope.turnBack(r, s.batch, l.key(dqkv))
	if l.qNorm == nil {
		return
	}
	l.qNorm.backward(r, tensor.NormBackward{DX: l.query(dqkv), DY: l.query(dqkv), X: l.query(s.qkv)}, s.qStats)
	l.kNorm.backward(r, tensor.NormBackward{DX: l.key(dqkv), DY: l.key(dqkv), X: l.key(s.qkv)}, s.kStats)
}
