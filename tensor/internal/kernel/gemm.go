package kernel

import "fmt"

// Mat is a row-major matrix in one of three element types: exactly one of the
// slices is not nil (all may be nil for a matrix without elements).
type Mat struct {
	F32  []float32
	BF16 []uint16 // bfloat16: the upper half of a float32
	F64  []float64
	// LD is the distance between rows as stored, in elements.
	LD int
	// Trans says that the operand is the transpose of what is stored.
	Trans bool
}

// Write says what becomes of the old values of C.
type Write uint8

const (
	Overwrite  Write = iota // C = ...
	Accumulate              // C += ...
)

// Gemm describes one matrix product with its epilogue:
//
//	for i := range M {
//		for j := range N {
//			x := Alpha * sum(k, A[i,k]*B[k,j]) + Bias[j] + Residual[i,j]
//			C[i,j] = x    // or += x
//		}
//	}
//
// It is 2·M·N·K FLOPs and moves each operand at least once. A and B are fp32
// or bf16, each on its own; so are C, Bias and Residual; or all are fp64. The
// sum is kept in fp32 (fp64 if the operands are) and a bf16 C is rounded once,
// to nearest even. C overlaps no other operand.
//
// The result depends on the operands, the shape and the CPU's features only,
// never on the number of threads; and row i of C only on K, N, row i of A
// and B.
type Gemm struct {
	M, N, K int
	A       Mat // op(A) is [M K]
	B       Mat // op(B) is [K N]
	C       Mat // [M N], not transposed

	Write Write
	Alpha float64 // scales the product; 0 means 1

	Bias     Mat // [1 N], or empty
	Residual Mat // [M N], or empty; not transposed
}

// check panics when an operand is too small for the shape: a caller's bug that
// assembly would turn into a write outside the matrix.
func (g *Gemm) check() {
	if g.M < 0 || g.N < 0 || g.K < 0 {
		panic(fmt.Sprintf("kernel: gemm of negative shape %d x %d x %d", g.M, g.N, g.K))
	}
	g.A.check("A", g.M, g.K)
	g.B.check("B", g.K, g.N)
	g.C.check("C", g.M, g.N)
	if g.C.Trans || g.Residual.Trans || g.Bias.Trans {
		panic("kernel: gemm with a transposed C, bias or residual")
	}
	if !g.Bias.empty() {
		g.Bias.check("bias", 1, g.N)
	}
	if !g.Residual.empty() {
		g.Residual.check("residual", g.M, g.N)
	}
	g.checkTypes()
}

// checkTypes panics on a mixture of fp64 with other types.
func (g *Gemm) checkTypes() {
	wide := g.C.F64 != nil
	for _, m := range [...]*Mat{&g.A, &g.B, &g.Bias, &g.Residual} {
		if !m.empty() && (m.F64 != nil) != wide {
			panic("kernel: gemm mixes fp64 with other types")
		}
	}
}

// check panics when m cannot hold op(m) of rows × cols.
func (m *Mat) check(name string, rows, cols int) {
	if m.Trans {
		rows, cols = cols, rows
	}
	if rows == 0 || cols == 0 {
		return
	}
	have := len(m.F32) + len(m.BF16) + len(m.F64)
	if m.LD < cols && rows > 1 || have < (rows-1)*m.LD+cols {
		panic(fmt.Sprintf("kernel: gemm %s is stored as %d x %d with stride %d but has %d elements",
			name, rows, cols, m.LD, have))
	}
	if given(m.F32)+given(m.BF16)+given(m.F64) != 1 {
		panic("kernel: gemm " + name + " needs exactly one element type")
	}
}

func given[T any](s []T) int {
	if s != nil {
		return 1
	}
	return 0
}

func (m *Mat) empty() bool { return m.F32 == nil && m.BF16 == nil && m.F64 == nil }
