package tensor

import "carve/tensor/internal/kernel"

// Dropout is Y = Residual + X·mask/(1-Rate), where each element of the mask is 0 with probability Rate and else 1
// (Srivastava et al., JMLR 2014). The same operation without the residual takes a gradient back.
//
// The mask is not kept: it is made of counter-based numbers (Philox4x32-10) of Key, the number of the sample, the place of
// the row in its sequence, and the column, so that it does not depend on who computes it, nor when.
type Dropout struct {
	Y, X     *Tensor // [T N]; may be the same
	Residual *Tensor // [T N]; nil for none
	Rate     float64 // from 0 to below 1
	Key      uint64
	Rows     Places
}

// Places say where rows are in the samples of a whole step: row r is row First+r of sequences of S rows.
type Places struct {
	First, S int
	Sample   int     // the number of the first sequence
	At       *Tensor // int32 [S]: places in the whole sequence; nil means 0, 1, … S-1
}

// of is the sample and the place of row r.
func (p *Places) of(r int) (sample, place uint32) {
	r += p.First
	place = uint32(r % p.S)
	if p.At != nil {
		place = uint32(p.At.I32()[r%p.S])
	}
	return uint32(p.Sample + r/p.S), place
}

// threshold is the number below which a random word means that an element is dropped.
func threshold(rate float64) uint32 { return uint32(rate * (1 << 32)) }

// Dropout implements [PointwiseDevice].
func (c *CPU) Dropout(op Dropout) {
	const name = "dropout"
	sameLen(name, op.Y, op.X)
	need(op.Rate >= 0 && op.Rate < 1, name, "a rate from 0 to below 1")
	need(op.Rows.S > 0, name, "sequences with rows")
	if op.Residual != nil {
		sameLen(name, op.Residual, op.Y)
	}
	if op.Rows.At != nil {
		wantLen(name, "places", op.Rows.At, op.Rows.S)
	}
	if wide(op.Y) {
		c.f64.drop.run(&c.f64, op)
		return
	}
	c.f32.drop.run(&c.f32, op)
}

// dropout is the task of Dropout.
type dropout[T kernel.Float] struct {
	spans
	v       kernel.Vector[T]
	op      Dropout
	y, x, r lines[T]
	s       scratch[T] // per worker: a piece of a row of y, of x or the residual
}

func (t *dropout[T]) run(o *ops[T], op Dropout) {
	t.v, t.op = o.v, op
	t.y, t.x, t.r = linesOf(o.v, whole(op.Y)), linesOf(o.v, whole(op.X)), lines[T]{}
	if op.Residual != nil {
		t.r = linesOf(o.v, whole(op.Residual))
	}
	t.spans = rowSpans(t.y.rows, 4*t.y.width) // a random number costs as much as some elements of other operations
	t.s = o.scratch(o.c.Threads(), 2, min(t.y.width, pieceElements))
	o.c.ctx.Run(t.items(), t)
	t.s.free()
}

// Do computes the rows of one item.
func (t *dropout[T]) Do(worker, item int) {
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		for c := 0; c < t.y.width; c += pieceElements {
			t.piece(worker, r, c, min(pieceElements, t.y.width-c))
		}
	}
}

// piece computes n columns of a row from column c on.
func (t *dropout[T]) piece(worker, r, c, n int) {
	sample, place := t.op.Rows.of(r)
	at := t.y.at(r, 0) + c
	y := t.s.run(worker, 0)[:n]
	copy(y, t.x.get(at, n, t.s.run(worker, 1)))
	kernel.Drop(y, t.op.Key, [3]uint32{place, sample}, uint32(c), threshold(t.op.Rate), T(1/(1-t.op.Rate)))
	if t.r.present() {
		t.v.Add(y, t.r.get(at, n, t.s.run(worker, 1)))
	}
	t.y.store(at, y)
}

// AttentionDropout drops probabilities of attention after the softmax: each of the pairs of a query and a key of a head
// with probability Rate, by the numbers of the sample, the head, and the places of the two ([Attention].QueryPos and
// KeyPos). The zero value drops none.
type AttentionDropout struct {
	Rate   float64
	Key    uint64
	Sample int // the number of the first sequence
	Head   int // of all heads, the number of the first query head here
}

// on reports whether anything is dropped.
func (d *AttentionDropout) on() bool { return d.Rate > 0 }

// dropPanel drops from a panel of probabilities, or of their gradients, of keys k (rows) and queries q (columns) of
// sequence b and a query head.
func dropPanel[T kernel.Float](d *AttentionDropout, m *mask, x []T, panel, b, head int, q, k span) {
	keep, drop := T(1/(1-d.Rate)), threshold(d.Rate)
	for j := k.lo; j < k.hi; j++ {
		row := x[(j-k.lo)*panel:][:q.len()]
		counter := [3]uint32{uint32(position(m.kplace, j)), uint32(d.Sample + b), uint32(d.Head + head)}
		for lo := 0; lo < len(row); { // queries of consecutive places
			first, hi := position(m.qplace, q.lo+lo), lo+1
			for hi < len(row) && position(m.qplace, q.lo+hi) == first+hi-lo {
				hi++
			}
			kernel.Drop(row[lo:hi], d.Key, counter, uint32(first), drop, keep)
			lo = hi
		}
	}
}
