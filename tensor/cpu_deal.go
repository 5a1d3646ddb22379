package tensor

import "carve/tensor/internal/kernel"

// Admit implements [ExpertDevice].
func (c *CPU) Admit(op Admit) {
	const name = "admit"
	need(op.Length > 0, name, "runs have a length")
	wantLen(name, "at", op.At, op.Choice.Len())
	if wide(op.Before) {
		admit[float64](op)
		return
	}
	admit[float32](op)
}

func admit[T kernel.Float](op Admit) {
	choice, at, before := op.Choice.I32(), op.At.I32(), elementsOf[T](op.Before)
	k, e, room := op.Choice.Cols(), op.Before.Cols(), T(op.Room)
	for i, x := range choice {
		n := &before[(op.First+i/k)/op.Length*e+int(x)]
		at[i] = 0
		if *n >= room {
			at[i] = -1
		}
		*n++
	}
}

// Deal implements [ExpertDevice]: a counting sort, in two passes over the choices.
func (c *CPU) Deal(op Deal) {
	const name = "deal"
	wantLen(name, "at", op.At, op.Choice.Len())
	wantLen(name, "gate", op.Gate, op.Choice.Len())
	if wide(op.Gate) {
		deal[float64](op)
		return
	}
	deal[float32](op)
}

func deal[T kernel.Float](op Deal) {
	choice, at, from, counts := op.Choice.I32(), op.At.I32(), op.From.I32(), op.Counts.I32()
	gate, sorted := elementsOf[T](op.Gate), elementsOf[T](op.Sorted)
	chosen := op.Chosen.I32()
	clear(counts)
	clear(chosen)
	for i, e := range choice {
		chosen[e]++
		if at[i] >= 0 {
			counts[e]++
		}
	}
	next := int32(0)
	for e, n := range counts { // counts become the next slot of each expert
		counts[e], next = next, next+n
	}
	k := int32(op.Choice.Cols())
	for i, e := range choice {
		if at[i] < 0 {
			continue
		}
		slot := counts[e]
		counts[e]++
		at[i], from[slot], sorted[slot] = slot, int32(i)/k, gate[i]
	}
	start := int32(0)
	for e, end := range counts { // and their ends turn into sizes again
		counts[e], start = end-start, end
	}
}

// Tally implements [ExpertDevice].
func (c *CPU) Tally(op Tally) {
	const name = "tally"
	need(op.Length > 0, name, "sequences have a length")
	need(op.Choice.Rows() == op.Scores.Rows(), name, "choices and scores of the same rows")
	if c.dry() {
		return
	}
	if wide(op.Scores) {
		tally(c.f64.v, op)
		return
	}
	tally(c.f32.v, op)
}

func tally[T kernel.Float](v kernel.Vector[T], op Tally) {
	choice, k, e := op.Choice.I32(), op.Choice.Cols(), op.Scores.Cols()
	scores, chosen := elementsOf[T](op.Scores), elementsOf[T](op.Chosen)
	clear(chosen)
	for i, x := range choice {
		chosen[(op.First+i/k)/op.Length*e+int(x)]++
	}
	if op.Mass == nil {
		return
	}
	mass := elementsOf[T](op.Mass)
	clear(mass)
	for r := range op.Scores.Rows() {
		at, s, part := (op.First+r)/op.Length*e, scores[r*e:(r+1)*e], T(1)
		if op.Score == Sigmoid {
			part = 1 / T(v.Sum(s))
		}
		v.AddScaled(mass[at:at+e], part, s)
	}
}

// ScaleRows implements [ExpertDevice].
func (c *CPU) ScaleRows(y, x, g *Tensor) {
	const name = "scale rows"
	sameLen(name, y, x)
	wantLen(name, "factors", g, x.Rows())
	c.eachRow(rowCall{kind: scaleRow, a: y, b: x, each: g})
}

// DotRows implements [ExpertDevice].
func (c *CPU) DotRows(dst, a, b *Tensor) {
	const name = "dot rows"
	sameLen(name, a, b)
	wantLen(name, "products", dst, a.Rows())
	c.eachRow(rowCall{kind: dotRow, a: a, b: b, each: dst})
}

type rowKind uint8

const (
	scaleRow rowKind = iota
	dotRow
)

// rowCall is the operands of one call.
type rowCall struct {
	kind       rowKind
	a, b, each *Tensor
}

func (c *CPU) eachRow(call rowCall) {
	if wide(call.a) {
		c.f64.rows.run(&c.f64, call)
		return
	}
	c.f32.rows.run(&c.f32, call)
}

// rowwise is the task of the operations with one number per row.
type rowwise[T kernel.Float] struct {
	spans
	kind rowKind
	v    kernel.Vector[T]
	a, b lines[T]
	each []T
	s    scratch[T] // per worker: a row of a, of b
}

func (t *rowwise[T]) run(o *ops[T], call rowCall) {
	t.kind, t.v, t.each = call.kind, o.v, elementsOf[T](call.each)
	t.a, t.b = linesOf(o.v, whole(call.a)), linesOf(o.v, whole(call.b))
	t.spans = rowSpans(t.a.rows, t.a.width)
	t.s = o.scratch(o.buffers(call.a, call.b), 2, t.a.width)
	o.c.ctx.Run(t.items(), t)
	t.s.free()
}

// Do computes the rows of one item.
func (t *rowwise[T]) Do(worker, item int) {
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		b := t.b.row(r, 0, t.s.run(worker, 1))
		switch t.kind {
		case scaleRow:
			a := t.a.rowTarget(r, 0, t.s.run(worker, 0))
			t.v.Scale(a, t.each[r], b)
			t.a.putRow(r, 0, a)
		case dotRow:
			t.each[r] = t.v.Dot(t.a.row(r, 0, t.s.run(worker, 0)), b)
		}
	}
}
