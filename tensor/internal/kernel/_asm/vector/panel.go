package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// panelKernel is a kernel on rows of a panel, which is two vectors wide.
type panelKernel struct {
	name      string
	signature string
	body      func(p *panel)
	consts    []string
}

// panel is the state of a panel kernel while it is written.
type panel struct {
	*vectors
	rows Register
}

var panels = []panelKernel{
	{"panelSoftmax", "func(rows int, s *float32, top *float32, sum *float32, keep *float32)", (*panel).softmax, withExp("lowest")},
	{"panelScale", "func(rows int, x *float32, a *float32)", (*panel).scaleRows, nil},
	{"panelGrad", "func(rows int, s *float32, dp *float32, lse *float32, delta *float32, scale float32)", (*panel).grad, expConstants},
}

func (k *panelKernel) generate(i isa) {
	TEXT(k.name+i.suffix, NOSPLIT, k.signature)
	Pragma("noescape")
	v := &vectors{kernel: &kernel{name: k.name, consts: k.consts}, isa: i, bases: map[string]Register{}, scalar: map[string]Op{}}
	v.constants()
	k.body(&panel{vectors: v, rows: Load(Param("rows"), GP64())})
	VZEROUPPER()
	RET()
}

// pointer loads a parameter.
func (p *panel) pointer(name string) Register { return Load(Param(name), GP64()) }

// bytes is the size of a row.
func (p *panel) bytes() int { return 2 * 4 * p.lanes }

// pair is the two vectors at a pointer.
func (p *panel) pair(at Register) [2]VecVirtual {
	var x [2]VecVirtual
	for i := range x {
		x[i] = p.vector()
		VMOVUPS(p.part(at, i), x[i])
	}
	return x
}

func (p *panel) part(at Register, i int) Mem { return Mem{Base: at, Disp: 4 * p.lanes * i} }

// each runs body for every row, with at going from row to row from the given parameters.
func (p *panel) each(label string, params []string, body func(at []Register)) {
	var at []Register
	for _, n := range params {
		at = append(at, p.pointer(n))
	}
	left := GP64()
	MOVQ(p.rows, left)
	TESTQ(left, left)
	JZ(LabelRef(label + "End"))
	Label(label)
	body(at)
	for _, r := range at {
		ADDQ(Imm(uint64(p.bytes())), r)
	}
	DECQ(left)
	JNZ(LabelRef(label))
	Label(label + "End")
}

func (p *panel) softmax() {
	tops, sums, keeps := p.pointer("top"), p.pointer("sum"), p.pointer("keep")
	top := p.pair(tops)
	p.each("most", []string{"s"}, func(at []Register) {
		for i, t := range top {
			VMAXPS(p.part(at[0], i), t, t)
		}
	})
	sum := p.pair(sums)
	var shift [2]VecVirtual
	for i, t := range top {
		shift[i] = p.max(p.c("lowest"), t)
		old := p.vector()
		VMOVUPS(p.part(tops, i), old)
		VMOVUPS(t, p.part(tops, i))
		keep := p.exp(p.sub(shift[i], old))
		VMOVUPS(keep, p.part(keeps, i))
		VMULPS(keep, sum[i], sum[i])
	}
	p.each("exp", []string{"s"}, func(at []Register) {
		for i := range shift {
			x := p.vector()
			VMOVUPS(p.part(at[0], i), x)
			e := p.exp(p.sub(shift[i], x))
			VMOVUPS(e, p.part(at[0], i))
			VADDPS(e, sum[i], sum[i])
		}
	})
	for i, s := range sum {
		VMOVUPS(s, p.part(sums, i))
	}
}

func (p *panel) scaleRows() {
	a := p.pair(p.pointer("a"))
	p.each("row", []string{"x"}, func(at []Register) {
		for i := range a {
			VMOVUPS(p.mul(p.part(at[0], i), a[i]), p.part(at[0], i))
		}
	})
}

func (p *panel) grad() {
	lse, delta := p.pair(p.pointer("lse")), p.pair(p.pointer("delta"))
	scale := p.broadcast("scale")
	p.each("row", []string{"s", "dp"}, func(at []Register) {
		for i := range lse {
			x, d := p.vector(), p.vector()
			VMOVUPS(p.part(at[0], i), x)
			e := p.exp(p.sub(lse[i], x))
			VMOVUPS(e, p.part(at[0], i))
			VMOVUPS(p.part(at[1], i), d)
			VMOVUPS(p.mul(scale, p.mul(e, p.sub(delta[i], d))), p.part(at[1], i))
		}
	})
}
