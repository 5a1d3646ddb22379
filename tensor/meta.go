package tensor

import "carve/tensor/internal/kernel"

// Meta is the device that records instead of computing: the price of what a cpu device would do. Its arena has shapes
// and no memory.
//
// An operation goes through the cpu device's own code without elements, so that both refuse the same operands and take
// the same workspace from the arena: peaks are equal to the byte. Then it is recorded. Results that are numbers are 0,
// or true for [Meta.Finite].
type Meta struct {
	cpu    *CPU
	record func(Operation)
}

var _ Device = (*Meta)(nil)

// Kernels says whose workspace a meta device takes.
type Kernels uint8

// The choices.
const (
	// NativeKernels are those of the CPU that the program runs on: what a run here takes.
	NativeKernels Kernels = iota
	// PortableKernels are those of every CPU: the same numbers everywhere.
	PortableKernels
)

// MetaOptions say what a meta device stands for. The zero value is one thread of this CPU, with nobody to hear of it.
type MetaOptions struct {
	Threads int // 0 means 1
	Kernels Kernels
	// Record is told of every operation after it; nil means nobody is.
	Record func(Operation)
}

// NewMeta makes a device on an arena without memory ([ArenaOptions].Meta).
func NewMeta(arena *Arena, o MetaOptions) *Meta {
	need(arena.meta, "meta device", "an arena without memory")
	f := kernel.Features{}
	if o.Kernels == NativeKernels {
		f = kernel.Detect()
	}
	if o.Record == nil {
		o.Record = func(Operation) {}
	}
	return &Meta{cpu: newCPU(arena, max(o.Threads, 1), f), record: o.Record}
}

// Threads implements [Device].
func (m *Meta) Threads() int { return m.cpu.Threads() }

// Close implements [Device].
func (m *Meta) Close() { m.cpu.Close() }

// note records an operation whose reads and writes are given.
func (m *Meta) note(kind OpKind, d DType, dims [4]int, flops float64, read, written int) {
	m.record(newOperation(kind, d, dims, flops, read, written, m.cpu.arena.Owner()))
}

// pointwise records an operation that costs the same for each of n elements of rows [rows cols].
func (m *Meta) pointwise(kind OpKind, d DType, rows, cols, read, written int) {
	m.note(kind, d, [4]int{rows, cols}, kind.perElement()*float64(rows)*float64(cols), read, written)
}

// size is the bytes of tensors; nil ones have none.
func size(ts ...*Tensor) (n int) {
	for _, t := range ts {
		if t != nil {
			n += t.Bytes()
		}
	}
	return n
}

// size is the bytes of a run of heads.
func (c Columns) size() int {
	if c.T == nil {
		return 0
	}
	return c.T.Rows() * c.Heads * c.Width * c.T.dtype.Size()
}
