package tensor

import "carve/tensor/internal/kernel"

// Fill implements [PointwiseDevice].
func (c *CPU) Fill(t *Tensor, v float64) {
	if t.dtype == Int32 {
		x := t.I32()
		for i := range x {
			x[i] = int32(v)
		}
		return
	}
	c.elementwise(elementCall{kind: fill, dst: t, a: v})
}

// Scale implements [PointwiseDevice].
func (c *CPU) Scale(t *Tensor, v float64) { c.elementwise(elementCall{kind: scale, dst: t, a: v}) }

// Add implements [PointwiseDevice].
func (c *CPU) Add(dst, src *Tensor) {
	sameLen("add", dst, src)
	c.elementwise(elementCall{kind: add, dst: dst, src: src})
}

// Copy implements [PointwiseDevice].
func (c *CPU) Copy(dst, src *Tensor) {
	sameLen("copy", dst, src)
	if dst.dtype == src.dtype {
		c.moves.copy(c, whole(dst), whole(src))
		return
	}
	need(dst.dtype != Int32 && src.dtype != Int32, "copy", "int32 converts to nothing else")
	c.elementwise(elementCall{kind: cast, dst: dst, src: src})
}

// CopyColumns implements [PointwiseDevice].
func (c *CPU) CopyColumns(dst, src Columns) {
	sameRuns("copy columns", dst, src)
	need(dst.T.dtype == src.T.dtype, "copy columns", "one dtype")
	c.moves.copy(c, dst, src)
}

type elementKind uint8

const (
	fill elementKind = iota
	scale
	add
	cast
)

// elementCall is the operands of one call.
type elementCall struct {
	kind     elementKind
	dst, src *Tensor
	a        float64
}

func (c *CPU) elementwise(call elementCall) {
	if wide(call.dst) || call.src != nil && wide(call.src) {
		c.f64.each.run(&c.f64, call)
		return
	}
	c.f32.each.run(&c.f32, call)
}

// elementwise is the task of the operations on flat tensors: block by block.
type elementwise[T kernel.Float] struct {
	spans
	kind     elementKind
	v        kernel.Vector[T]
	dst, src flat[T]
	n        int
	a        T
	s        scratch[T] // per worker: dst, src
}

func (t *elementwise[T]) run(o *ops[T], call elementCall) {
	t.kind, t.v, t.a = call.kind, o.v, T(call.a)
	t.dst, t.src, t.n = flatOf(o.v, call.dst), flatOf(o.v, call.src), call.dst.Len()
	t.spans = blockSpans(t.n)
	t.s = o.scratch(o.buffers(call.dst, call.src), 2, min(t.n, pieceElements))
	o.c.ctx.Run(t.items(), t)
	t.s.free()
}

// blockSpans divides n elements into pieces, and the pieces into items.
func blockSpans(n int) spans {
	return rowSpans((n+pieceElements-1)/pieceElements, pieceElements)
}

// Do computes the pieces of one item.
func (t *elementwise[T]) Do(worker, item int) {
	lo, hi := t.of(item)
	for p := lo; p < hi; p++ {
		i := p * pieceElements
		t.piece(worker, i, min(pieceElements, t.n-i))
	}
}

func (t *elementwise[T]) piece(worker, i, n int) {
	buf := t.s.run(worker, 0)
	switch t.kind {
	case fill:
		x := t.dst.target(i, n, buf)
		t.v.Fill(x, t.a)
		t.dst.put(i, x)
	case scale:
		x := t.dst.get(i, n, buf)
		t.v.Scale(x, t.a, x)
		t.dst.put(i, x)
	case add:
		x := t.dst.get(i, n, buf)
		t.v.Add(x, t.src.get(i, n, t.s.run(worker, 1)))
		t.dst.put(i, x)
	case cast:
		t.cast(i, n, buf)
	}
}

// cast converts n elements; one of the two sides at least is used in place.
func (t *elementwise[T]) cast(i, n int, buf []T) {
	if !t.src.buffered() {
		t.dst.put(i, t.src.full[i:i+n])
		return
	}
	x := t.dst.target(i, n, buf)
	t.dst.put(i, t.src.get(i, n, x))
}

// moves is the task of copies that convert nothing.
type moves struct {
	spans
	dst, src           []byte
	dstFrom, dstStride int // bytes
	srcFrom, srcStride int
	width              int
}

func (t *moves) copy(c *CPU, dst, src Columns) {
	size := dst.T.dtype.Size()
	t.dst, t.dstFrom, t.dstStride = dst.T.Raw(), dst.Start*size, dst.T.Cols()*size
	t.src, t.srcFrom, t.srcStride = src.T.Raw(), src.Start*size, src.T.Cols()*size
	t.width = dst.Heads * dst.Width * size
	rows := dst.T.Rows()
	if t.width == t.dstStride && t.width == t.srcStride {
		rows, t.width = t.inBlocks(rows * t.width)
	}
	t.spans = rowSpans(rows, t.width/4)
	c.ctx.Run(t.items(), t)
}

// inBlocks turns a copy of n contiguous bytes into rows of a block each.
func (t *moves) inBlocks(n int) (rows, width int) {
	const block = 4 * itemElements
	t.dstStride, t.srcStride = block, block
	return (n + block - 1) / block, block
}

// Do copies the rows of one item. The last row of a contiguous copy may be short.
func (t *moves) Do(_, item int) {
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		d := t.dst[r*t.dstStride+t.dstFrom:]
		copy(d[:min(t.width, len(d))], t.src[r*t.srcStride+t.srcFrom:])
	}
}
