package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// A form is what packing makes of the elements of an operand: units of four
// bytes along K, one lane of a vector each.
type form int

const (
	keep   form = iota // fp32 as it is
	expand             // bf16 to fp32
	pairs              // two bf16 of adjacent rows to one unit
)

// vector says for which register width packing is generated.
type vector struct {
	suffix string
	bytes  int
	reg    []VecPhysical
	forms  []form
}

var vectors = []vector{
	{"AVX512", 64, zmm, []form{keep, expand, pairs}},
	{"AVX2", 32, ymm, []form{keep, expand}},
}

func (f form) String() string { return [...]string{"F32", "BF16", "Pairs"}[f] }

// elementBytes is the size of a source element.
func (f form) elementBytes() int {
	if f == keep {
		return 4
	}
	return 2
}

// rows is how many rows of the source make one row of units.
func (f form) rows() int {
	if f == pairs {
		return 2
	}
	return 1
}

// loadUnits makes a vector of units of the elements at m, and for pairs of
// those at next, one row below.
func (v *vector) loadUnits(f form, m, next Mem, to, temp VecPhysical) {
	if f == keep {
		VMOVUPS(m, to)
		return
	}
	VPMOVZXWD(m, to)
	if f == expand {
		VPSLLD(Imm(16), to, to)
		return
	}
	VPMOVZXWD(next, temp)
	VPSLLD(Imm(16), temp, temp)
	VPORD(temp, to, to)
}

// panels splits rows into panels of two vectors:
//
//	for p := range k {
//		for j := range n {
//			dst[j][p] = units of src[p][j*width:(j+1)*width]
//		}
//	}
//
// with stride bytes between the panels of dst and ld between the rows of src.
// It takes groups of eight rows panel by panel: as many streams of reading as
// the hardware follows, and whole pages of writing.
func (v *vector) panels(f form) {
	TEXT("panels"+f.String()+v.suffix, NOSPLIT, "func(dst *byte, stride int, src *byte, ld int, k int, n int)")
	Pragma("noescape")
	Load(Param("dst"), panelDst)
	Load(Param("stride"), panelStride)
	Load(Param("src"), panelSrc)
	Load(Param("ld"), panelLD)
	Load(Param("k"), panelRows)
	LEAQ(Mem{Base: panelLD, Index: panelLD, Scale: 2}, panelLD3)

	Label("groups")
	CMPQ(panelRows, Imm(group))
	JLT(LabelRef("rows"))
	v.panelRows(f, group)
	JMP(LabelRef("groups"))
	Label("rows")
	TESTQ(panelRows, panelRows)
	JZ(LabelRef("done"))
	v.panelRows(f, 1)
	JMP(LabelRef("rows"))
	Label("done")
	VZEROUPPER()
	RET()
}

// group is how many rows of units panels takes together.
const group = 8

// Registers of panels.
var (
	panelDst, panelStride = RDI, RDX
	panelSrc, panelLD     = RSI, RCX
	panelLD3              = R8 // three strides
	panelRows             = R9 // left
	panelFrom, panelTo    = RAX, RBX
	panelCount            = R10
	panelNext             = R11 // four rows below panelFrom
)

// panelRows emits the loop over the panels for a number of rows of units.
func (v *vector) panelRows(f form, rows int) {
	loop := fmt.Sprintf("panel%d", rows)
	MOVQ(panelSrc, panelFrom)
	MOVQ(panelDst, panelTo)
	Load(Param("n"), panelCount)
	Label(loop)
	v.panel(f, rows)
	ADDQ(Imm(uint64(v.unitStep(f))), panelFrom)
	ADDQ(panelStride, panelTo)
	DECQ(panelCount)
	JNZ(LabelRef(loop))
	for range rows * f.rows() {
		ADDQ(panelLD, panelSrc)
	}
	ADDQ(U32(uint32(rows*2*v.bytes)), panelDst)
	SUBQ(Imm(uint64(rows)), panelRows)
}

// unitStep is the bytes of a row of src that make a row of a panel.
func (v *vector) unitStep(f form) int { return 2 * v.bytes / 4 * f.elementBytes() }

// panel copies rows of units of one panel.
func (v *vector) panel(f form, rows int) {
	at := panelFrom
	for r := range rows {
		if e := r * f.rows(); e > 0 && e%4 == 0 {
			LEAQ(Mem{Base: at, Index: panelLD, Scale: 4}, panelNext)
			at = panelNext
		}
		for i := range 2 {
			m, next := rowOf(at, r*f.rows()%4), rowOf(at, r*f.rows()%4+1)
			m.Disp, next.Disp = i*v.unitStep(f)/2, i*v.unitStep(f)/2
			x := v.reg[(2*r+i)%4]
			v.loadUnits(f, m, next, x, v.reg[4+i])
			VMOVUPS(x, Mem{Base: panelTo, Disp: (2*r + i) * v.bytes})
		}
	}
}

// rowOf is the address of row r, at most 3, below base.
func rowOf(base GPPhysical, r int) Mem {
	switch r {
	case 0:
		return Mem{Base: base}
	case 3:
		return Mem{Base: base, Index: panelLD3, Scale: 1}
	default:
		return Mem{Base: base, Index: panelLD, Scale: uint8(r)}
	}
}

// transpose turns a strip of as many rows of units as a vector has lanes:
//
//	for c := range n*lanes {
//		for r := range lanes {
//			dst[c][r] = unit (r, c) of src
//		}
//	}
func (v *vector) transpose(f form) {
	TEXT("transpose"+f.String()+v.suffix, NOSPLIT, "func(dst *byte, dstLD int, src *byte, srcLD int, n int)")
	Pragma("noescape")
	dst, dstLD := Load(Param("dst"), RDI), Load(Param("dstLD"), RDX)
	src, ld := Load(Param("src"), RSI), Load(Param("srcLD"), RCX)
	n := Load(Param("n"), R8)
	lanes := v.bytes / 4
	row := RAX

	Label("block")
	MOVQ(src, row)
	for r := range lanes {
		m := Mem{Base: row}
		PREFETCHT0(Mem{Base: row, Disp: 4 * lanes * f.elementBytes()})
		v.loadUnits(f, m, Mem{Base: row, Index: ld, Scale: 1}, v.reg[r], v.reg[lanes])
		for range f.rows() {
			if r+1 < lanes {
				ADDQ(ld, row)
			}
		}
	}
	var out []VecPhysical
	if v.bytes == 64 {
		out = transpose16(v.reg[:16], v.reg[16:32])
	} else {
		out = transpose8(v.reg[:8], v.reg[8:16])
	}
	for _, r := range out {
		VMOVUPS(r, Mem{Base: dst})
		ADDQ(dstLD, dst)
	}
	ADDQ(Imm(uint64(lanes*f.elementBytes())), src)
	DECQ(n)
	JNZ(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// quads transposes the four-by-four blocks in the 128-bit lanes of four
// vectors x; y is scratch. The result is in x.
func quads(x, y []VecPhysical) {
	VUNPCKLPS(x[1], x[0], y[0])
	VUNPCKHPS(x[1], x[0], y[1])
	VUNPCKLPS(x[3], x[2], y[2])
	VUNPCKHPS(x[3], x[2], y[3])
	VUNPCKLPD(y[2], y[0], x[0])
	VUNPCKHPD(y[2], y[0], x[1])
	VUNPCKLPD(y[3], y[1], x[2])
	VUNPCKHPD(y[3], y[1], x[3])
}

// transpose16 transposes sixteen vectors of sixteen units.
func transpose16(x, y []VecPhysical) []VecPhysical {
	for q := 0; q < 16; q += 4 {
		quads(x[q:q+4], y[q:q+4])
	}
	// Vector 4q+i now has, in lane l, units 4q..4q+3 of column 4l+i.
	out := make([]VecPhysical, 16)
	for i := range 4 {
		a, b, c, d := x[i], x[4+i], x[8+i], x[12+i]
		ab02, ab13, cd02, cd13 := y[4*i], y[4*i+1], y[4*i+2], y[4*i+3]
		VSHUFF32X4(Imm(0x88), b, a, ab02)
		VSHUFF32X4(Imm(0xdd), b, a, ab13)
		VSHUFF32X4(Imm(0x88), d, c, cd02)
		VSHUFF32X4(Imm(0xdd), d, c, cd13)
		VSHUFF32X4(Imm(0x88), cd02, ab02, a) // lane 0
		VSHUFF32X4(Imm(0x88), cd13, ab13, b) // lane 1
		VSHUFF32X4(Imm(0xdd), cd02, ab02, c) // lane 2
		VSHUFF32X4(Imm(0xdd), cd13, ab13, d) // lane 3
		out[i], out[4+i], out[8+i], out[12+i] = a, b, c, d
	}
	return out
}

// transpose8 transposes eight vectors of eight units.
func transpose8(x, y []VecPhysical) []VecPhysical {
	quads(x[:4], y[:4])
	quads(x[4:], y[4:])
	out := make([]VecPhysical, 8)
	for i := range 4 {
		VPERM2F128(Imm(0x20), x[4+i], x[i], y[i])
		VPERM2F128(Imm(0x31), x[4+i], x[i], y[4+i])
		out[i], out[4+i] = y[i], y[4+i]
	}
	return out
}
