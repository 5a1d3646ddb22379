package kernel

import "unsafe"

// PackedB is op(B) [K N] as Block reads it, in memory of the caller: F64 for an
// fp64 operand, F32 for others.
type PackedB struct {
	K, N int
	F32  []float32
	F64  []float64
}

// PackedLen is the number of elements that PackB needs for op(B) [k n].
func (c *Context) PackedLen(k, n int) int {
	w := max(c.engines.f32.width, c.engines.f64.width)
	return k * ceil(n, w) * w
}

// PackB lays out op(B) [k n] for Block in dst, whose slice of the element type
// to compute in has PackedLen(k, n) elements or more; it sets K and N. It is
// for the inside of a Task: any number of workers may call it at once.
//
// Packing costs about as much as two rows of the product, so it is worth
// keeping what several blocks use.
func (c *Context) PackB(dst *PackedB, b Mat, k, n int) {
	b.check("B", k, n)
	dst.K, dst.N = k, n
	if k == 0 || n == 0 {
		return
	}
	e := c.blockEngine(&b)
	s := e.source(&b, k, !b.Trans)
	e.packB(dst.data(c.PackedLen(k, n)), k*e.width*e.unit, &s, 0, k, 0, n)
}

// data is the packed operand, which has at least n elements.
func (p *PackedB) data(n int) unsafe.Pointer {
	if p.F64 != nil {
		return unsafe.Pointer(&p.F64[:n][0])
	}
	return unsafe.Pointer(&p.F32[:n][0])
}

// blockEngine computes in fp32 whatever the operands are, or in fp64.
func (c *Context) blockEngine(m *Mat) *engine {
	if m.F64 != nil {
		return &c.engines.f64
	}
	return &c.engines.f32
}

// Block is a small product on one worker, inside a Task:
//
//	C[M N] = Alpha · op(A)[M K] · B[K N]     (or += with Accumulate)
//
// with B packed by PackB, which also gives K and N. A is fp32 or bf16 and C
// fp32, or both are fp64. It is made for sizes up to 256.
type Block struct {
	M     int
	A     Mat // op(A) is [M K]; read in place if it is fp32 and not transposed
	B     PackedB
	C     Mat // [M N], not transposed
	Write Write
	Alpha float64 // 0 means 1
}

// blockRows is how many rows of A are packed at a time: whole tiles and
// vectors of most engines.
const blockRows = 112

// Block computes b with the scratch memory of the worker.
func (c *Context) Block(worker int, b *Block) {
	k, n := b.B.K, b.B.N
	b.A.check("A", b.M, k)
	b.C.check("C", b.M, n)
	if b.M == 0 || n == 0 {
		return
	}
	e := c.blockEngine(&b.C)
	t := blockTask{e: e, b: *b, alpha: scale(b.Alpha), scratch: &c.job.local[worker]}
	if k > 0 {
		t.data = b.B.data(ceil(n, e.width) * e.width * k)
	}
	t.a = e.source(&b.A, k, b.A.Trans)
	if t.a.form == formKeep && !b.A.Trans {
		t.rows(t.a.p, t.a.ld, 0, b.M, 0, k)
		return
	}
	deep := localB/(blockRows*e.unit) - 2*cacheLine
	for u := 0; u == 0 || u < k; u += deep {
		t.packed(u, min(u+deep, k))
	}
}

type blockTask struct {
	e       *engine
	b       Block // a copy, so that the caller's need not escape
	alpha   float64
	a       source
	data    unsafe.Pointer // of the packed B
	scratch *localSpace
}

// packed does all rows for the units u..end with a packed A.
func (t *blockTask) packed(u, end int) {
	ld := oddLines((end - u) * t.e.unit)
	for i := 0; i < t.b.M; i += blockRows {
		to := min(i+blockRows, t.b.M)
		t.e.packA(t.scratch.b, ld, &t.a, u, end, i, to)
		t.rows(t.scratch.b, ld, i, to, u, end)
	}
}

// rows multiplies the rows i0..i1, which lie at a, over the units u..end.
func (t *blockTask) rows(a unsafe.Pointer, lda, i0, i1, u, end int) {
	e, b := t.e, &t.b
	ldb := e.width * e.unit
	for c := 0; c < b.B.N; c += e.width {
		panel := unsafe.Add(t.data, (c*b.B.K+u*e.width)*e.unit)
		tile := e.tile
		if e.half != nil && b.B.N-c <= e.width/2 {
			tile = e.half
		}
		for i := i0; i < i1; i += e.rows {
			rows := min(e.rows, i1-i)
			add := b.Write.add(u)
			strip := unsafe.Add(a, (i-i0)*lda)
			if b.B.N-c >= e.width {
				out, ld := b.C.pointer(i, c)
				tile(rows, (*byte)(strip), lda, e.unit, (*byte)(panel), ldb, 0, end-u, (*byte)(out), ld, t.alpha, add)
			} else {
				tile(rows, (*byte)(strip), lda, e.unit, (*byte)(panel), ldb, 0, end-u, (*byte)(t.scratch.tile), ldb, t.alpha, 0)
				b.C.mergeTile(t.scratch.tile, ldb, i, c, rows, b.B.N-c, add)
			}
		}
	}
}
