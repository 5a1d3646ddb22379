package nn

import "carve/tensor"

// Embedding is the first layer: y = the rows of the token table, plus those of the position table where positions
// are learned (GPT-2). The token table is split by vocabulary over the tensor axis.
type Embedding struct {
	name      string
	tokens    *weight // [V/TP H]
	positions *weight // [positions H]; nil for none
	start     int     // first token of this rank's part
	drop      dropout

	counted *tensor.Tensor // int32 [B·S]: 0, 1, … S-1 repeated, for batches without positions
	period  int            // S of counted
	saved   pool[embeddingSaved]
}

// embeddingSaved is what one micro-batch leaves for the backward.
type embeddingSaved struct {
	layer *Embedding
	batch *Batch
}

// Free implements [Saved].
func (s *embeddingSaved) Free() { s.layer.saved.put(s) }

// Each implements [Saved].
func (s *embeddingSaved) Each(func(**tensor.Tensor)) {}

// Name is the module's name.
func (l *Embedding) Name() string { return l.name }

// Params lists the layer's parameters.
func (l *Embedding) Params() []*Param { return collect(l.tokens, l.positions) }

// Forward implements [Layer]. It ignores x.
func (l *Embedding) Forward(r *Rank, b *Batch, _ *tensor.Tensor) (*tensor.Tensor, Saved) {
	r.Arena.At(l.name)
	y := r.activation(b.rows(), l.tokens.value.Dim(1)) // [T H]
	r.Dev.Embed(y, l.tokens.value, b.Tokens, l.start)
	y = r.scatterSum(y)
	if l.positions != nil {
		p, where := r.activation(y.Rows(), y.Cols()), l.where(r, b)
		r.Dev.Embed(p, l.positions.value, where, 0)
		r.Dev.Add(y, p)
		where.Free()
		p.Free()
	}
	if l.drop.on(b) {
		l.drop.apply(r, b, y, y, nil)
	}
	if !b.Mode.Keeps() {
		return y, nil
	}
	s := l.saved.get()
	s.layer, s.batch = l, b
	return y, s
}

// where is a view of the positions of this rank's rows of the residual stream.
func (l *Embedding) where(r *Rank, b *Batch) *tensor.Tensor {
	all, rows := b.Positions, r.own(b.rows())
	if all == nil {
		all = l.count(r, b)
	}
	return all.Slice(rows.Start, rows.Stop)
}

// count is the positions of a batch that does not give them.
func (l *Embedding) count(r *Rank, b *Batch) *tensor.Tensor {
	if l.counted != nil && l.counted.Len() == b.rows() && l.period == b.sequence() {
		return l.counted
	}
	l.counted.Free()
	l.counted, l.period = r.Arena.New(tensor.Workspace, tensor.Int32, b.rows()), b.sequence()
	for i := range l.counted.I32() {
		l.counted.I32()[i] = int32(i % l.period)
	}
	return l.counted
}

// Backward implements [Layer]. It returns nil: tokens have no gradient.
func (l *Embedding) Backward(r *Rank, dy *tensor.Tensor, saved Saved) *tensor.Tensor {
	r.Arena.At(l.name)
	s := saved.(*embeddingSaved)
	if l.drop.on(s.batch) {
		l.drop.apply(r, s.batch, dy, dy, nil)
	}
	all := r.gather(dy, s.batch.rows())
	r.Dev.EmbedBackward(l.tokens.sum(r), all, s.batch.Tokens, l.start)
	drop(all, dy)
	if l.positions != nil {
		where := l.where(r, s.batch)
		r.Dev.EmbedBackward(l.positions.sum(r), dy, where, 0)
		where.Free()
	}
	dy.Free()
	s.Free()
	return nil
}
