package comm

import (
	"unsafe"

	"carve/tensor"
)

// span is the addresses of a tensor's elements; without elements or memory (on meta) it is empty.
func span(t *tensor.Tensor) (lo, hi uintptr) {
	raw := t.Raw()
	if len(raw) == 0 {
		return 0, 0
	}
	lo = uintptr(unsafe.Pointer(unsafe.SliceData(raw)))
	return lo, lo + uintptr(len(raw))
}

// overlap tells whether two tensors share elements.
func overlap(a, b *tensor.Tensor) bool {
	alo, ahi := span(a)
	blo, bhi := span(b)
	return alo < bhi && blo < ahi
}

// startsAt tells whether part's memory is whole's from its element n on.
func startsAt(part, whole *tensor.Tensor, n int) bool {
	p, _ := span(part)
	w, _ := span(whole)
	return p != 0 && p == w+uintptr(n*whole.DType().Size())
}
