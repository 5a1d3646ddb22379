package token

// ordered is a value that can tell whether it comes before another.
type ordered[T any] interface{ before(T) bool }

// heap is a binary heap of values that order themselves. It exists beside
// container/heap because that one allocates for every value pushed.
type heap[T ordered[T]] struct{ items []T }

func (h *heap[T]) push(x T) {
	h.items = append(h.items, x)
	i := len(h.items) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !h.items[i].before(h.items[up]) {
			return
		}
		h.items[i], h.items[up] = h.items[up], h.items[i]
		i = up
	}
}

// pop removes the first item; ok is false when the heap is empty.
func (h *heap[T]) pop() (first T, ok bool) {
	n := len(h.items) - 1
	if n < 0 {
		return first, false
	}
	first = h.items[0]
	h.items[0] = h.items[n]
	h.items = h.items[:n]
	h.sink()
	return first, true
}

// sink moves the top item down to its place.
func (h *heap[T]) sink() {
	for i := 0; ; {
		down := 2*i + 1
		if down >= len(h.items) {
			return
		}
		if r := down + 1; r < len(h.items) && h.items[r].before(h.items[down]) {
			down = r
		}
		if !h.items[down].before(h.items[i]) {
			return
		}
		h.items[i], h.items[down] = h.items[down], h.items[i]
		i = down
	}
}
