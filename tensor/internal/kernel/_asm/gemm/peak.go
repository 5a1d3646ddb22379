package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// peaks writes loops of independent multiply-adds in registers: n turns of 12 instructions, enough to cover a latency of
// six cycles at two a cycle. What they reach is the ceiling of every kernel.
func peaks() {
	peak("peakF32AVX512", 16, func(x, y, acc VecPhysical) { VFMADD231PS(x, y, acc) })
	peak("peakF32AVX2", 8, func(x, y, acc VecPhysical) { VFMADD231PS(x, y, acc) })
	peak("peakBF16AVX512", 16, vdpbf16ps)
}

func peak(name string, lanes int, fma func(x, y, acc VecPhysical)) {
	const chains = 12
	register := func(i int) VecPhysical {
		if lanes == 16 {
			return []VecPhysical{Z0, Z1, Z2, Z3, Z4, Z5, Z6, Z7, Z8, Z9, Z10, Z11, Z12, Z13}[i]
		}
		return []VecPhysical{Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13}[i]
	}
	TEXT(name, NOSPLIT, "func(n int)")
	n := Load(Param("n"), GP64())
	for i := range chains + 2 {
		VXORPS(register(i), register(i), register(i))
	}
	Label("turn")
	for i := range chains {
		fma(register(chains), register(chains+1), register(i))
	}
	DECQ(n)
	JNZ(LabelRef("turn"))
	VZEROUPPER()
	RET()
}
