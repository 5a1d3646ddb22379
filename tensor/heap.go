package tensor

import (
	"slices"
	"unsafe"

	"carve/unit"
)

// heap hands out blocks of a few large chunks of memory: best fit, with neighbours joined on free.
// Blocks start on cache lines. It is guarded by its arena's mutex.
type heap struct {
	chunk  int // least number of bytes taken from the system at once
	chunks [][]byte
	open   []*block // free blocks, smallest first, equal sizes by address
	spare  *block   // recycled block headers
}

// block is a run of bytes of a chunk, in use or free.
type block struct {
	chunk      []byte
	start      int
	size       int // a multiple of blockAlign
	used       bool
	prev, next *block // neighbours by address in the chunk; next also links spare headers
}

const (
	// blockAlign is the size of a cache line and of the widest vector.
	blockAlign = 64
	// chunkSize is an arena's least chunk. Pages that are never touched cost nothing.
	chunkSize = 64 << 20
)

func (b *block) pointer() unsafe.Pointer { return unsafe.Pointer(&b.chunk[b.start]) }

// less orders free blocks by size, then by address.
func (b *block) less(c *block) int {
	if b.size != c.size {
		return b.size - c.size
	}
	pb, pc := uintptr(b.pointer()), uintptr(c.pointer())
	switch {
	case pb < pc:
		return -1
	case pb > pc:
		return 1
	}
	return 0
}

// alloc returns a block of at least n > 0 bytes.
func (h *heap) alloc(n int) *block {
	n = (n + blockAlign - 1) / blockAlign * blockAlign
	i := h.bestFit(n)
	if i < 0 {
		h.grow(n)
		i = h.bestFit(n)
	}
	b := h.open[i]
	h.open = slices.Delete(h.open, i, i+1)
	h.split(b, n)
	b.used = true
	return b
}

// bestFit is the index of the smallest free block of at least n bytes, or -1.
func (h *heap) bestFit(n int) int {
	i, _ := slices.BinarySearchFunc(h.open, n, func(b *block, n int) int {
		if b.size < n {
			return -1
		}
		return 1
	})
	if i == len(h.open) {
		return -1
	}
	return i
}

// grow takes a chunk of at least n bytes from the system, or panics with a SystemError.
func (h *heap) grow(n int) {
	c, err := systemAlloc(max(n, h.chunk))
	if err != nil {
		panic(&SystemError{Asked: unit.Bytes(n), Reserved: h.reserved(), Err: err})
	}
	h.chunks = append(h.chunks, c)
	b := h.header()
	*b = block{chunk: c, size: len(c) / blockAlign * blockAlign}
	h.insert(b)
}

// split cuts block b to n bytes and files the rest as free.
func (h *heap) split(b *block, n int) {
	if b.size == n {
		return
	}
	rest := h.header()
	*rest = block{chunk: b.chunk, start: b.start + n, size: b.size - n, prev: b, next: b.next}
	if b.next != nil {
		b.next.prev = rest
	}
	b.next, b.size = rest, n
	h.insert(rest)
}

// free returns a block, joined with its free neighbours.
func (h *heap) free(b *block) {
	b.used = false
	if n := b.next; n != nil && !n.used {
		h.remove(n)
		h.join(b, n)
	}
	if p := b.prev; p != nil && !p.used {
		h.remove(p)
		h.join(p, b)
		b = p
	}
	h.insert(b)
}

// join appends block n, which follows b, to b and recycles n's header.
func (h *heap) join(b, n *block) {
	b.size += n.size
	b.next = n.next
	if n.next != nil {
		n.next.prev = b
	}
	*n = block{next: h.spare}
	h.spare = n
}

func (h *heap) insert(b *block) {
	i, _ := slices.BinarySearchFunc(h.open, b, (*block).less)
	h.open = slices.Insert(h.open, i, b)
}

func (h *heap) remove(b *block) {
	i, _ := slices.BinarySearchFunc(h.open, b, (*block).less)
	h.open = slices.Delete(h.open, i, i+1)
}

// header takes a spare block header or makes one.
func (h *heap) header() *block {
	b := h.spare
	if b == nil {
		return new(block)
	}
	h.spare = b.next
	return b
}

func (h *heap) reserved() unit.Bytes {
	var n unit.Bytes
	for _, c := range h.chunks {
		n += unit.Bytes(len(c))
	}
	return n
}

// release gives every chunk back to the system.
func (h *heap) release() {
	for _, c := range h.chunks {
		systemFree(c)
	}
	*h = heap{chunk: h.chunk}
}
