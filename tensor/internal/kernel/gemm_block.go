package kernel

// PackedB is op(B) [K N] as Block reads it. Data belongs to the caller.
type PackedB struct {
	K, N int
	F32  []float32
	F64  []float64
}

// PackedLen is the number of elements that PackB needs for op(B) [k n].
func (c *Context) PackedLen(k, n int) int { return k * n }

// PackB lays out op(B) [k n] for Block in dst, whose slice of the element
// type to compute in (F64 if b is fp64, else F32) has PackedLen(k, n) elements.
// It is for the inside of a Task: any number of workers may call it at once.
// Packing reads and writes each element once; it pays when the
// block is used for more than a few rows.
func (c *Context) PackB(dst *PackedB, b Mat, k, n int) {
	b.check("B", k, n)
	dst.K, dst.N = k, n
	for i := range k {
		for j := range n {
			if b.F64 != nil {
				dst.F64[i*n+j] = b.at(i, j)
			} else {
				dst.F32[i*n+j] = float32(b.at(i, j))
			}
		}
	}
}

// Block is a small product on one worker, inside a Task:
//
//	C[M N] = Alpha · op(A)[M K] · B[K N]     (or += with Accumulate)
//
// with B packed by PackB. A is fp32 or bf16 with an fp32 C, or all are fp64.
// Sizes up to 256 are what it is made for; K and N are those of B.
type Block struct {
	M     int
	A     Mat // op(A) is [M K]; fastest when not transposed and fp32
	B     PackedB
	C     Mat // [M N]
	Write Write
	Alpha float64 // 0 means 1
}

// Block computes b with the scratch memory of the worker.
func (c *Context) Block(worker int, b *Block) {
	g := rowTask{
		M: b.M, N: b.B.N, K: b.B.K,
		A: b.A, B: Mat{F32: b.B.F32, F64: b.B.F64, LD: b.B.N}, C: b.C, Write: b.Write, Alpha: b.Alpha,
	}
	for i := range g.M {
		g.Do(worker, i)
	}
}
