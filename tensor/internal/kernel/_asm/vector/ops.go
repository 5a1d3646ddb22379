package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// load is a vector of a run; lanes beyond the rest are 0.
func (v *vectors) load(name string) VecVirtual {
	r, m := v.vector(), v.address(name)
	switch {
	case v.mask == nil:
		VMOVUPS(m, r)
	case v.lanes == 16:
		VMOVUPS_Z(m, v.mask, r)
	default:
		VMASKMOVPS(m, v.mask, r)
	}
	return r
}

// store writes a vector of a run.
func (v *vectors) store(name string, x Op) {
	m := v.address(name)
	switch {
	case v.mask == nil:
		VMOVUPS(x, m)
	case v.lanes == 16:
		VMOVUPS(x, v.mask, m)
	default:
		VMASKMOVPS(x, v.mask, m)
	}
}

// c is a constant of the table or a parameter, as an operand that may be memory in AVX2.
func (v *vectors) c(name string) Op {
	if r, ok := v.scalar[name]; ok {
		return r
	}
	if v.lanes == 16 {
		panic(v.kernel.name + " does not list constant " + name)
	}
	return constant(name)
}

// reg is a constant in a register.
func (v *vectors) reg(name string) VecVirtual {
	r := v.vector()
	VMOVUPS(v.c(name), r)
	return r
}

// Three-operand arithmetic; a may be memory.

func (v *vectors) add(a, b Op) VecVirtual { return v.binary(VADDPS, a, b) }
func (v *vectors) mul(a, b Op) VecVirtual { return v.binary(VMULPS, a, b) }

// sub is b - a.
func (v *vectors) sub(a, b Op) VecVirtual { return v.binary(VSUBPS, a, b) }

// div is b / a.
func (v *vectors) div(a, b Op) VecVirtual { return v.binary(VDIVPS, a, b) }

func (v *vectors) max(a, b Op) VecVirtual { return v.binary(VMAXPS, a, b) }
func (v *vectors) min(a, b Op) VecVirtual { return v.binary(VMINPS, a, b) }

func (v *vectors) sqrt(a Op) VecVirtual {
	r := v.vector()
	VSQRTPS(a, r)
	return r
}

func (v *vectors) binary(f func(...Op), a, b Op) VecVirtual {
	r := v.vector()
	f(a, b, r)
	return r
}

// mulAdd makes x = x·b + c; c may be memory.
func (v *vectors) mulAdd(x VecVirtual, b, c Op) VecVirtual {
	VFMADD213PS(c, b, x)
	return x
}

// addMul makes x += a·b; a may be memory.
func (v *vectors) addMul(x VecVirtual, a, b Op) VecVirtual {
	VFMADD231PS(a, b, x)
	return x
}

// subMul makes x -= a·b; a may be memory.
func (v *vectors) subMul(x VecVirtual, a, b Op) VecVirtual {
	VFNMADD231PS(a, b, x)
	return x
}

// move is a copy that may be changed.
func (v *vectors) move(a Op) VecVirtual {
	r := v.vector()
	VMOVUPS(a, r)
	return r
}

// into adds x to a sum, without the lanes beyond the rest.
func (v *vectors) into(name string, x Op) {
	f := v.folds[name][v.copy]
	switch {
	case v.mask == nil:
		VADDPS(x, f, f)
	case v.lanes == 16:
		VADDPS(x, f, v.mask, f)
	default:
		t := v.vector()
		VANDPS(x, v.mask, t)
		VADDPS(t, f, f)
	}
}

// dotInto adds a·b to a sum; lanes beyond the rest of one of them must be 0.
func (v *vectors) dotInto(name string, a, b Op) {
	f := v.folds[name][v.copy]
	VFMADD231PS(a, b, f)
}
