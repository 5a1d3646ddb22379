package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// machines are the choices of kernels that this machine can run, by name.
func machines() map[string]Features {
	have := Detect()
	m := map[string]Features{"portable": {}}
	if have.AVX2 {
		m["avx2"] = Features{AVX2: true}
	}
	if have.AVX512 {
		m["avx512"] = Features{AVX2: true, AVX512: true}
	}
	if have.BF16 {
		m["avx512bf16"] = Features{AVX2: true, AVX512: true, BF16: true, BF16Fast: true}
	}
	return m
}

func newTestContext(t testing.TB, threads int, f Features) *Context {
	c := NewContext(threads, make([]byte, WorkspaceBytes(threads)), f)
	t.Cleanup(c.Close)
	return c
}

// elementType names the slices of a Mat.
type elementType int

const (
	f32 elementType = iota
	bf16
	f64
)

// guarded is a matrix inside a larger buffer that is NaN everywhere else: a
// read outside poisons the result and a write outside is found.
type guarded struct {
	Mat
	rows, cols, offset int
	all                Mat
}

const guardBefore, guardAfter = 3, 70

func newGuarded(rng *rand.Rand, e elementType, rows, cols int, trans bool) *guarded {
	if trans {
		rows, cols = cols, rows
	}
	g := &guarded{rows: rows, cols: cols, offset: guardBefore}
	ld := cols + rng.IntN(20)
	n := guardBefore + rows*ld + guardAfter
	g.LD, g.Trans, g.all.LD = ld, trans, n
	switch e {
	case f32:
		g.all.F32 = make([]float32, n)
	case bf16:
		g.all.BF16 = make([]uint16, n)
	case f64:
		g.all.F64 = make([]float64, n)
	}
	for i := range n {
		g.all.set(0, i, math.NaN())
	}
	for i := range rows {
		for j := range cols {
			g.all.set(0, guardBefore+i*ld+j, rng.NormFloat64())
		}
	}
	end := guardBefore + max(0, (rows-1)*ld+cols)
	switch e {
	case f32:
		g.F32 = g.all.F32[guardBefore:end:end]
	case bf16:
		g.BF16 = g.all.BF16[guardBefore:end:end]
	case f64:
		g.F64 = g.all.F64[guardBefore:end:end]
	}
	return g
}

// checkGuards reports a write outside the matrix.
func (g *guarded) checkGuards(t rapid.TB) {
	t.Helper()
	for i := range g.all.LD {
		p := i - g.offset
		inside := p >= 0 && g.LD > 0 && p < g.rows*g.LD && p%g.LD < g.cols
		if !inside && !math.IsNaN(g.all.at(0, i)) {
			t.Fatalf("wrote outside the matrix at element %d", p)
		}
	}
}

// gemmCase is a product with its operands.
type gemmCase struct {
	Gemm
	a, b, c, bias, residual *guarded
}

func drawGemm(t *rapid.T) *gemmCase {
	wide := rapid.IntRange(0, 4).Draw(t, "wide") == 0
	element := func(name string) elementType {
		if wide {
			return f64
		}
		return elementType(rapid.IntRange(0, 1).Draw(t, name))
	}
	size := func(name string) int {
		return rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(0, 200),
			rapid.SampledFrom([]int{14, 16, 28, 32, 48, 64, 96, 128, 256})).Draw(t, name)
	}
	x := &gemmCase{Gemm: Gemm{M: size("m"), N: size("n"), K: size("k")}}
	if rapid.IntRange(0, 9).Draw(t, "deep") == 0 {
		x.M, x.N, x.K = x.M%40, x.N%40, x.K+rapid.IntRange(900, 4500).Draw(t, "more k")
	}
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
	x.a = newGuarded(rng, element("A"), x.M, x.K, rapid.Bool().Draw(t, "A transposed"))
	x.b = newGuarded(rng, element("B"), x.K, x.N, rapid.Bool().Draw(t, "B transposed"))
	x.c = newGuarded(rng, element("C"), x.M, x.N, false)
	x.A, x.B, x.C = x.a.Mat, x.b.Mat, x.c.Mat
	x.Write = Write(rapid.IntRange(0, 1).Draw(t, "write"))
	x.Alpha = rapid.SampledFrom([]float64{0, 1, 0.25, -3}).Draw(t, "alpha")
	if rapid.Bool().Draw(t, "bias") {
		x.bias = newGuarded(rng, element("bias type"), 1, x.N, false)
		x.Bias = x.bias.Mat
	}
	if rapid.Bool().Draw(t, "residual") {
		x.residual = newGuarded(rng, element("residual type"), x.M, x.N, false)
		x.Residual = x.residual.Mat
	}
	return x
}

// bf16Ulp is the relative error of rounding to bf16, fp32Ulp to fp32.
const (
	fp64Ulp = 1.0 / (1 << 53)
	fp32Ulp = 1.0 / (1 << 24)
	bf16Ulp = 1.0 / (1 << 8)
)

// plainGemm is the twin: the value of C and how far from it each element may be.
// The bound is that of any order of summation, (K+6)·ulp·Σ|a·b|, doubled for
// VDPBF16PS, whose inner rounding is its own, and one rounding to C's type.
func plainGemm(g *Gemm) (want, bound []float64) {
	ulp, out := fp32Ulp, fp32Ulp
	switch {
	case g.C.F64 != nil:
		ulp, out = fp64Ulp, fp64Ulp
	case g.C.BF16 != nil:
		out = bf16Ulp
	}
	terms := [][]float64{dense(&g.Bias, g.M, g.N, 0), dense(&g.Residual, g.M, g.N, 1)}
	if g.Write == Accumulate {
		terms = append(terms, dense(&g.C, g.M, g.N, 1))
	}
	a, b := dense(&g.A, g.M, g.K, 1), dense(&g.B, g.K, g.N, 1)
	want, bound = make([]float64, g.M*g.N), make([]float64, g.M*g.N)
	for p := range want {
		s, size := 0.0, 0.0
		for k := range g.K {
			x := a[p/g.N*g.K+k] * b[k*g.N+p%g.N]
			s, size = s+x, size+math.Abs(x)
		}
		s, size = s*scale(g.Alpha), size*math.Abs(scale(g.Alpha))
		for _, t := range terms {
			if t != nil {
				s, size = s+t[p], size+math.Abs(t[p])
			}
		}
		want[p] = s
		bound[p] = 2*float64(g.K+6)*ulp*size + 2*out*math.Abs(s) + 1e-37
	}
	return want, bound
}

// dense is op(m) as fp64, or nil; step 0 repeats its first row.
func dense(m *Mat, rows, cols, step int) []float64 {
	if m.empty() {
		return nil
	}
	d := make([]float64, 0, rows*cols)
	for i := range rows {
		for j := range cols {
			d = append(d, m.at(i*step, j))
		}
	}
	return d
}

func checkProduct(t rapid.TB, g *Gemm, want, bound []float64) {
	t.Helper()
	for i := range g.M {
		for j := range g.N {
			got, p := g.C.at(i, j), i*g.N+j
			if !(math.Abs(got-want[p]) <= bound[p]) {
				t.Fatalf("C[%d,%d] = %v, want %v ± %v", i, j, got, want[p], bound[p])
			}
		}
	}
}

func TestGemmEqualsPlainLoops(t *testing.T) {
	for name, f := range machines() {
		t.Run(name, func(t *testing.T) {
			var contexts []*Context
			for threads := 1; threads <= 3; threads++ {
				contexts = append(contexts, newTestContext(t, threads, f))
			}
			rapid.Check(t, func(t *rapid.T) {
				x := drawGemm(t)
				want, bound := plainGemm(&x.Gemm)
				contexts[rapid.IntRange(0, len(contexts)-1).Draw(t, "threads less one")].Gemm(&x.Gemm)
				checkProduct(t, &x.Gemm, want, bound)
				x.c.checkGuards(t)
			})
		})
	}
}

// A fault of one part in a thousand in one element must be found.
func TestGemmCheckFindsPlantedFault(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	a, b := newGuarded(rng, f32, 20, 30, false), newGuarded(rng, f32, 30, 40, false)
	c := newGuarded(rng, f32, 20, 40, false)
	g := Gemm{M: 20, N: 40, K: 30, A: a.Mat, B: b.Mat, C: c.Mat}
	want, bound := plainGemm(&g)
	newTestContext(t, 2, Detect()).Gemm(&g)
	found := false
	p := 7*g.C.LD + 39
	g.C.F32[p] *= 1.001
	checkProduct(failureFlag{t, &found}, &g, want, bound)
	if !found {
		t.Fatal("fault not found")
	}
	c.all.F32[1] = 0
	found = false
	c.checkGuards(failureFlag{t, &found})
	if !found {
		t.Fatal("write outside not found")
	}
}

// failureFlag notes a failure instead of failing.
type failureFlag struct {
	*testing.T
	failed *bool
}

func (f failureFlag) Fatalf(string, ...any) { *f.failed = true }

func TestGemmSameBitsForAnyThreads(t *testing.T) {
	for name, f := range machines() {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(3, 4))
			for _, s := range [][3]int{{130, 200, 300}, {64, 96, 2500}, {3, 130, 64}} {
				a, b := newGuarded(rng, f32, s[0], s[2], false), newGuarded(rng, f32, s[2], s[1], true)
				var first []float32
				for threads := 1; threads <= 4; threads++ {
					c := newGuarded(rng, f32, s[0], s[1], false)
					c.LD = s[1]
					newTestContext(t, threads, f).Gemm(&Gemm{M: s[0], N: s[1], K: s[2], A: a.Mat, B: b.Mat, C: c.Mat})
					got := c.F32[:s[0]*s[1]]
					if first == nil {
						first = got
					}
					for i := range got {
						if got[i] != first[i] {
							t.Fatalf("%v: element %d is %v with %d threads, %v with one", s, i, got[i], threads, first[i])
						}
					}
				}
			}
		})
	}
}

// A row of C is the same whatever rows come with it.
func TestGemmRowsAreIndependent(t *testing.T) {
	for name, f := range machines() {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(5, 6))
			const m, n, k = 150, 70, 1500
			a, b := newGuarded(rng, f32, m, k, false), newGuarded(rng, f32, k, n, false)
			c := newTestContext(t, 2, f)
			all := make([]float32, m*n)
			c.Gemm(&Gemm{M: m, N: n, K: k, A: a.Mat, B: b.Mat, C: Mat{F32: all, LD: n}})
			for _, rows := range []int{1, 5, 60} {
				part := make([]float32, rows*n)
				from := m - rows
				c.Gemm(&Gemm{M: rows, N: n, K: k, A: Mat{F32: a.F32[from*a.LD:], LD: a.LD}, B: b.Mat, C: Mat{F32: part, LD: n}})
				for i, got := range part {
					if want := all[from*n+i]; got != want {
						t.Fatalf("%d rows: element %d is %v, %v in the whole", rows, i, got, want)
					}
				}
			}
		})
	}
}

func TestGemmRefusesBadOperands(t *testing.T) {
	ok := func() Gemm {
		return Gemm{
			M: 2, N: 3, K: 4,
			A: Mat{F32: make([]float32, 8), LD: 4}, B: Mat{F32: make([]float32, 12), LD: 3}, C: Mat{F32: make([]float32, 6), LD: 3},
		}
	}
	cases := map[string]func(g *Gemm){
		"negative":       func(g *Gemm) { g.M = -1 },
		"short A":        func(g *Gemm) { g.A.F32 = g.A.F32[:7] },
		"short B":        func(g *Gemm) { g.B.Trans, g.B.LD = true, 5 },
		"short C":        func(g *Gemm) { g.C.LD = 4 },
		"narrow C":       func(g *Gemm) { g.C.LD = 2 },
		"transposed C":   func(g *Gemm) { g.C.Trans = true },
		"two types":      func(g *Gemm) { g.A.BF16 = make([]uint16, 8) },
		"fp64 mixture":   func(g *Gemm) { g.B = Mat{F64: make([]float64, 12), LD: 3} },
		"short bias":     func(g *Gemm) { g.Bias = Mat{F32: make([]float32, 2), LD: 2} },
		"short residual": func(g *Gemm) { g.Residual = Mat{F32: make([]float32, 5), LD: 3} },
	}
	c := newTestContext(t, 1, Features{})
	for name, spoil := range cases {
		t.Run(name, func(t *testing.T) {
			g := ok()
			c.Gemm(&g)
			spoil(&g)
			defer func() {
				if recover() == nil {
					t.Fatal("accepted")
				}
			}()
			c.Gemm(&g)
		})
	}
}

func TestGemmAllocatesNothing(t *testing.T) {
	c := newTestContext(t, 2, Detect())
	rng := rand.New(rand.NewPCG(7, 8))
	for _, e := range []elementType{f32, bf16, f64} {
		a, b, out := newGuarded(rng, e, 100, 90, true), newGuarded(rng, e, 90, 110, true), newGuarded(rng, e, 100, 110, false)
		g := Gemm{M: 100, N: 110, K: 90, A: a.Mat, B: b.Mat, C: out.Mat}
		if n := testing.AllocsPerRun(20, func() { c.Gemm(&g) }); n != 0 {
			t.Errorf("%v allocations per product of type %d", n, e)
		}
	}
}

func TestBlockEqualsPlainLoops(t *testing.T) {
	for name, f := range machines() {
		t.Run(name, func(t *testing.T) {
			c := newTestContext(t, 2, f)
			rapid.Check(t, func(t *rapid.T) {
				x := drawGemm(t)
				x.Bias, x.Residual = Mat{}, Mat{}
				if x.C.BF16 != nil {
					x.c = newGuarded(rand.New(rand.NewPCG(1, 1)), f32, x.M, x.N, false)
					x.C = x.c.Mat
				}
				want, bound := plainGemm(&x.Gemm)
				c.Run(2, &blockOnce{c: c, g: &x.Gemm})
				checkProduct(t, &x.Gemm, want, bound)
				x.c.checkGuards(t)
			})
		})
	}
}

// blockOnce does a product through PackB and Block on one of two workers.
type blockOnce struct {
	c *Context
	g *Gemm
}

func (o *blockOnce) Do(worker, i int) {
	if i == 0 {
		return
	}
	g := o.g
	var p PackedB
	n := o.c.PackedLen(g.K, g.N)
	if g.C.F64 != nil {
		p.F64 = make([]float64, n)
	} else {
		p.F32 = make([]float32, n)
	}
	o.c.PackB(&p, g.B, g.K, g.N)
	o.c.Block(worker, &Block{M: g.M, A: g.A, B: p, C: g.C, Write: g.Write, Alpha: g.Alpha})
}

func TestBlockAllocatesNothing(t *testing.T) {
	c := newTestContext(t, 1, Detect())
	rng := rand.New(rand.NewPCG(9, 10))
	a, b, out := newGuarded(rng, bf16, 100, 90, true), newGuarded(rng, bf16, 90, 110, true), newGuarded(rng, f32, 100, 110, false)
	data := make([]float32, c.PackedLen(90, 110))
	n := testing.AllocsPerRun(20, func() {
		p := PackedB{F32: data}
		c.PackB(&p, b.Mat, 90, 110)
		block := Block{M: 100, A: a.Mat, B: p, C: out.Mat}
		c.Block(0, &block)
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkGemm(b *testing.B) {
	for _, s := range [][3]int{{512, 512, 512}, {1024, 1024, 1024}, {2048, 256, 256}} {
		for _, threads := range []int{1, 2} {
			name := fmt.Sprintf("op=gemm/dtype=fp32/m=%d/n=%d/k=%d/threads=%d", s[0], s[1], s[2], threads)
			b.Run(name, func(b *testing.B) { benchGemm(b, s[0], s[1], s[2], threads) })
		}
	}
}

func benchGemm(b *testing.B, m, n, k, threads int) {
	c := newTestContext(b, threads, Detect())
	g := Gemm{
		M: m, N: n, K: k,
		A: Mat{F32: make([]float32, m*k), LD: k},
		B: Mat{F32: make([]float32, k*n), LD: n},
		C: Mat{F32: make([]float32, m*n), LD: n},
	}
	for b.Loop() {
		c.Gemm(&g)
	}
	b.ReportMetric(2*float64(m)*float64(n)*float64(k)*float64(b.N)/b.Elapsed().Seconds(), "flop/s")
}
