package tensor

import (
	"fmt"
	"sync"
	"unsafe"

	"carve/unit"
)

// Usage is bytes by category.
type Usage [numCategories]unit.Bytes

// Total is the sum over the categories.
func (u Usage) Total() unit.Bytes {
	var s unit.Bytes
	for _, b := range u {
		s += b
	}
	return s
}

// Of is the bytes of one category.
func (u Usage) Of(c Category) unit.Bytes { return u[c] }

// Peak is the largest total that an arena held, and when.
type Peak struct {
	Usage Usage
	Owner string // what the rank was doing, as told to [Arena.At]
	Event int    // number of the allocation that reached it, counted from 1
}

// LimitError says that an allocation would take an arena over its limit.
type LimitError struct {
	Limit, Live, Asked unit.Bytes
	Category           Category
	Owner              string
}

func (e *LimitError) Error() string {
	where := ""
	if e.Owner != "" {
		where = fmt.Sprintf(" at %q", e.Owner)
	}
	return fmt.Sprintf("tensor: %v for %v%s exceed the arena limit of %v with %v in use; "+
		"use a smaller model or micro-batch, more sharding, or a higher --arena-limit",
		e.Asked, e.Category, where, e.Limit, e.Live)
}

// SystemError says that the operating system refused memory.
type SystemError struct {
	Asked, Reserved unit.Bytes
	Err             error
}

func (e *SystemError) Error() string {
	return fmt.Sprintf("tensor: the system refuses %v more memory on top of %v: %v; "+
		"use a smaller model, micro-batch or number of ranks", e.Asked, e.Reserved, e.Err)
}

func (e *SystemError) Unwrap() error { return e.Err }

// ArenaOptions say how an arena behaves; the zero value is an unlimited arena with memory.
type ArenaOptions struct {
	// Meta arenas count but hold no memory.
	Meta bool
	// Limit is the largest total of live bytes; 0 is no limit.
	Limit unit.Bytes
	// Poison fills freed memory with NaN, so that a use after free shows.
	Poison bool
	// Chunk is the least that is taken from the system at once; 0 is 64 MiB.
	Chunk unit.Bytes
	// Watch hears of every tensor that takes memory; nil means nobody does.
	Watch Watcher
}

// Arena is the memory of one rank. Its methods may be called by any goroutine of the rank.
type Arena struct {
	meta   bool
	limit  unit.Bytes
	poison bool
	watch  Watcher // nil for none

	mu     sync.Mutex // guards what follows
	live   Usage
	total  unit.Bytes
	most   Usage // largest value of each category on its own
	peak   Peak
	owner  string
	events int
	spare  *Tensor // recycled headers
	first  *Tensor // live tensors that own memory, newest first
	heap   heap
}

// NewArena makes an empty arena. Close gives its memory back to the system.
func NewArena(o ArenaOptions) *Arena {
	if o.Chunk == 0 {
		o.Chunk = chunkSize
	}
	return &Arena{meta: o.Meta, limit: o.Limit, poison: o.Poison, watch: o.Watch, heap: heap{chunk: int(o.Chunk)}}
}

// Close returns the memory to the system; every tensor of the arena is dead after it.
func (a *Arena) Close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.heap.release()
	a.first = nil
}

// At names what the rank is doing now; the peak remembers it. The string is kept.
func (a *Arena) At(owner string) {
	a.mu.Lock()
	a.owner = owner
	a.mu.Unlock()
}

// Owner is what the rank is doing, as told to [Arena.At].
func (a *Arena) Owner() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.owner
}

// New makes a tensor whose elements are whatever the memory held before; see [Arena.NewZero]. It panics
// with a *LimitError when the limit would be exceeded.
func (a *Arena) New(c Category, d DType, dims ...int) *Tensor {
	n := elements(dims)
	bytes := unit.Bytes(n * d.Size())
	a.mu.Lock()
	defer a.mu.Unlock()
	a.admit(c, bytes)
	var b *block
	if !a.meta && bytes > 0 {
		b = a.heap.alloc(int(bytes))
	}
	a.count(c, bytes)
	t := a.header()
	t.dtype, t.category, t.block = d, c, b
	t.setShape(n, dims)
	if b != nil {
		t.data = b.pointer()
	}
	t.number = a.events
	a.link(t)
	if a.watch != nil {
		a.watch.Took(t.allocation(a.owner))
	}
	return t
}

// NewZero is New with all elements zero.
func (a *Arena) NewZero(c Category, d DType, dims ...int) *Tensor {
	t := a.New(c, d, dims...)
	clear(t.Raw())
	return t
}

// NewView makes a view that has a shape and shows nothing yet; see [Tensor.Point].
func (a *Arena) NewView(c Category, d DType, dims ...int) *Tensor {
	t := a.viewHeader()
	t.dtype, t.category = d, c
	t.setShape(elements(dims), dims)
	return t
}

// elements is the product of dims (1 for none); a negative size or too many dimensions panic.
func elements(dims []int) int {
	if len(dims) > MaxDims {
		panic(fmt.Sprintf("tensor: %d dimensions; at most %d", len(dims), MaxDims))
	}
	n := 1
	for _, d := range dims {
		if d < 0 {
			panic(fmt.Sprintf("tensor: negative dimension %d", d))
		}
		n *= d
	}
	return n
}

// admit panics with a LimitError if bytes more would exceed the limit. The caller holds mu.
func (a *Arena) admit(c Category, bytes unit.Bytes) {
	if a.limit > 0 && a.total+bytes > a.limit {
		panic(&LimitError{Limit: a.limit, Live: a.total, Asked: bytes, Category: c, Owner: a.owner})
	}
}

// count adds an allocation to the totals. The caller holds mu.
func (a *Arena) count(c Category, bytes unit.Bytes) {
	a.events++
	a.live[c] += bytes
	a.total += bytes
	a.most[c] = max(a.most[c], a.live[c])
	if a.total > a.peak.Usage.Total() {
		a.peak = Peak{Usage: a.live, Owner: a.owner, Event: a.events}
	}
}

// header takes a spare header or makes one. The caller holds mu.
func (a *Arena) header() *Tensor {
	t := a.spare
	if t == nil {
		return &Tensor{arena: a}
	}
	a.spare = t.next
	*t = Tensor{arena: a}
	return t
}

// viewHeader is the header of a new view.
func (a *Arena) viewHeader() *Tensor {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.header()
	t.view = true
	return t
}

// link puts an owning tensor at the head of the live ones. The caller holds mu.
func (a *Arena) link(t *Tensor) {
	t.next = a.first
	if a.first != nil {
		a.first.prev = t
	}
	a.first = t
}

// free takes back a tensor or a view.
func (a *Arena) free(t *Tensor) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if t.freed {
		panic("tensor: freed twice")
	}
	t.freed = true
	if !t.view {
		a.release(t)
	}
	t.data, t.block, t.prev = nil, nil, nil
	t.next, a.spare = a.spare, t
}

// release unlinks an owning tensor, uncounts it and returns its block. The caller holds mu.
func (a *Arena) release(t *Tensor) {
	bytes := unit.Bytes(t.Bytes())
	if a.watch != nil {
		a.watch.Gave(t.allocation(a.owner))
	}
	a.live[t.category] -= bytes
	a.total -= bytes
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		a.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	if t.block == nil {
		return
	}
	if a.poison {
		poison(unsafe.Slice((*byte)(t.data), int(bytes)))
	}
	a.heap.free(t.block)
}

// poison fills memory with ones, which is NaN in every floating dtype.
func poison(b []byte) {
	for i := range b {
		b[i] = 0xff
	}
}

// Live is the bytes in use now.
func (a *Arena) Live() Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.live
}

// Peak is the moment of the largest total since the arena was made or [Arena.ResetPeak].
func (a *Arena) Peak() Peak {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.peak
}

// Most is the largest value that each category reached on its own, at whatever moment.
func (a *Arena) Most() Usage {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.most
}

// ResetPeak starts the peak and Most anew from what is live.
func (a *Arena) ResetPeak() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.peak = Peak{Usage: a.live, Owner: a.owner, Event: a.events}
	a.most = a.live
}

// Reserved is the bytes taken from the system, live or not.
func (a *Arena) Reserved() unit.Bytes {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heap.reserved()
}

// Tensors calls f for every live tensor that owns memory, newest first. f must not use the arena.
func (a *Arena) Tensors(f func(*Tensor)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for t := a.first; t != nil; t = t.next {
		f(t)
	}
}
