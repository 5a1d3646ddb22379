package tensor

import "carve/unit"

// Watcher hears of the memory of an arena: of tensors that own some, not of views. It is called by whatever goroutine
// uses the arena, one call at a time, and must not use the arena.
type Watcher interface {
	// Took is told of a new tensor.
	Took(Allocation)
	// Gave is told that it was freed, with the owner at that time.
	Gave(Allocation)
}

// Allocation is a tensor that owns memory, as a [Watcher] hears of it.
type Allocation struct {
	Number   int // in the arena, from 1 in the order of allocation; see [Peak].Event
	Category Category
	DType    DType
	Dims     [MaxDims]int // sizes of the dimensions, 0 beyond the last
	Bytes    unit.Bytes
	Owner    string // what the rank was doing, as told to [Arena.At]
}

// allocation describes t, whose arena's owner is given.
func (t *Tensor) allocation(owner string) Allocation {
	a := Allocation{Number: t.number, Category: t.category, DType: t.dtype, Bytes: unit.Bytes(t.Bytes()), Owner: owner}
	copy(a.Dims[:], t.dims[:t.rank])
	return a
}
