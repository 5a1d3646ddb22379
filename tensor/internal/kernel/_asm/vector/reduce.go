package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// reduction sums runs in their order, in registers, and writes every destination:
//
//	for i := range n {
//		s := srcs[0][i]
//		for _, x := range srcs[1:] { s += x[i] }
//		for _, d := range dsts { d[i] = s / divisor }
//	}
//
// The runs are given by their slice headers. n is a multiple of the lanes.
type reduction struct {
	name string
	bf16 bool
}

var reductions = []reduction{{"reduceSum", false}, {"reduceSumBF16", true}}

const sliceHeader = 24 // bytes

// reducer is the state of a reduction while it is written.
type reducer struct {
	*vectors
	reduction
	dsts, srcs Register // first slice headers
	nd, ns     Register
	header     Register
	more       Register // headers left
	divisor    Op
}

func (k reduction) generate(i isa) {
	t := "*[]float32"
	if k.bf16 {
		t = "*[]uint16"
	}
	TEXT(k.name+i.suffix, NOSPLIT, "func(n int, dsts "+t+", nd int, srcs "+t+", ns int, divisor float32)")
	Pragma("noescape")
	v := &vectors{
		kernel: &kernel{name: k.name, consts: []string{"unit", "roundHalf", "quiet"}}, isa: i,
		bases: map[string]Register{}, scalar: map[string]Op{},
	}
	if !k.bf16 {
		v.consts = nil
	}
	r := &reducer{vectors: v, reduction: k}
	r.prologue()
	r.blocks("unrolled", 4)
	r.blocks("single", 1)
	VZEROUPPER()
	RET()
}

func (r *reducer) prologue() {
	r.constants()
	r.left = Load(Param("n"), GP64())
	r.dsts, r.nd = Load(Param("dsts"), GP64()), Load(Param("nd"), GP64())
	r.srcs, r.ns = Load(Param("srcs"), GP64()), Load(Param("ns"), GP64())
	r.divisor = r.broadcast("divisor")
	index := GP64()
	XORQ(index, index)
	r.index = index
	r.header, r.more = GP64(), GP64()
}

// element is where vector i of the run of the current header begins.
func (r *reducer) element(base Register, i int) Mem {
	size := 4
	if r.bf16 {
		size = 2
	}
	return Mem{Base: base, Index: r.index, Scale: uint8(size), Disp: i * r.lanes * size}
}

// get loads vector i.
func (r *reducer) get(base Register, i int) VecVirtual {
	x := r.vector()
	if !r.bf16 {
		VMOVUPS(r.element(base, i), x)
		return x
	}
	VPMOVZXWD(r.element(base, i), x)
	VPSLLD(Imm(16), x, x)
	return x
}

// blocks does n vectors at a time for as long as there are as many.
func (r *reducer) blocks(name string, n int) {
	step := Imm(uint64(n * r.lanes))
	SUBQ(step, r.left)
	JL(LabelRef(name + "End"))
	Label(name)
	base := GP64()
	MOVQ(Mem{Base: r.srcs}, base)
	var acc []VecVirtual
	for i := range n {
		acc = append(acc, r.get(base, i))
	}
	r.eachHeader(name+"Add", r.srcs, r.ns, 1, func(base Register) {
		for i, a := range acc {
			if r.bf16 {
				VADDPS(r.get(base, i), a, a)
			} else {
				VADDPS(r.element(base, i), a, a)
			}
		}
	})
	r.divide(name, acc)
	if r.bf16 {
		for _, a := range acc {
			r.roundHalf(a)
		}
	}
	r.eachHeader(name+"Store", r.dsts, r.nd, 0, func(base Register) {
		for i, a := range acc {
			r.put(base, i, a)
		}
	})
	ADDQ(step, r.index)
	SUBQ(step, r.left)
	JGE(LabelRef(name))
	Label(name + "End")
	ADDQ(step, r.left)
}

// eachHeader runs body with the base of every run from the given one on.
func (r *reducer) eachHeader(name string, first, count Register, from int, body func(base Register)) {
	MOVQ(count, r.more)
	SUBQ(Imm(uint64(from)), r.more)
	JLE(LabelRef(name + "End"))
	LEAQ(Mem{Base: first, Disp: from * sliceHeader}, r.header)
	Label(name)
	base := GP64()
	MOVQ(Mem{Base: r.header}, base)
	body(base)
	ADDQ(Imm(sliceHeader), r.header)
	DECQ(r.more)
	JNZ(LabelRef(name))
	Label(name + "End")
}

// divide divides unless the divisor is 1.
func (r *reducer) divide(name string, acc []VecVirtual) {
	bits := GP32()
	b, err := Param("divisor").Resolve()
	if err != nil {
		panic(err)
	}
	MOVL(b.Addr, bits)
	CMPL(bits, Imm(0x3f800000))
	JEQ(LabelRef(name + "Divided"))
	for _, a := range acc {
		VDIVPS(r.divisor, a, a)
	}
	Label(name + "Divided")
}

// put stores vector i.
func (r *reducer) put(base Register, i int, a VecVirtual) {
	switch {
	case !r.bf16:
		VMOVUPS(a, r.element(base, i))
	case r.lanes == 16:
		VPMOVDW(a, r.element(base, i))
	default:
		low := XMM()
		VEXTRACTI128(Imm(0), a, low)
		VMOVDQU(low, r.element(base, i))
	}
}
