package main

import (
	"fmt"
	"log"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A tile function multiplies rows of A by one panel of B:
//
//	for i := range rows {
//		for j := range width {
//			s := float32(0)
//			for p := range k {
//				s = fma(A[i,p], B[p,j], s)
//			}
//			C[i,j] = alpha*s    // or += alpha*s, if add is not 0
//		}
//	}
//
// A is read one element at a time, B and C by whole vectors. All strides are in
// bytes: of A lda from row to row and ka along K, so that A and its transpose
// are the same to a tile. The accumulators of a tile fill the register file but
// for the vectors of B and two broadcast elements of A.
type tile struct {
	name    string
	rows    int           // most rows
	vectors int           // vectors per row of B and C
	reg     []VecPhysical // the register file
	bytes   int           // of a vector
	mul     func(a, b, acc VecPhysical)
}

var tiles = []tile{
	{name: "tileF32AVX512", rows: 14, vectors: 2, reg: zmm, bytes: 64, mul: fma},
	{name: "tileF32AVX512Half", rows: 14, vectors: 1, reg: zmm, bytes: 64, mul: fma},
	{name: "tileBF16AVX512", rows: 14, vectors: 2, reg: zmm, bytes: 64, mul: vdpbf16ps},
	{name: "tileBF16AVX512Half", rows: 14, vectors: 1, reg: zmm, bytes: 64, mul: vdpbf16ps},
	{name: "tileF32AVX2", rows: 6, vectors: 2, reg: ymm, bytes: 32, mul: fma},
	{name: "tileF32AVX2Half", rows: 6, vectors: 1, reg: ymm, bytes: 32, mul: fma},
}

var zmm = []VecPhysical{
	Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13, Z14, Z15,
	Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23, Z24, Z25, Z26, Z27, Z28, Z29, Z30, Z31,
}

var ymm = []VecPhysical{
	Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15,
}

// Registers of a tile function. Rows of A are reached from five bases with the
// scales that an address may have.
var (
	aBase   = []GPPhysical{RAX, RBX, RCX, RDX, RSI} // rows 0, 3, 6, 9, 12
	aStride = RDI
	aStep   = R10
	bRow    = R8
	bStride = R9
	bNext   = R11
	cRow    = R12 // while not multiplying
	cStride = R13 // while not multiplying
	blocks  = R12 // turns left of the unrolled loop
	rest    = R15 // turns left of the single loop
)

// rowAddress says how to reach row i of A: base and scale of the stride.
var rowAddress = [14]struct{ base, scale int }{
	{0, 0},
	{0, 1},
	{0, 2},
	{1, 0},
	{0, 4},
	{1, 2},
	{2, 0},
	{1, 4},
	{0, 8},
	{3, 0},
	{2, 4},
	{1, 8},
	{4, 0},
	{3, 4},
}

// unroll is how many k one turn of the main loop does; ahead is how many k
// before their use A and B are prefetched.
const (
	unroll = 4
	ahead  = 8
)

func (t *tile) generate() {
	TEXT(t.name, NOSPLIT, "func(rows int, a *byte, lda int, ka int, b *byte, ldb int, next int, k int, c *byte, ldc int, alpha float64, add int)")
	Pragma("noescape")
	t.load()
	rows := Load(Param("rows"), R14)
	for r := t.rows; r > 1; r-- {
		CMPQ(rows, Imm(uint64(r)))
		JEQ(LabelRef(t.label("rows", r)))
	}
	JMP(LabelRef(t.label("rows", 1)))
	for r := t.rows; r >= 1; r-- {
		t.body(r)
	}
}

func (t *tile) label(what string, r int) string { return fmt.Sprintf("%s%d", what, r) }

func (t *tile) load() {
	Load(Param("a"), aBase[0])
	Load(Param("lda"), aStride)
	Load(Param("ka"), aStep)
	Load(Param("b"), bRow)
	Load(Param("ldb"), bStride)
	Load(Param("next"), bNext)
	Load(Param("k"), rest)
	LEAQ(Mem{Base: aStride, Index: aStride, Scale: 2}, R14)
	for i := 1; i < len(aBase) && 3*i < t.rows; i++ {
		LEAQ(Mem{Base: aBase[i-1], Index: R14, Scale: 1}, aBase[i])
	}
}

func (t *tile) loadC() {
	Load(Param("c"), cRow)
	Load(Param("ldc"), cStride)
}

// bases is how many bases of A rows need.
func bases(rows int) int {
	n := 0
	for _, a := range rowAddress[:rows] {
		n = max(n, a.base+1)
	}
	return n
}

func (t *tile) acc(i, v int) VecPhysical { return t.reg[i*t.vectors+v] }

// body is the product for a fixed number of rows.
func (t *tile) body(rows int) {
	Label(t.label("rows", rows))
	t.prefetchC(rows)
	MOVQ(rest, blocks)
	SHRQ(Imm(2), blocks)
	ANDQ(Imm(unroll-1), rest)
	for i := range rows * t.vectors {
		t.zero(t.reg[i])
	}
	TESTQ(blocks, blocks)
	JZ(LabelRef(t.label("tail", rows)))
	Label(t.label("loop", rows))
	for range unroll {
		t.step(rows)
	}
	DECQ(blocks)
	JNZ(LabelRef(t.label("loop", rows)))
	Label(t.label("tail", rows))
	TESTQ(rest, rest)
	JZ(LabelRef(t.label("store", rows)))
	Label(t.label("single", rows))
	t.step(rows)
	DECQ(rest)
	JNZ(LabelRef(t.label("single", rows)))
	Label(t.label("store", rows))
	t.store(rows)
}

func (t *tile) zero(r VecPhysical) {
	if t.bytes == 64 {
		VPXORD(r, r, r)
	} else {
		VXORPS(r, r, r)
	}
}

// prefetchC asks for the tile of C, which is used at the end.
func (t *tile) prefetchC(rows int) {
	t.loadC()
	for i := range rows {
		PREFETCHT0(Mem{Base: cRow})
		if t.bytes*t.vectors > 64 {
			PREFETCHT0(Mem{Base: cRow, Disp: t.bytes*t.vectors - 4})
		}
		if i+1 < rows {
			ADDQ(cStride, cRow)
		}
	}
}

// step is one k.
func (t *tile) step(rows int) {
	n := len(t.reg)
	b := t.reg[n-2-t.vectors : n-2]
	for v := range b {
		t.move(Mem{Base: bRow, Disp: v * t.bytes}, b[v])
	}
	for at := 0; at < t.bytes*t.vectors; at += 64 {
		PREFETCHT0(Mem{Base: bRow, Disp: at, Index: bStride, Scale: ahead})
		PREFETCHT1(Mem{Base: bRow, Disp: at, Index: bNext, Scale: 1})
	}
	for _, i := range []int{0, bases(rows) - 1} {
		PREFETCHT0(Mem{Base: aBase[i], Index: aStep, Scale: ahead})
	}
	for i := range rows {
		a := t.reg[n-1-i%2]
		VBROADCASTSS(rowMem(i), a)
		for v := range b {
			t.mul(a, b[v], t.acc(i, v))
		}
	}
	ADDQ(bStride, bRow)
	for i := range bases(rows) {
		ADDQ(aStep, aBase[i])
	}
}

func rowMem(i int) Mem {
	at := rowAddress[i]
	m := Mem{Base: aBase[at.base]}
	if at.scale != 0 {
		m.Index, m.Scale = aStride, uint8(at.scale)
	}
	return m
}

// store writes the accumulators, added to C if add is not 0.
func (t *tile) store(rows int) {
	t.scale(rows)
	t.loadC()
	Load(Param("add"), R14)
	TESTQ(R14, R14)
	JZ(LabelRef(t.label("write", rows)))
	MOVQ(cRow, R14)
	for i := range rows {
		for v := range t.vectors {
			VADDPS(Mem{Base: R14, Disp: v * t.bytes}, t.acc(i, v), t.acc(i, v))
		}
		if i+1 < rows {
			ADDQ(cStride, R14)
		}
	}
	Label(t.label("write", rows))
	for i := range rows {
		for v := range t.vectors {
			t.move(t.acc(i, v), Mem{Base: cRow, Disp: v * t.bytes})
		}
		if i+1 < rows {
			ADDQ(cStride, cRow)
		}
	}
	VZEROUPPER()
	RET()
}

// scale multiplies the accumulators by alpha unless it is 1.
func (t *tile) scale(rows int) {
	alpha := t.reg[len(t.reg)-1]
	low := VecPhysical(X15)
	if t.bytes == 64 {
		low = X31
	}
	VCVTSD2SS(t.parameter("alpha"), low, low)
	VMOVD(low, R14L)
	CMPL(R14L, Imm(0x3f800000))
	JEQ(LabelRef(t.label("scaled", rows)))
	VBROADCASTSS(low, alpha)
	for i := range rows * t.vectors {
		VMULPS(alpha, t.reg[i], t.reg[i])
	}
	Label(t.label("scaled", rows))
}

// parameter is the memory of a parameter.
func (t *tile) parameter(name string) Mem {
	p, err := Param(name).Resolve()
	if err != nil {
		log.Fatal(err)
	}
	return p.Addr
}

func (t *tile) move(from, to Op) { VMOVUPS(from, to) }

func fma(a, b, acc VecPhysical) { VFMADD231PS(a, b, acc) }
