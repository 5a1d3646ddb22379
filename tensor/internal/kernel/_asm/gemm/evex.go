package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// vdpbf16ps emits acc += a·b over pairs of bf16, for zmm registers. Go's
// assembler does not know the instruction, so its bytes are written out:
// EVEX.512.F3.0F38.W0 52 /r (Intel SDM, VDPBF16PS), with acc as ModRM.reg, b as
// vvvv and a as ModRM.rm. The fields R, X, B, R', vvvv and V' are stored
// inverted.
func vdpbf16ps(a, b, acc VecPhysical) {
	d, s, m := int(acc.PhysicalIndex()), int(b.PhysicalIndex()), int(a.PhysicalIndex())
	p0 := not(d>>3)<<7 | not(m>>4)<<6 | not(m>>3)<<5 | not(d>>4)<<4 | 2 // map 0F38
	p1 := (^s&15)<<3 | 4 | 2                                            // W0, prefix F3
	p2 := 2<<5 | not(s>>4)<<3                                           // 512 bits, no mask
	bytes(0x62, p0, p1, p2, 0x52, 0xc0|d&7<<3|m&7)
}

// not is the lowest bit of x, inverted.
func not(x int) int { return ^x & 1 }

func bytes(values ...int) {
	for _, v := range values {
		Instruction(&ir.Instruction{Opcode: "BYTE", Operands: []Op{Imm(uint64(v))}})
	}
}
