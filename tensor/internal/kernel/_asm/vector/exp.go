package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// expConstants are what exp uses.
var expConstants = []string{"expLow", "expHigh", "log2e", "ln2High", "ln2Low", "e6", "e5", "e4", "e3", "e2", "one"}

// exp is eˣ to within 2 units of the last place, from the largest number to the smallest denormal; NaN stays NaN.
// x = n·ln 2 + r with |r| ≤ ln 2/2, so that eˣ = 2ⁿ·eʳ. x is changed.
func (v *vectors) exp(x VecVirtual) VecVirtual {
	// A NaN in x is the second operand, which the instructions return.
	low, high := v.vector(), v.vector()
	VMOVUPS(v.c("expLow"), low)
	VMAXPS(x, low, x)
	VMOVUPS(v.c("expHigh"), high)
	VMINPS(x, high, x)
	n := v.mul(v.c("log2e"), x)
	v.round(n)
	v.subMul(x, v.c("ln2High"), n)
	v.subMul(x, v.c("ln2Low"), n)
	p := v.move(v.c("e6"))
	for _, c := range []string{"e5", "e4", "e3", "e2", "one", "one"} {
		v.mulAdd(p, x, v.c(c))
	}
	return v.scale2(p, n)
}

// round makes x an integer.
func (v *vectors) round(x VecVirtual) {
	if v.lanes == 16 {
		VRNDSCALEPS(Imm(8), x, x) // to nearest, no exceptions
		return
	}
	VROUNDPS(Imm(8), x, x)
}

// scale2 is p·2ⁿ. AVX2 multiplies by two powers, because 2ⁿ alone may be too small or too large for a number.
func (v *vectors) scale2(p, n VecVirtual) VecVirtual {
	if v.lanes == 16 {
		VSCALEFPS(n, p, p)
		return p
	}
	half := v.vector()
	VCVTPS2DQ(n, n)
	VPSRAD(Imm(1), n, half)
	VPSUBD(half, n, n)
	for _, e := range []VecVirtual{half, n} {
		VPADDD(v.c("exponentBias"), e, e)
		VPSLLD(Imm(23), e, e)
		VMULPS(e, p, p)
	}
	return p
}

// sigmoid is 1/(1+exp(-x)); x is kept.
func (v *vectors) sigmoid(x VecVirtual) VecVirtual {
	zero := v.zero()
	e := v.exp(v.sub(x, zero))
	one := v.reg("one")
	VADDPS(one, e, e)
	return v.div(e, one)
}

// zero is a register of zeros.
func (v *vectors) zero() VecVirtual { return v.start(sum) }
