package tensor

import (
	"fmt"
	"unsafe"
)

// MaxDims is the largest number of dimensions of a tensor.
const MaxDims = 4

// Tensor is a contiguous row-major block of elements in an arena, or a view of one.
//
// A tensor is made by [Arena.New] and given back by [Tensor.Free]. A view shares the elements of the
// tensor it was made from and must not outlive it; freeing a view gives back its header only.
type Tensor struct {
	data     unsafe.Pointer // nil on meta and for tensors without elements
	dims     [MaxDims]int
	rank     int
	dtype    DType
	category Category
	arena    *Arena
	block    *block // nil for views, on meta and for tensors without elements
	view     bool
	freed    bool
	number   int     // of the allocation in its arena, from 1
	prev     *Tensor // the arena's list of live tensors
	next     *Tensor // the same list, or the list of spare headers
}

// DType is the type of the elements.
func (t *Tensor) DType() DType { return t.dtype }

// Category says what the memory is for.
func (t *Tensor) Category() Category { return t.category }

// Dims is the number of dimensions.
func (t *Tensor) Dims() int { return t.rank }

// Dim is the size of dimension i; negative i counts from the last.
func (t *Tensor) Dim(i int) int {
	if i < 0 {
		i += t.rank
	}
	if i < 0 || i >= t.rank {
		panic(fmt.Sprintf("tensor: dimension %d of a tensor of %d dimensions", i, t.rank))
	}
	return t.dims[i]
}

// Shape is a copy of the sizes of all dimensions.
func (t *Tensor) Shape() []int { return append([]int(nil), t.dims[:t.rank]...) }

// Len is the number of elements.
func (t *Tensor) Len() int {
	n := 1
	for _, d := range t.dims[:t.rank] {
		n *= d
	}
	return n
}

// Rows is the number of rows of the tensor as a matrix: all dimensions but the last, multiplied.
func (t *Tensor) Rows() int {
	n := 1
	for i := range max(t.rank-1, 0) {
		n *= t.dims[i]
	}
	return n
}

// Cols is the number of columns of the tensor as a matrix: its last dimension.
func (t *Tensor) Cols() int {
	if t.rank == 0 {
		return 1
	}
	return t.dims[t.rank-1]
}

// Bytes is the number of bytes of the elements.
func (t *Tensor) Bytes() int { return t.Len() * t.dtype.Size() }

// Meta reports whether the tensor has a shape but no memory.
func (t *Tensor) Meta() bool { return t.arena.meta }

// String names the tensor for messages: "fp32 [2 3] activation".
func (t *Tensor) String() string {
	return fmt.Sprintf("%v %v %v", t.dtype, t.dims[:t.rank], t.category)
}

// F32 is the elements of an fp32 tensor.
func (t *Tensor) F32() []float32 {
	t.want(FP32)
	return unsafe.Slice((*float32)(t.data), t.stored())
}

// F64 is the elements of an fp64 tensor.
func (t *Tensor) F64() []float64 {
	t.want(FP64)
	return unsafe.Slice((*float64)(t.data), t.stored())
}

// BF16 is the elements of a bf16 tensor: the upper halves of fp32 numbers.
func (t *Tensor) BF16() []uint16 {
	t.want(BF16)
	return unsafe.Slice((*uint16)(t.data), t.stored())
}

// I32 is the elements of an int32 tensor.
func (t *Tensor) I32() []int32 {
	t.want(Int32)
	return unsafe.Slice((*int32)(t.data), t.stored())
}

// Raw is the elements as bytes in the machine's byte order. It is empty on meta.
func (t *Tensor) Raw() []byte {
	return unsafe.Slice((*byte)(t.data), t.stored()*t.dtype.Size())
}

// stored is the number of elements that have memory behind them.
func (t *Tensor) stored() int {
	if t.data == nil {
		return 0
	}
	return t.Len()
}

// want panics when the tensor was freed or its dtype is not d.
func (t *Tensor) want(d DType) {
	if t.freed {
		panic("tensor: use of a freed tensor")
	}
	if t.dtype != d {
		panic(fmt.Sprintf("tensor: %v elements asked of a tensor of %v", d, t.dtype))
	}
}

// Slice is a view of the elements [lo, hi) of the flat tensor, with the given shape (one dimension if
// none is given).
func (t *Tensor) Slice(lo, hi int, dims ...int) *Tensor {
	n := t.Len()
	if lo < 0 || hi < lo || hi > n {
		panic(fmt.Sprintf("tensor: slice [%d:%d] of %d elements", lo, hi, n))
	}
	t.want(t.dtype)
	v := t.arena.viewHeader()
	v.dtype, v.category = t.dtype, t.category
	v.setShape(hi-lo, dims)
	if t.data != nil {
		v.data = unsafe.Add(t.data, lo*t.dtype.Size())
	}
	return v
}

// View is the whole tensor under another shape of the same number of elements.
func (t *Tensor) View(dims ...int) *Tensor { return t.Slice(0, t.Len(), dims...) }

// RowRange is a view of rows [lo, hi) of the tensor as a matrix, shaped [hi-lo, Cols].
func (t *Tensor) RowRange(lo, hi int) *Tensor {
	c := t.Cols()
	return t.Slice(lo*c, hi*c, hi-lo, c)
}

// setShape gives the header a shape; no dimensions means one of n elements.
func (t *Tensor) setShape(n int, dims []int) {
	if len(dims) == 0 {
		t.rank, t.dims[0] = 1, n
		return
	}
	if len(dims) > MaxDims {
		panic(fmt.Sprintf("tensor: %d dimensions; at most %d", len(dims), MaxDims))
	}
	t.rank = copy(t.dims[:], dims)
	if got := t.Len(); got != n {
		panic(fmt.Sprintf("tensor: a shape of %d elements for %d", got, n))
	}
}

// Point makes the view t show the elements of src from element lo on, without changing its shape; a nil src leaves it
// with a shape only. State sharding uses it to aim a parameter at the buffer its unit was gathered into.
func (t *Tensor) Point(src *Tensor, lo int) {
	if src == nil && t.view {
		t.data = nil
		return
	}
	if !t.view || t.dtype != src.dtype || lo < 0 || lo+t.Len() > src.Len() {
		panic(fmt.Sprintf("tensor: cannot point %v at element %d of %v", t, lo, src))
	}
	t.data = nil
	if src.data != nil {
		t.data = unsafe.Add(src.data, lo*src.dtype.Size())
	}
}

// Free gives the tensor's memory and header back to its arena. Freeing twice panics; freeing nil does nothing.
func (t *Tensor) Free() {
	if t == nil {
		return
	}
	t.arena.free(t)
}
