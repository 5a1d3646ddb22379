package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// pointwise are the kernels of Pointwise.
var pointwise = []kernel{
	{name: "fill", runs: floats("dst"), scalars: []string{"a"}, unroll: 4, body: func(v *vectors) {
		v.store("dst", v.c("a"))
	}},
	{name: "add", runs: floats("dst x"), unroll: 4, body: func(v *vectors) {
		v.store("dst", v.add(v.load("x"), v.load("dst")))
	}},
	{name: "addScaled", runs: floats("dst x"), scalars: []string{"a"}, unroll: 4, body: func(v *vectors) {
		v.store("dst", v.addMul(v.load("dst"), v.load("x"), v.c("a")))
	}},
	{name: "scale", runs: floats("dst x"), scalars: []string{"a"}, unroll: 4, body: func(v *vectors) {
		v.store("dst", v.mul(v.load("x"), v.c("a")))
	}},
	{name: "rotate", runs: floats("a b c s"), unroll: 2, body: func(v *vectors) { v.turn(VFMSUB231PS, VFMADD231PS) }},
	{name: "unrotate", runs: floats("a b c s"), unroll: 2, body: func(v *vectors) { v.turn(VFMADD231PS, VFMSUB231PS) }},
	{name: "widen", runs: []run{{"dst", false}, {"x", true}}, unroll: 4, body: func(v *vectors) {
		v.store("dst", v.loadHalf("x"))
	}},
	{
		name: "narrow", runs: []run{{"dst", true}, {"x", false}}, unroll: 2,
		consts: []string{"unit", "roundHalf", "quiet"},
		body:   func(v *vectors) { v.storeHalf("dst", v.load("x")) },
	},
}

// turn is a, b = a·c ∓ b·s, b·c ± a·s: with t = b·s and u = a·s, first makes t = a·c ∓ t and second u = b·c ± u.
func (v *vectors) turn(first, second func(...Op)) {
	a, b, c, s := v.load("a"), v.load("b"), v.load("c"), v.load("s")
	t, u := v.mul(b, s), v.mul(a, s)
	first(a, c, t)
	second(b, c, u)
	v.store("a", t)
	v.store("b", u)
}

// loadHalf expands a vector of bf16.
func (v *vectors) loadHalf(name string) VecVirtual {
	r, m := v.vector(), v.address(name)
	if v.mask == nil {
		VPMOVZXWD(m, r)
	} else {
		VPMOVZXWD_Z(m, v.mask, r)
	}
	VPSLLD(Imm(16), r, r)
	return r
}

// storeHalf stores a vector rounded to bf16. x is changed.
func (v *vectors) storeHalf(name string, x VecVirtual) {
	v.roundHalf(x)
	if v.lanes == 16 {
		v.storeWords(name, x)
		return
	}
	low := XMM()
	VEXTRACTI128(Imm(0), x, low)
	VMOVDQU(low, v.address(name))
}

// roundHalf makes x its bf16, to nearest with ties to even: it adds half a unit, less one if the last bit that stays is 0,
// and cuts. A NaN is cut and made quiet, because adding could make it an infinity. The results are the
// lower halves of the lanes in AVX-512 and the lower half of the vector in AVX2.
func (v *vectors) roundHalf(x VecVirtual) {
	cut, odd := v.vector(), v.vector()
	VPSRLD(Imm(16), x, cut)
	if v.lanes == 16 {
		k := K()
		VCMPPS(Imm(3), x, x, k) // unordered
		VPANDD(v.c("unit"), cut, odd)
		VPADDD(v.c("roundHalf"), x, x)
		VPADDD(odd, x, x)
		VPSRLD(Imm(16), x, x)
		VPORD(v.c("quiet"), cut, k, x)
		return
	}
	nan := v.vector()
	VCMPPS(Imm(3), x, x, nan)
	VPAND(v.c("unit"), cut, odd)
	VPADDD(v.c("roundHalf"), x, x)
	VPADDD(odd, x, x)
	VPSRLD(Imm(16), x, x)
	VPOR(v.c("quiet"), cut, cut)
	VPBLENDVB(nan, cut, x, x)
	VPACKUSDW(x, x, x) // words of both halves twice
	VPERMQ(Imm(0x08), x, x)
}

// storeWords stores the lower halves of 16 lanes.
func (v *vectors) storeWords(name string, x VecVirtual) {
	if v.mask == nil {
		VPMOVDW(x, v.address(name))
		return
	}
	VPMOVDW(x, v.mask, v.address(name))
}
