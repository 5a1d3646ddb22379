package tensor

import (
	"carve/tensor/internal/kernel"
)

// CPU is the device that computes with the machine's cores. Its kernels are portable Go, or assembly where the CPU
// has AVX2 or AVX-512. Workspace comes from the arena, category [Workspace].
//
// On an arena without memory its operations check their operands, take and give back the workspace that they would
// use, and compute nothing; see [Meta].
type CPU struct {
	arena   *Arena
	ctx     *kernel.Context
	packing *Tensor // the matrix products' workspace, held for life
	f32     ops[float32]
	f64     ops[float64]
	moves   moves
	lookup  embedding
	product kernel.Gemm
}

// NewCPU makes a device whose calls use that many threads.
func NewCPU(arena *Arena, threads int) *CPU { return newCPU(arena, threads, kernel.Detect()) }

// newCPU makes a device that uses no other features of the CPU.
func newCPU(arena *Arena, threads int, f kernel.Features) *CPU {
	w := arena.New(Workspace, Int32, kernel.WorkspaceBytes(threads)/Int32.Size())
	c := &CPU{arena: arena, packing: w}
	if arena.meta {
		c.ctx = kernel.NewDryContext(threads, f)
	} else {
		c.ctx = kernel.NewContext(threads, w.Raw(), f)
	}
	c.f32 = ops[float32]{c: c, v: kernel.Vector32(c.ctx.Features())}
	c.f64 = ops[float64]{c: c, v: kernel.Vector64()}
	return c
}

// Threads is the number of threads that one call may use.
func (c *CPU) Threads() int { return c.ctx.Threads() }

// dry reports whether there are no elements to compute on.
func (c *CPU) dry() bool { return c.arena.meta }

// Close stops the device's threads and gives its workspace back.
func (c *CPU) Close() {
	c.ctx.Close()
	c.packing.Free()
}

// ops is the device's operations on tensors that are computed on in type T. It holds the task of each operation, so that
// a call need not allocate one.
type ops[T kernel.Float] struct {
	c *CPU
	v kernel.Vector[T]

	rms       rmsNorm[T]
	rmsBack   rmsNormBackward[T]
	layer     layerNorm[T]
	layerBack layerNormBackward[T]
	act       activation[T]
	rotate    rotation[T]
	each      elementwise[T]
	sums      columnSums[T]
	scatter   embeddingBackward[T]
	normal    normals[T]
	drop      dropout[T]
	stats     lossStats[T]
	lossBack  lossBackward[T]
	step      optimizerStep[T]
	norm2     squaredNorm[T]
	finite    finiteness[T]
	attend    attention[T]
	attendB   attentionBackward[T]
	route     routing[T]
	routeBack routingBackward[T]
	rows      rowwise[T]
}

// scratch is the workspace of one operation: for every worker the same number of runs of numbers.
type scratch[T kernel.Float] struct {
	t    *Tensor
	all  []T
	runs int
	size int // of a run, a multiple of a cache line
}

// scratch takes workspace of runs buffers of size elements for each of n workers (or other users).
func (o *ops[T]) scratch(n, runs, size int) scratch[T] {
	const line = 16 // elements; at least one cache line
	size = (size + line - 1) / line * line
	s := scratch[T]{runs: runs, size: size}
	if n*runs*size > 0 {
		s.t = o.c.arena.New(Workspace, dtypeOf[T](), n*runs*size)
		s.all = elementsOf[T](s.t)
	}
	return s
}

// run is buffer i of a worker; without memory, nil.
func (s *scratch[T]) run(worker, i int) []T {
	if len(s.all) == 0 {
		return nil
	}
	at := (worker*s.runs + i) * s.size
	return s.all[at : at+s.size : at+s.size]
}

func (s *scratch[T]) free() { s.t.Free() }

// spans divides rows into items for the workers.
type spans struct{ rows, per int }

// itemElements is about how many elements one item of a memory-bound task has: enough to hide the cost of claiming it,
// few enough to divide small tensors.
const itemElements = 16 << 10

// rowSpans divides rows of width elements.
func rowSpans(rows, width int) spans {
	return spans{rows: rows, per: max(1, itemElements/max(width, 1))}
}

func (s spans) items() int { return (s.rows + s.per - 1) / s.per }

func (s spans) of(item int) (lo, hi int) { return item * s.per, min(s.rows, (item+1)*s.per) }

// buffers is the number of workers that need row buffers: none if every tensor is used in place.
func (o *ops[T]) buffers(ts ...*Tensor) int {
	if o.expanded(ts...) == 0 {
		return 0
	}
	return o.c.Threads()
}

// expanded is how many of the tensors, from the first to the last one that is not of T's own dtype, need a buffer.
func (o *ops[T]) expanded(ts ...*Tensor) int {
	n := 0
	for i, t := range ts {
		if t != nil && t.dtype != dtypeOf[T]() {
			n = i + 1
		}
	}
	return n
}

// vector is all elements of t: in place, or expanded into buf; without memory, nil.
func (o *ops[T]) vector(t *Tensor, buf []T) []T {
	if t.Meta() {
		return nil
	}
	f := flatOf(o.v, t)
	return f.get(0, t.Len(), buf)
}
