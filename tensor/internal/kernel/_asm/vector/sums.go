package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// sums are the kernels of Sums.
var sums = []kernel{
	{name: "sum", runs: floats("x"), results: []result{{"s", sum64}}, unroll: 2, body: func(v *vectors) {
		low, high := v.doubles(v.load("x"))
		f := v.folds["s"][2*v.copy:]
		VADDPD(low, f[0], f[0])
		VADDPD(high, f[1], f[1])
	}},
	{name: "sumSquares", runs: floats("x"), results: []result{{"s", sum64}}, unroll: 2, body: func(v *vectors) {
		low, high := v.doubles(v.load("x"))
		f := v.folds["s"][2*v.copy:]
		VFMADD231PD(low, low, f[0])
		VFMADD231PD(high, high, f[1])
	}},
	{name: "dot", runs: floats("x y"), results: []result{{"s", sum}}, unroll: 4, body: func(v *vectors) {
		v.dotInto("s", v.load("x"), v.load("y"))
	}},
	{name: "largest", runs: floats("x"), results: []result{{"m", most}}, consts: []string{"minusInf"}, unroll: 4, body: func(v *vectors) {
		v.largest("m", v.loadOr("x", "minusInf"))
	}},
	{name: "largestBits", runs: floats("x"), results: []result{{"m", mostBits}}, consts: []string{"absolute"}, unroll: 4, body: func(v *vectors) {
		x := v.load("x")
		v.and(x, v.c("absolute"))
		f := v.folds["m"][v.copy]
		VPMAXUD(x, f, f)
	}},
}

// doubles is x in float64, in two vectors.
func (v *vectors) doubles(x VecVirtual) (low, high VecVirtual) {
	low, high = v.vector(), v.vector()
	if v.lanes == 16 {
		a, b := YMM(), YMM()
		VEXTRACTF64X4(Imm(0), x, a)
		VEXTRACTF64X4(Imm(1), x, b)
		VCVTPS2PD(a, low)
		VCVTPS2PD(b, high)
		return low, high
	}
	a, b := XMM(), XMM()
	VEXTRACTF128(Imm(0), x, a)
	VEXTRACTF128(Imm(1), x, b)
	VCVTPS2PD(a, low)
	VCVTPS2PD(b, high)
	return low, high
}

// largest takes x into a maximum.
func (v *vectors) largest(name string, x VecVirtual) {
	f := v.folds[name][v.copy]
	VMAXPS(x, f, f)
}

// loadOr is load with a constant in the lanes beyond the rest.
func (v *vectors) loadOr(name, other string) VecVirtual {
	if v.mask == nil {
		return v.load(name)
	}
	if v.lanes == 16 {
		r := v.move(v.c(other))
		VMOVUPS(v.address(name), v.mask, r)
		return r
	}
	x, r := v.load(name), v.reg(other)
	VBLENDVPS(v.mask, x, r, r)
	return r
}

// and makes x &= bits.
func (v *vectors) and(x VecVirtual, bits Op) {
	if v.lanes == 16 {
		VPANDD(bits, x, x)
		return
	}
	VANDPS(bits, x, x)
}
