package tensor

import (
	"math"
	"slices"
	"time"

	"carve/tensor/internal/kernel"
	"carve/unit"
)

// Ceiling is what one thread's arithmetic reaches in registers: no kernel is faster. BF16 is zero where the CPU has no
// instruction for it.
type Ceiling struct{ FP32, BF16 unit.FLOPsPerSecond }

// MeasureCeiling measures it, about budget long for each kind.
func MeasureCeiling(budget time.Duration) Ceiling {
	p := kernel.MeasurePeak(kernel.Detect(), budget)
	return Ceiling{FP32: unit.FLOPsPerSecond(p.F32), BF16: unit.FLOPsPerSecond(p.BF16)}
}

// Of is the ceiling of products of a dtype. Those of bf16 may use fp32 arithmetic, and then have its ceiling.
func (c Ceiling) Of(d DType) unit.FLOPsPerSecond {
	switch d {
	case BF16:
		return max(c.BF16, c.FP32)
	case FP64:
		return c.FP32 / 2
	case FP32, Int32:
	}
	return c.FP32
}

// Bandwidth is how fast threads together read memory and copy it; a copy counts the bytes of both sides.
type Bandwidth struct{ Read, Copy unit.BytesPerSecond }

// MeasureBandwidth moves memory that no cache holds, about budget long each way.
func MeasureBandwidth(threads int, budget time.Duration) Bandwidth {
	const size = 64 << 20 // elements: 256 MiB, beyond the last-level cache of one socket
	a := NewArena(ArenaOptions{})
	defer a.Close()
	c := NewCPU(a, threads)
	defer c.Close()
	dst, src := a.New(Workspace, FP32, size), a.NewZero(Workspace, FP32, size)
	c.Fill(dst, 0) // touch the pages
	return Bandwidth{
		Read: unit.BytesPerSecond(c.ctx.ReadBandwidth(src.F32(), budget)),
		Copy: unit.BytesPerSecond(c.ctx.CopyBandwidth(dst.F32(), src.F32(), budget)),
	}
}

// Product is a matrix product to measure.
type Product struct {
	M, N, K        int
	TransA, TransB bool
	DType          DType
	Threads        int
}

// Op names the kind: gemm_nn, gemm_nt, gemm_tn or gemm_tt.
func (p Product) Op() string {
	letter := func(transposed bool) string {
		if transposed {
			return "t"
		}
		return "n"
	}
	return "gemm_" + letter(p.TransA) + letter(p.TransB)
}

// FLOPs is 2·M·N·K.
func (p Product) FLOPs() unit.FLOPs {
	return unit.FLOPs(2 * float64(p.M) * float64(p.N) * float64(p.K))
}

// Measure multiplies random matrices for about the budget and returns the rate of the middle repetition.
func (p Product) Measure(budget time.Duration) unit.FLOPsPerSecond {
	a := NewArena(ArenaOptions{})
	defer a.Close()
	c := NewCPU(a, p.Threads)
	defer c.Close()
	matrix := func(rows, cols int, transposed bool, key uint64) *Tensor {
		if transposed {
			rows, cols = cols, rows
		}
		t := a.New(Workspace, p.DType, rows, cols)
		fillRandom(c, t, key)
		return t
	}
	op := MatMul{
		C: a.New(Workspace, p.DType, p.M, p.N), A: matrix(p.M, p.K, p.TransA, 1), B: matrix(p.K, p.N, p.TransB, 2),
		TransA: p.TransA, TransB: p.TransB,
	}
	return p.FLOPs().Per(middle(budget, func() { c.MatMul(op) }))
}

// fillRandom fills a tensor with random numbers that repeat: no product is faster for it, and setting up is.
func fillRandom(c *CPU, t *Tensor, key uint64) {
	const most = 1 << 16
	n := min(t.Len(), most)
	head := t.Slice(0, n, n)
	defer head.Free()
	c.Normal(Normal{T: head, Key: key, Std: 1, Cols: n})
	all := t.Raw()
	for filled := len(head.Raw()); filled < len(all); filled *= 2 {
		copy(all[filled:], all[:filled])
	}
}

// middle is the median time of f over the budget, after one call that does not count; three calls at least.
func middle(budget time.Duration, f func()) unit.Seconds {
	f()
	var times []float64
	for start := time.Now(); len(times) < 3 || time.Since(start) < budget; {
		before := time.Now()
		f()
		times = append(times, time.Since(before).Seconds())
	}
	return unit.Seconds(math.Max(median(times), 1e-9))
}

// median sorts x and returns its middle.
func median(x []float64) float64 {
	slices.Sort(x)
	return x[len(x)/2]
}

// StandardProducts are the shapes that kernels are judged by: squares, the layers of models of 124 million and
// of a billion parameters, a head with GPT-2's vocabulary, and the three products of a training step.
func StandardProducts(d DType, threads int) []Product {
	list := []Product{
		{M: 512, N: 512, K: 512},
		{M: 1024, N: 1024, K: 1024},
		{M: 512, N: 3072, K: 768},
		{M: 512, N: 768, K: 3072},
		{M: 512, N: 8192, K: 2048},
		{M: 256, N: 50257, K: 768},
		{M: 2048, N: 256, K: 256, TransB: true},
		{M: 2048, N: 1376, K: 256, TransB: true},
		{M: 2048, N: 256, K: 688},
		{M: 688, N: 256, K: 2048, TransA: true},
	}
	for i := range list {
		list[i].DType, list[i].Threads = d, threads
	}
	return list
}
