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

// pass goes through the rows of x and returns the sum of the loss. With dx it runs the backward as well.
func (l *Head) pass(r *Rank, b *Batch, dx, x *tensor.Tensor) (loss float64) {
	rows := l.rows(r, x.Rows())
	w := l.workspace(r, rows, x.Cols())
	for lo := 0; lo < x.Rows(); lo += rows {
		hi := min(lo+rows, x.Rows())
		loss += l.part(r, b, w.first(hi-lo), dx, x, lo, hi)
	}
	w.free()
	return loss
}

// rows is the number of rows of a chunk, such that chunks are about equal.
func (l *Head) rows(r *Rank, rows int) int {
	const least = 64 // fewer waste the matrix product on loading the weight
	most := max(least, l.chunk/(l.linear.weight.value.Dim(0)*wide(r.DType).Size()))
	chunks := (rows + most - 1) / most
	return (rows + chunks - 1) / chunks
}

// part handles rows [lo, hi) of x and returns their loss.
func (l *Head) part(r *Rank, b *Batch, w headWorkspace, dx, x *tensor.Tensor, lo, hi int) float64 {
	defer w.free()
	xs, targets := x.RowRange(lo, hi), b.Targets.Slice(lo, hi)
	defer xs.Free()
	defer targets.Free()
	l.norm.again(r, whole(w.n), whole(xs), w.stats)
	r.Dev.MatMul(tensor.MatMul{C: w.logits, A: w.n, B: l.linear.weight.value, TransB: true})
	top := l.softmax(r, w, targets)
	loss := r.Dev.Loss(top, w.sum, w.target, targets)
	if dx == nil {
		return loss
	}
	r.Dev.LossBackward(w.logits, top, w.sum, targets, l.start, b.Scale)
	l.linear.weightGrad(r, w.logits, w.n)
	dxs := dx.RowRange(lo, hi)
	r.Dev.MatMul(tensor.MatMul{C: dxs, A: w.logits, B: l.linear.weight.value})
	reduce(r.Groups.Tensor, dxs, tensor.Sum)
	l.norm.backward(r, tensor.NormBackward{DX: whole(dxs), DY: whole(dxs), X: whole(xs)}, w.stats)
	dxs.Free()
	return loss
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

// headWorkspace is the memory of one chunk of C rows.
type headWorkspace struct {
	n                     *tensor.Tensor // [C H]
	logits                *tensor.Tensor // [C V/TP], full precision; then their gradient
	top, all, sum, target *tensor.Tensor // [C]; all only where the vocabulary is split
	stats                 normStats      // [C]
}

func (l *Head) workspace(r *Rank, rows, hidden int) headWorkspace {
	w := headWorkspace{
		n:      r.activation(rows, hidden),
		logits: r.statistics(rows, l.linear.weight.value.Dim(0)),
		top:    r.statistics(rows), sum: r.statistics(rows), target: r.statistics(rows),
	}
	if degree(r.Groups.Tensor) > 1 {
		w.all = r.statistics(rows)
	}
	w.stats.rstd = r.statistics(rows, 1)
	if l.norm.shift != nil {
		w.stats.mean = r.statistics(rows, 1)
	}
	return w
}

// first is a view of the first rows.
func (w headWorkspace) first(rows int) headWorkspace {
	part := func(t *tensor.Tensor) *tensor.Tensor {
		if t == nil {
			return nil
		}
		return t.RowRange(0, rows)
	}
	line := func(t *tensor.Tensor) *tensor.Tensor {
		if t == nil {
			return nil
		}
		return t.Slice(0, rows)
	}
	return headWorkspace{
		n: part(w.n), logits: part(w.logits),
		top: line(w.top), all: line(w.all), sum: line(w.sum), target: line(w.target),
		stats: normStats{mean: part(w.stats.mean), rstd: part(w.stats.rstd)},
	}
}

func (w headWorkspace) free() {
	for _, t := range [...]*tensor.Tensor{w.n, w.logits, w.top, w.all, w.sum, w.target, w.stats.mean, w.stats.rstd} {
		t.Free()
	}
}
