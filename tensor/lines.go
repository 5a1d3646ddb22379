package tensor

import (
	"fmt"
	"unsafe"

	"carve/tensor/internal/kernel"
)

// wide reports whether a tensor is computed on in float64; all other floating tensors are in float32.
func wide(t *Tensor) bool { return t.dtype == FP64 }

// dtypeOf is the dtype whose elements are of type T.
func dtypeOf[T kernel.Float]() DType {
	if unsafe.Sizeof(T(0)) == 8 {
		return FP64
	}
	return FP32
}

// elementsOf is the elements of a tensor of T's own dtype.
func elementsOf[T kernel.Float](t *Tensor) []T {
	t.want(dtypeOf[T]())
	return unsafe.Slice((*T)(t.data), t.stored())
}

// flat reads and writes elements of a floating tensor as numbers of type T. Elements of T's own dtype are used in
// place; those of a narrower dtype pass through a buffer.
type flat[T kernel.Float] struct {
	v      kernel.Vector[T]
	full   []T
	single []float32 // fp32 seen as float64
	half   []uint16  // bf16
}

// flatOf is the elements of t, which must not be wider than T; a nil tensor has none.
func flatOf[T kernel.Float](v kernel.Vector[T], t *Tensor) flat[T] {
	f := flat[T]{v: v}
	switch {
	case t == nil:
	case t.dtype == BF16:
		f.half = t.BF16()
	case t.dtype == FP32 && dtypeOf[T]() == FP64:
		f.single = t.F32()
	default:
		f.full = elementsOf[T](t)
	}
	return f
}

// buffered reports whether elements pass through a buffer.
func (f *flat[T]) buffered() bool { return f.half != nil || f.single != nil }

// get is the n elements from i on: in place, or expanded into buf.
func (f *flat[T]) get(i, n int, buf []T) []T {
	switch {
	case f.half != nil:
		f.v.Widen(buf[:n], f.half[i:i+n])
	case f.single != nil:
		convert(buf[:n], f.single[i:i+n])
	default:
		return f.full[i : i+n : i+n]
	}
	return buf[:n]
}

// target is where to compute the n elements from i on: in place, or in buf. Then put stores them.
func (f *flat[T]) target(i, n int, buf []T) []T {
	if f.buffered() {
		return buf[:n]
	}
	return f.full[i : i+n : i+n]
}

// put stores what was computed in the target.
func (f *flat[T]) put(i int, x []T) {
	switch {
	case f.half != nil:
		f.v.Narrow(f.half[i:i+len(x)], x)
	case f.single != nil:
		convert(f.single[i:i+len(x)], x)
	}
}

// present reports whether there is a tensor with elements.
func (f *flat[T]) present() bool { return f.full != nil || f.buffered() }

// store copies x, from wherever it is, to the elements from i on.
func (f *flat[T]) store(i int, x []T) {
	if f.full != nil {
		copy(f.full[i:i+len(x)], x)
		return
	}
	f.put(i, x)
}

func convert[D, S kernel.Float](dst []D, src []S) {
	for i, v := range src {
		dst[i] = D(v)
	}
}

// lines is a run of heads of a matrix, row by row.
type lines[T kernel.Float] struct {
	flat[T]
	stride, start      int
	rows, heads, width int
}

// linesOf is the rows of c; without a tensor there are none.
func linesOf[T kernel.Float](v kernel.Vector[T], c Columns) lines[T] {
	if c.T == nil {
		return lines[T]{}
	}
	l := lines[T]{flat: flatOf(v, c.T), stride: c.T.Cols(), start: c.Start, rows: c.T.Rows(), heads: c.Heads, width: c.Width}
	if c.Start < 0 || c.Heads < 0 || c.Width < 0 || c.Start+c.Heads*c.Width > l.stride {
		panic(fmt.Sprintf("tensor: %d heads of %d columns from column %d on are not in %v", c.Heads, c.Width, c.Start, c.T))
	}
	return l
}

// whole is a tensor as one head.
func whole(t *Tensor) Columns { return Columns{T: t, Heads: 1, Width: t.Cols()} }

func (l *lines[T]) at(row, head int) int { return row*l.stride + l.start + head*l.width }

// row is a row of a head: in place, or expanded into buf.
func (l *lines[T]) row(row, head int, buf []T) []T { return l.get(l.at(row, head), l.width, buf) }

// rowTarget is where to compute a row of a head; putRow stores it.
func (l *lines[T]) rowTarget(row, head int, buf []T) []T {
	return l.target(l.at(row, head), l.width, buf)
}

func (l *lines[T]) putRow(row, head int, x []T) { l.put(l.at(row, head), x) }
