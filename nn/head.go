package nn

import "carve/tensor"

// Head is the last layer: final norm, projection onto the vocabulary (split over the tensor axis) and
// cross-entropy, by chunks of rows, so that the whole logits never exist.
//
// In mode Train the forward goes on to the backward of each chunk while its logits are there: it adds to the
// weight's gradient and leaves dx, so that the head computes its logits once and holds one chunk of them. The
// price: on the last stage of a pipeline the head's backward is part of F. A schedule that wants it in B (zero-bubble)
// uses Split, which computes the logits a second time (a third more FLOPs in the head). Either way the weight's
// gradient is made with its chunk and not through [Rank.WeightGrad]: to run it later, the logits would have to stay.
type Head struct {
	name   string
	norm   norm
	linear Column
	start  int // first token of this rank's part of the vocabulary
	work   HeadWork
	chunk  int // most bytes of logits at once

	saved pool[headSaved]
}

// HeadWork says where the head's backward runs.
type HeadWork uint8

// The choices.
const (
	Fused HeadWork = iota // in Forward, chunk by chunk
	Split                 // in Backward, from the logits computed again
)

// headSaved is what one micro-batch leaves for the backward: dx (Fused) or x (Split).
type headSaved struct {
	layer *Head
	batch *Batch
	t     *tensor.Tensor // [T H]
}

// Free gives the memory back.
func (s *headSaved) Free() {
	s.t.Free()
	s.layer.saved.put(s)
}

// Each implements [Saved].
func (s *headSaved) Each(visit func(**tensor.Tensor)) { visit(&s.t) }

// Name is the module's name.
func (l *Head) Name() string { return l.name }

// Params lists the layer's own parameters; a tied projection belongs to the embedding.
func (l *Head) Params() []*Param {
	params := collect(l.norm.scale, l.norm.shift)
	for _, p := range collect(l.linear.weight) {
		if p.Kind == HeadTable {
			params = append(params, p)
		}
	}
	return params
}

// Forward implements [Layer]: it sets b.Loss and returns no y.
func (l *Head) Forward(r *Rank, b *Batch, x *tensor.Tensor) (*tensor.Tensor, Saved) {
	r.Arena.At(l.name)
	if b.Mode == Evaluate {
		b.Loss = l.pass(r, b, nil, x)
		x.Free()
		return nil, nil
	}
	s := l.saved.get()
	s.layer, s.batch, s.t = l, b, x
	switch l.work {
	case Fused:
		s.t = r.activation(x.Rows(), x.Cols())
		b.Loss = l.pass(r, b, s.t, x)
		x.Free()
	case Split:
		b.Loss = l.pass(r, b, nil, x)
	}
	return nil, s
}

// Backward implements [Layer]. It ignores dy.
func (l *Head) Backward(r *Rank, _ *tensor.Tensor, saved Saved) *tensor.Tensor {
	r.Arena.At(l.name)
	s := saved.(*headSaved)
	dx := s.t
	if l.work == Split {
		dx = r.activation(s.t.Rows(), s.t.Cols())
		l.pass(r, s.batch, dx, s.t)
	} else {
		s.t = nil
	}
	s.Free()
	return dx
}

// pass goes through the rows of x and returns the sum of the loss over all rows. With dx it runs the backward as well.
//
// Under sequence parallelism a chunk is the same rows of every rank's block: each rank normalises its own, and what follows
// is of all.
func (l *Head) pass(r *Rank, b *Batch, dx, x *tensor.Tensor) (loss float64) {
	rows := b.rows()
	step := l.step(r, rows)
	w := l.workspace(r, r.piece(rows, 0, step), x.Cols())
	for lo := 0; lo < r.longest(rows); lo += step {
		loss += l.part(r, b, &w, dx, x, r.piece(rows, lo, lo+step))
	}
	w.free()
	return loss
}

// step is the number of rows of a rank in a chunk, such that chunks are about equal.
func (l *Head) step(r *Rank, rows int) int {
	const least = 64 // fewer waste the matrix product on loading the weight
	most := max(least, l.chunk/(l.linear.out()*wide(r.DType).Size()))
	chunks := (rows + most - 1) / most
	return (r.longest(rows) + chunks - 1) / chunks
}

// part handles a piece of x and returns the loss of all ranks' rows of it.
func (l *Head) part(r *Rank, b *Batch, all *headWorkspace, dx, x *tensor.Tensor, p piece) float64 {
	w, targets := all.first(p), r.targets(b, p)
	defer w.free()
	defer targets.Free()
	xs := x.RowRange(p.lo, p.hi)
	defer xs.Free()
	l.norm.again(r, whole(w.n), whole(xs), w.stats)
	n := r.gather(w.n, p.all)
	defer drop(n, w.n)
	r.Dev.MatMul(tensor.MatMul{C: w.logits, A: n, B: l.linear.weight.value, TransB: true})
	top := l.softmax(r, w, targets)
	loss := r.Dev.Loss(top, w.sum, w.target, targets)
	if dx != nil {
		r.Dev.LossBackward(w.logits, top, w.sum, targets, l.start, b.Scale)
		l.linear.weightGrad(r, w.logits, n)
		dxs := dx.RowRange(p.lo, p.hi)
		l.input(r, w, dxs, xs)
		dxs.Free()
	}
	return loss
}

// input sets dx to the gradient of the rows x, given that of the logits.
func (l *Head) input(r *Rank, w headWorkspace, dx, x *tensor.Tensor) {
	dn := dx
	if r.scattered() {
		dn = r.activation(w.logits.Rows(), dx.Cols())
	}
	dn = r.sum(tensor.MatMul{C: dn, A: w.logits, B: l.linear.weight.value}, epilogue{})
	l.norm.backward(r, tensor.NormBackward{DX: whole(dx), DY: whole(dn), X: whole(x)}, w.stats)
	drop(dn, dx)
}

// softmax fills the statistics of a chunk of logits over the whole vocabulary and returns the rows' maximum.
func (l *Head) softmax(r *Rank, w headWorkspace, targets *tensor.Tensor) (top *tensor.Tensor) {
	r.Dev.LossStats(w.top, w.sum, w.target, w.logits, targets, l.start)
	if degree(r.Groups.Tensor) == 1 {
		return w.top
	}
	r.Dev.Copy(w.all, w.top)
	reduce(r.Groups.Tensor, w.all, tensor.Max)
	r.Dev.LossMerge(w.sum, w.top, w.all)
	reduce(r.Groups.Tensor, w.sum, tensor.Sum)
	reduce(r.Groups.Tensor, w.target, tensor.Sum)
	return w.all
}

// Logits computes this rank's part of the vocabulary's logits, [n V/TP] in full precision, of n rows of x. x stays the
// caller's; the caller owns the result.
func (l *Head) Logits(r *Rank, x *tensor.Tensor) *tensor.Tensor {
	n := r.activation(x.Rows(), x.Cols())
	stats := l.norm.forward(r, whole(n), whole(x))
	stats.free()
	logits := r.statistics(x.Rows(), l.linear.weight.value.Dim(0))
	r.Dev.MatMul(tensor.MatMul{C: logits, A: n, B: l.linear.weight.value, TransB: true})
	n.Free()
	return logits
}

// headWorkspace is the memory of one chunk: C rows of this rank, of CA rows of all.
type headWorkspace struct {
	n                     *tensor.Tensor // [C H]
	logits                *tensor.Tensor // [CA V/TP], full precision; then their gradient
	top, all, sum, target *tensor.Tensor // [CA]; all only where the vocabulary is split
	stats                 normStats      // [C]
}

func (l *Head) workspace(r *Rank, p piece, hidden int) headWorkspace {
	rows, all := p.hi-p.lo, p.all
	w := headWorkspace{
		n:      r.activation(rows, hidden),
		logits: r.statistics(all, l.linear.out()),
		top:    r.statistics(all), sum: r.statistics(all), target: r.statistics(all),
	}
	if degree(r.Groups.Tensor) > 1 {
		w.all = r.statistics(all)
	}
	w.stats.rstd = r.statistics(rows, 1)
	if l.norm.shift != nil {
		w.stats.mean = r.statistics(rows, 1)
	}
	return w
}

// first is a view of the first rows, as many as a piece has.
func (w *headWorkspace) first(p piece) headWorkspace {
	rows := p.hi - p.lo
	part := func(t *tensor.Tensor, rows int) *tensor.Tensor {
		if t == nil {
			return nil
		}
		return t.RowRange(0, rows)
	}
	line := func(t *tensor.Tensor) *tensor.Tensor {
		if t == nil {
			return nil
		}
		return t.Slice(0, p.all)
	}
	return headWorkspace{
		n: part(w.n, rows), logits: part(w.logits, p.all),
		top: line(w.top), all: line(w.all), sum: line(w.sum), target: line(w.target),
		stats: normStats{mean: part(w.stats.mean, rows), rstd: part(w.stats.rstd, rows)},
	}
}

func (w headWorkspace) free() {
	for _, t := range [...]*tensor.Tensor{w.n, w.logits, w.top, w.all, w.sum, w.target, w.stats.mean, w.stats.rstd} {
		t.Free()
	}
}
