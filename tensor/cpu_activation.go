package tensor

import "carve/tensor/internal/kernel"

// SwiGLU implements [PointwiseDevice].
func (c *CPU) SwiGLU(y, x *Tensor) {
	checkSwiGLU("swiglu", y, x)
	c.activate(activationCall{kind: swiGLU, y: y, x: x})
}

// SwiGLUBackward implements [PointwiseDevice].
func (c *CPU) SwiGLUBackward(dx, y, dy, x *Tensor) {
	const name = "swiglu backward"
	checkSwiGLU(name, dy, x)
	sameLen(name, dx, x)
	if y != nil {
		sameLen(name, y, dy)
	}
	c.activate(activationCall{kind: swiGLUBackward, dx: dx, y: y, dy: dy, x: x})
}

func checkSwiGLU(name string, y, x *Tensor) {
	need(x.Cols() == 2*y.Cols() && x.Rows() == y.Rows(), name, "the input has twice the columns of the output")
}

// GELU implements [PointwiseDevice].
func (c *CPU) GELU(y, x *Tensor) {
	sameLen("gelu", y, x)
	c.activate(activationCall{kind: gelu, y: y, x: x})
}

// GELUBackward implements [PointwiseDevice].
func (c *CPU) GELUBackward(dx, y, dy, x *Tensor) {
	const name = "gelu backward"
	sameLen(name, dx, x)
	sameLen(name, dy, x)
	if y != nil {
		sameLen(name, y, x)
	}
	c.activate(activationCall{kind: geluBackward, dx: dx, y: y, dy: dy, x: x})
}

type activationKind uint8

const (
	swiGLU activationKind = iota
	swiGLUBackward
	gelu
	geluBackward
)

// activationCall is the operands of one call.
type activationCall struct {
	kind         activationKind
	dx, y, dy, x *Tensor
}

func (c *CPU) activate(call activationCall) {
	if wide(call.x) {
		c.f64.act.run(&c.f64, call)
		return
	}
	c.f32.act.run(&c.f32, call)
}

// activation is the task of the activation functions: row by row, in pieces that fit the first-level cache.
type activation[T kernel.Float] struct {
	spans
	kind         activationKind
	v            kernel.Vector[T]
	dx, y, dy, x flat[T]
	width        int        // of y's rows
	s            scratch[T] // per worker: dx or dg, du, y, dy, x or g, u
}

// pieceElements is the largest number of elements of a row that pass through the cache at once.
const pieceElements = 2048

func (t *activation[T]) run(o *ops[T], call activationCall) {
	t.kind, t.v = call.kind, o.v
	t.dx, t.y, t.dy, t.x = flatOf(o.v, call.dx), flatOf(o.v, call.y), flatOf(o.v, call.dy), flatOf(o.v, call.x)
	rows := call.x.Rows()
	t.width = call.x.Cols()
	if call.kind == swiGLU || call.kind == swiGLUBackward {
		t.width /= 2
	}
	t.spans = rowSpans(rows, t.width)
	t.s = o.scratch(o.c.Threads(), 6, min(t.width, pieceElements))
	o.c.ctx.Run(t.items(), t)
	t.s.free()
}

// Do computes the rows of one item.
func (t *activation[T]) Do(worker, item int) {
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		for c := 0; c < t.width; c += pieceElements {
			t.piece(worker, r, c, min(pieceElements, t.width-c))
		}
	}
}

// piece computes n elements of row r from column c on.
func (t *activation[T]) piece(worker, r, c, n int) {
	switch t.kind {
	case swiGLU:
		t.swiGLU(worker, r, c, n)
	case swiGLUBackward:
		t.swiGLUBackward(worker, r, c, n)
	case gelu:
		i := r*t.width + c
		y := t.y.target(i, n, t.s.run(worker, 2))
		t.v.GELU(y, t.x.get(i, n, t.s.run(worker, 4)))
		t.y.put(i, y)
	case geluBackward:
		t.geluBackward(worker, r*t.width+c, n)
	}
}

func (t *activation[T]) swiGLU(worker, r, c, n int) {
	i, j := r*t.width+c, 2*r*t.width+c
	y := t.y.target(i, n, t.s.run(worker, 2))
	t.v.SwiGLU(y, t.x.get(j, n, t.s.run(worker, 4)), t.x.get(j+t.width, n, t.s.run(worker, 5)))
	t.y.put(i, y)
}

func (t *activation[T]) swiGLUBackward(worker, r, c, n int) {
	i, j := r*t.width+c, 2*r*t.width+c
	g := t.x.get(j, n, t.s.run(worker, 4))
	u := t.x.get(j+t.width, n, t.s.run(worker, 5))
	dy := t.dy.get(i, n, t.s.run(worker, 3))
	dg := t.dx.target(j, n, t.s.run(worker, 0))
	du := t.dx.target(j+t.width, n, t.s.run(worker, 1))
	y := t.again(worker, i, n)
	t.v.SwiGLUGrad(dg, du, y, dy, g, u)
	t.dx.put(j, dg)
	t.dx.put(j+t.width, du)
	t.y.put(i, y)
}

func (t *activation[T]) geluBackward(worker, i, n int) {
	x := t.x.get(i, n, t.s.run(worker, 4))
	dy := t.dy.get(i, n, t.s.run(worker, 3))
	dx := t.dx.target(i, n, t.s.run(worker, 0))
	y := t.again(worker, i, n)
	t.v.GELUGrad(dx, y, dy, x)
	t.dx.put(i, dx)
	t.y.put(i, y)
}

// again is where the forward's result goes: a buffer if nobody asked for it.
func (t *activation[T]) again(worker, i, n int) []T {
	buf := t.s.run(worker, 2)
	if !t.y.present() {
		return buf[:n]
	}
	return t.y.target(i, n, buf)
}
