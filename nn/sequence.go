package nn

import (
	"carve/comm"
	"carve/mesh"
	"carve/tensor"
)

// Sequence parallelism (Korthikanti et al., arXiv 2205.05198): between the regions that the tensor axis splits by
// features, the residual stream is split by rows. A column-parallel layer gathers the rows that its product needs, a
// row-parallel one leaves to each rank the sum of its own rows. Together they move what one all-reduce moves, and norms,
// residuals and what they keep are not repeated on every rank.
//
// Rank i has block i of the T rows of a micro-batch: contiguous, of equal sizes or the first ones by one row larger
// ([mesh.Split]). Unequal blocks travel one by one.

// scattered reports whether this rank's residual stream is a block of the rows.
func (r *Rank) scattered() bool { return r.SequenceParallel && r.features() > 1 }

// block is the rows of the residual stream, of n in all, that member i of the tensor axis has.
func (r *Rank) block(n, i int) mesh.Range { return mesh.Split(n, degree(r.Groups.Tensor), i) }

// own is the rows of the residual stream, of n in all, that this rank has.
func (r *Rank) own(n int) mesh.Range {
	if !r.scattered() {
		return mesh.Range{Stop: n}
	}
	return r.block(n, r.Groups.Tensor.Rank())
}

// Rows is how many rows the residual stream has on this rank, for a micro-batch of n tokens here: the first dim of what
// layers, and stages of a pipeline, give to each other.
func (r *Rank) Rows(n int) int { return r.own(n).Len() }

// longest is the most rows of the residual stream, of n in all, that a rank has.
func (r *Rank) longest(n int) int {
	if !r.scattered() {
		return n
	}
	return r.block(n, 0).Len()
}

// piece is rows [lo, hi) of this rank's, which are part of all rows of the ranks. They are blocks as those of a smaller
// batch: of equal sizes or the first ones by one row larger.
type piece struct{ from, lo, hi, all int }

// piece is the rows from lo to hi of every rank's block of n rows, as far as there are such.
func (r *Rank) piece(n, lo, hi int) piece {
	mine := r.own(n).Len()
	p := piece{from: lo, lo: min(lo, mine), hi: min(hi, mine)}
	if !r.scattered() {
		p.all = p.hi - p.lo
		return p
	}
	for i := range r.Groups.Tensor.Size() {
		rows := r.block(n, i).Len()
		p.all += min(hi, rows) - min(lo, rows)
	}
	return p
}

// targets is the targets of all rows of a piece. The caller frees them.
func (r *Rank) targets(b *Batch, p piece) *tensor.Tensor {
	if !r.scattered() {
		return b.Targets.Slice(p.lo, p.hi)
	}
	all, at := r.Arena.New(tensor.Communication, tensor.Int32, p.all), 0
	for i := range r.Groups.Tensor.Size() {
		rows := r.block(b.rows(), i)
		n := r.block(p.all, i).Len()
		src, dst := b.Targets.Slice(rows.Start+p.from, rows.Start+p.from+n), all.Slice(at, at+n)
		r.Dev.Copy(dst, src)
		src.Free()
		dst.Free()
		at += n
	}
	return all
}

// even reports whether all members have equally many of n rows.
func (r *Rank) even(n int) bool { return n%degree(r.Groups.Tensor) == 0 }

// gather returns all n rows of what this rank has some rows of: x itself where rows are not scattered. x stays the
// caller's; see [drop].
func (r *Rank) gather(x *tensor.Tensor, n int) *tensor.Tensor {
	if !r.scattered() {
		return x
	}
	all := r.Arena.New(tensor.Communication, x.DType(), n, x.Cols())
	if r.even(n) {
		Must(r.Groups.Tensor.AllGather(all, x))
		return all
	}
	f := r.exchange(all, x)
	f.land(r)
	return all
}

// drop frees what was made of x, unless that is x itself.
func drop(made, x *tensor.Tensor) {
	if made != x {
		made.Free()
	}
}

// exchange starts to fill every block of all, its owner's x.
func (r *Rank) exchange(all, x *tensor.Tensor) *flight {
	g, f := r.Groups.Tensor, r.takeFlight()
	for i := range g.Size() {
		rows := r.block(all.Rows(), i)
		view := all.RowRange(rows.Start, rows.Stop)
		if i == g.Rank() {
			r.Dev.Copy(view, x)
		}
		f.add(g.BroadcastStart(view, i), view)
	}
	return f
}

// scatterSum sums the terms y [T N] over the tensor axis and returns this rank's rows of the sum, or all where rows are not
// scattered. It takes over y.
func (r *Rank) scatterSum(y *tensor.Tensor) *tensor.Tensor {
	g := r.Groups.Tensor
	switch {
	case !r.scattered():
		reduce(g, y, tensor.Sum)
		return y
	case r.even(y.Rows()):
		sum := r.activation(y.Rows()/g.Size(), y.Cols())
		Must(g.ReduceScatter(sum, y, tensor.Sum))
		y.Free()
		return sum
	}
	f := r.takeFlight()
	for i := range g.Size() {
		r.leave(f, y, i)
	}
	f.land(r)
	return r.keep(y)
}

// leave starts to sum block i of the terms y on its owner.
func (r *Rank) leave(f *flight, y *tensor.Tensor, i int) {
	rows := r.block(y.Rows(), i)
	view := y.RowRange(rows.Start, rows.Stop)
	f.add(r.Groups.Tensor.ReduceStart(view, tensor.Sum, i), view)
}

// keep is a copy of this rank's rows of y, which it takes over.
func (r *Rank) keep(y *tensor.Tensor) *tensor.Tensor {
	rows := r.own(y.Rows())
	view, mine := y.RowRange(rows.Start, rows.Stop), r.activation(rows.Len(), y.Cols())
	r.Dev.Copy(mine, view)
	view.Free()
	y.Free()
	return mine
}

// flight is operations under way and the views that they use, in the order of their start. A rank may have several:
// one for each goroutine that waits.
type flight struct {
	works []comm.Work
	views []*tensor.Tensor
}

// flights are spare ones.
type flights struct{ spare []*flight }

// takeFlight is an empty flight.
func (r *Rank) takeFlight() *flight {
	p := r.flights
	if n := len(p.spare); n > 0 {
		f := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return f
	}
	return &flight{}
}

func (f *flight) add(w comm.Work, view *tensor.Tensor) {
	f.works, f.views = append(f.works, w), append(f.views, view)
}

// land waits for all, frees the views and gives the flight back.
func (f *flight) land(r *Rank) {
	for i, w := range f.works {
		Must(w.Wait())
		f.views[i].Free()
	}
	f.works, f.views = f.works[:0], f.views[:0]
	r.flights.spare = append(r.flights.spare, f)
}
