package tensor

import "carve/tensor/internal/kernel"

// Normal implements [PointwiseDevice].
func (c *CPU) Normal(op Normal) {
	need(op.T.Cols() == 0 || op.Col >= 0 && op.Row >= 0 && op.Col+op.T.Cols() <= op.Cols, "normal", "a block of the parameter")
	if wide(op.T) {
		c.f64.normal.run(&c.f64, op)
		return
	}
	c.f32.normal.run(&c.f32, op)
}

// normals is the task of Normal.
type normals[T kernel.Float] struct {
	spans
	v  kernel.Vector[T]
	op Normal
	x  lines[T]
	s  scratch[T] // per worker: a piece of a row
}

func (t *normals[T]) run(o *ops[T], op Normal) {
	t.v, t.op, t.x = o.v, op, linesOf(o.v, whole(op.T))
	t.spans = rowSpans(t.x.rows, 16*t.x.width) // a number costs as much as many elements of other operations
	t.s = o.scratch(o.buffers(op.T), 1, min(t.x.width, pieceElements))
	o.c.ctx.Run(t.items(), t)
	t.s.free()
}

// Do draws the rows of one item.
func (t *normals[T]) Do(worker, item int) {
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		for c := 0; c < t.x.width; c += pieceElements {
			n := min(pieceElements, t.x.width-c)
			x := t.x.target(t.x.at(r, 0)+c, n, t.s.run(worker, 0))
			first := (t.op.Row+r)*t.op.Cols + t.op.Col + c
			kernel.Normals(x, t.op.Key, uint64(first), t.op.Std)
			t.x.put(t.x.at(r, 0)+c, x)
		}
	}
}
