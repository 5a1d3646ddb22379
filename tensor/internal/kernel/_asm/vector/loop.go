package main

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set that kernels are written in.
type isa struct {
	suffix string
	lanes  int // fp32 numbers in a vector
}

var (
	avx2   = isa{"AVX2", 8}
	avx512 = isa{"AVX512", 16}
)

// kernel is a loop over runs of fp32 numbers. The generator unrolls it, and adds a loop over single vectors and
// a masked rest.
type kernel struct {
	name    string
	runs    []run
	scalars []string // parameters that every lane sees
	results []result // Σ or max over the elements
	consts  []string // names in the table of constants
	unroll  int
	body    func(v *vectors)
}

// run is a parameter that points to elements.
type run struct {
	name string
	half bool // bf16
}

// result is a returned number that starts from a value and takes in every vector.
type result struct {
	name string
	kind fold
}

type fold int

const (
	sum      fold = iota
	sum64         // Σ in float64
	most          // max
	mostBits      // max of unsigned integers
)

func floats(names string) []run {
	var r []run
	for _, n := range strings.Fields(names) {
		r = append(r, run{name: n})
	}
	return r
}

// vectors is the state of a kernel while it is written.
type vectors struct {
	*kernel
	isa
	index  Register // elements done
	left   Register // elements left
	bases  map[string]Register
	scalar map[string]Op
	folds  map[string][]VecVirtual
	mask   Op  // of the rest: a mask register or a vector; nil in the full loops
	at     int // elements past index
	copy   int // of the unrolled body
}

// vector is a new vector register.
func (v *vectors) vector() VecVirtual {
	if v.lanes == 16 {
		return ZMM()
	}
	return YMM()
}

func (k *kernel) signature() string {
	var p []string
	p = append(p, "n int")
	for _, r := range k.runs {
		t := "*float32"
		if r.half {
			t = "*uint16"
		}
		p = append(p, r.name+" "+t)
	}
	for _, s := range k.scalars {
		p = append(p, s+" float32")
	}
	var res []string
	for _, r := range k.results {
		t := "float32"
		if r.kind == sum64 {
			t = "float64"
		}
		res = append(res, r.name+" "+t)
	}
	s := "func(" + strings.Join(p, ", ") + ")"
	if len(res) > 0 {
		s += " (" + strings.Join(res, ", ") + ")"
	}
	return s
}

// generate writes the kernel for one instruction set.
func (k *kernel) generate(i isa) {
	TEXT(k.name+i.suffix, NOSPLIT, k.signature())
	Pragma("noescape")
	v := &vectors{kernel: k, isa: i, bases: map[string]Register{}, scalar: map[string]Op{}, folds: map[string][]VecVirtual{}}
	v.prologue()
	v.loop("unrolled", k.unroll)
	if k.unroll > 1 {
		v.loop("single", 1)
	}
	v.rest()
	v.epilogue()
}

func (v *vectors) prologue() {
	v.left = Load(Param("n"), GP64())
	index := GP64()
	XORQ(index, index)
	v.index = index
	for _, r := range v.runs {
		v.bases[r.name] = Load(Param(r.name), GP64())
	}
	for _, s := range v.scalars {
		v.scalar[s] = v.broadcast(s)
	}
	v.constants()
	for _, r := range v.results {
		for range v.unroll {
			v.folds[r.name] = append(v.folds[r.name], v.start(r.kind))
			if r.kind == sum64 {
				v.folds[r.name] = append(v.folds[r.name], v.start(r.kind))
			}
		}
	}
}

// constants puts those of the kernel into registers, where there are enough.
func (v *vectors) constants() {
	if v.lanes != 16 {
		return
	}
	for _, c := range v.consts {
		r := v.vector()
		VBROADCASTSS(constant(c), r)
		v.scalar[c] = r
	}
}

func (v *vectors) broadcast(param string) Op {
	b, err := Param(param).Resolve()
	if err != nil {
		panic(err)
	}
	r := v.vector()
	VBROADCASTSS(b.Addr, r)
	return r
}

// start is a register with the neutral element of a fold.
func (v *vectors) start(f fold) VecVirtual {
	r := v.vector()
	switch {
	case f == most:
		VBROADCASTSS(constant("minusInf"), r)
	case v.lanes == 16:
		VPXORD(r, r, r)
	default:
		VXORPS(r, r, r)
	}
	return r
}

// loop writes n copies of the body for as long as n vectors are left.
func (v *vectors) loop(name string, n int) {
	step := n * v.lanes
	SUBQ(Imm(uint64(step)), v.left)
	JL(LabelRef(name + "End"))
	Label(name)
	for c := range n {
		v.copy, v.at = c, c*v.lanes
		v.body(v)
	}
	ADDQ(Imm(uint64(step)), v.index)
	SUBQ(Imm(uint64(step)), v.left)
	JGE(LabelRef(name))
	Label(name + "End")
	ADDQ(Imm(uint64(step)), v.left)
	v.copy, v.at = 0, 0
}

// rest writes the body for the elements that do not fill a vector. AVX2 cannot mask bf16; there the caller sees to it
// that none are left.
func (v *vectors) rest() {
	if v.lanes == 8 && v.anyHalf() {
		return
	}
	CMPQ(v.left, Imm(0))
	JEQ(LabelRef("done"))
	if v.lanes == 16 {
		bits, ones := GP32(), GP32()
		MOVL(U32(1), ones)
		SHLXL(v.left.(GPVirtual).As32(), ones, bits)
		DECL(bits)
		k := K()
		KMOVW(bits, k)
		v.mask = k
	} else {
		// Eight ones and eight zeros: from the element left before the zeros on.
		t, m := GP64(), YMM()
		LEAQ(maskTable(), t)
		SHLQ(Imm(2), v.left)
		SUBQ(v.left, t)
		VMOVDQU(Mem{Base: t, Disp: 32}, m)
		v.mask = m
	}
	v.body(v)
	v.mask = nil
	Label("done")
}

// epilogue folds the lanes and returns.
func (v *vectors) epilogue() {
	for _, r := range v.results {
		v.finish(r)
	}
	VZEROUPPER()
	RET()
}

// finish stores the fold of all lanes of all copies.
func (v *vectors) finish(r result) {
	f := v.folds[r.name]
	op := v.folder(r.kind)
	for len(f) > 1 {
		half := (len(f) + 1) / 2
		for i := half; i < len(f); i++ {
			op(f[i], f[i-half], f[i-half])
		}
		f = f[:half]
	}
	x, y := XMM(), XMM()
	if v.lanes == 16 {
		high := YMM()
		VEXTRACTF64X4(Imm(1), f[0], high)
		low := YMM()
		VEXTRACTF64X4(Imm(0), f[0], low)
		op(high, low, low)
		VEXTRACTF128(Imm(1), low, y)
		VEXTRACTF128(Imm(0), low, x)
	} else {
		VEXTRACTF128(Imm(1), f[0], y)
		VEXTRACTF128(Imm(0), f[0], x)
	}
	op(y, x, x)
	VPERMILPD(Imm(1), x, y)
	op(y, x, x)
	if r.kind != sum64 {
		VMOVSHDUP(x, y)
		op(y, x, x)
	}
	Store(x, Return(r.name))
}

func (v *vectors) folder(f fold) func(...Op) {
	switch f {
	case sum64:
		return VADDPD
	case most:
		return VMAXPS
	case mostBits:
		return VPMAXUD
	}
	return VADDPS
}

func (v *vectors) anyHalf() bool {
	return slices.ContainsFunc(v.runs, func(r run) bool { return r.half })
}

// half reports whether a run is of bf16.
func (v *vectors) half(name string) bool {
	for _, r := range v.runs {
		if r.name == name {
			return r.half
		}
	}
	panic(fmt.Sprintf("%s: no run %s", v.name, name))
}

// address is where the vector of a run begins.
func (v *vectors) address(name string) Mem {
	size := 4
	if v.half(name) {
		size = 2
	}
	return Mem{Base: v.bases[name], Index: v.index, Scale: uint8(size), Disp: v.at * size}
}
