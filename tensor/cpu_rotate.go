package tensor

import "carve/tensor/internal/kernel"

// Rotate implements [AttentionDevice]. It reads and writes X once: 3 FLOPs per element.
func (c *CPU) Rotate(op Rotate) {
	const name = "rotate"
	need(op.X.Width%2 == 0 && op.Cos.Cols()*2 == op.X.Width, name, "cos and sin have half a head's columns")
	need(op.S > 0 || op.X.T.Rows() == 0, name, "S is the rows of a sequence")
	sameLen(name, op.Cos, op.Sin)
	if op.Pos != nil {
		n := op.Pos.Len()
		need(n == op.X.T.Rows() || n == op.S, name, "positions of every row, or of one sequence")
	}
	if wide(op.X.T) {
		c.f64.rotate.run(&c.f64, op)
		return
	}
	c.f32.rotate.run(&c.f32, op)
}

// rotation is the task of Rotate.
type rotation[T kernel.Float] struct {
	spans
	v        kernel.Vector[T]
	x        lines[T]
	cos, sin []T
	pos      []int32
	period   int
	inverse  bool
	s        scratch[T] // per worker: a row
}

func (t *rotation[T]) run(o *ops[T], op Rotate) {
	t.v, t.x, t.inverse = o.v, linesOf(o.v, op.X), op.Inverse
	t.cos, t.sin = elementsOf[T](op.Cos), elementsOf[T](op.Sin)
	t.pos, t.period = nil, op.S
	if op.Pos != nil {
		t.pos = op.Pos.I32()
		t.period = len(t.pos)
	}
	t.spans = rowSpans(t.x.rows, t.x.heads*t.x.width)
	t.s = o.scratch(o.buffers(op.X.T), 1, t.x.width)
	o.c.ctx.Run(t.items(), t)
	t.s.free()
}

// position is the row of cos and sin for row r of X.
func (t *rotation[T]) position(r int) int {
	r %= t.period
	if t.pos == nil {
		return r
	}
	return int(t.pos[r])
}

// Do turns the rows of one item.
func (t *rotation[T]) Do(worker, item int) {
	half := t.x.width / 2
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		p := t.position(r) * half
		cos, sin := t.cos[p:p+half], t.sin[p:p+half]
		for h := range t.x.heads {
			x := t.x.row(r, h, t.s.run(worker, 0))
			if t.inverse {
				t.v.Unrotate(x[:half], x[half:], cos, sin)
			} else {
				t.v.Rotate(x[:half], x[half:], cos, sin)
			}
			t.x.putRow(r, h, x)
		}
	}
}
