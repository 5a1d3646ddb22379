package main

import . "github.com/mmcloughlin/avo/reg"

func withExp(names ...string) []string {
	return append(append([]string(nil), expConstants...), names...)
}

// activations are the kernels of Activate and Softmax.
var activations = []kernel{
	{name: "swiGLU", runs: floats("y gate up"), consts: expConstants, unroll: 1, body: func(v *vectors) {
		g := v.load("gate")
		s := v.sigmoid(g)
		v.store("y", v.mul(v.load("up"), v.mul(s, g)))
	}},
	{name: "swiGLUGrad", runs: floats("dg du y dy gate up"), consts: expConstants, unroll: 1, body: func(v *vectors) {
		g := v.load("gate")
		s := v.sigmoid(g)
		d, u := v.load("dy"), v.load("up")
		silu := v.mul(s, g)
		v.store("y", v.mul(u, silu))
		v.store("du", v.mul(d, silu))
		slope := v.slope(g, s)
		v.store("dg", v.mul(slope, v.mul(s, v.mul(d, u))))
	}},
	{name: "gelu", runs: floats("y x"), consts: withExp("geluSlope", "geluCurve"), unroll: 1, body: func(v *vectors) {
		x := v.load("x")
		v.store("y", v.mul(x, v.sigmoid(v.geluArgument(x))))
	}},
	{name: "geluGrad", runs: floats("dx y dy x"), consts: withExp("geluSlope", "geluCurve", "geluCurve3"), unroll: 1, body: func(v *vectors) {
		x := v.load("x")
		s := v.sigmoid(v.geluArgument(x))
		d := v.load("dy")
		v.store("y", v.mul(x, s))
		inner := v.mul(x, x) // (argument)' = slope + 3·curve·x²
		v.mulAdd(inner, v.reg("geluCurve3"), v.c("geluSlope"))
		slope := v.slope(v.mul(inner, x), s)
		v.store("dx", v.mul(d, v.mul(slope, s)))
	}},
	{name: "exp", runs: floats("x"), scalars: []string{"shift"}, consts: expConstants, results: []result{{"s", sum}}, unroll: 2, body: func(v *vectors) {
		e := v.exp(v.sub(v.c("shift"), v.load("x")))
		v.store("x", e)
		v.into("s", e)
	}},
	{name: "sumExp", runs: floats("x"), scalars: []string{"shift"}, consts: expConstants, results: []result{{"s", sum}}, unroll: 2, body: func(v *vectors) {
		v.into("s", v.exp(v.sub(v.c("shift"), v.load("x"))))
	}},
	{name: "softmaxGrad", runs: floats("x"), scalars: []string{"shift", "scale"}, consts: expConstants, unroll: 2, body: func(v *vectors) {
		e := v.exp(v.sub(v.c("shift"), v.load("x")))
		v.store("x", v.mul(v.c("scale"), e))
	}},
}

// slope is 1 + x·(1-s).
func (v *vectors) slope(x, s VecVirtual) VecVirtual {
	return v.mulAdd(v.sub(s, v.reg("one")), x, v.c("one"))
}

// geluArgument is slope·x + curve·x³.
func (v *vectors) geluArgument(x VecVirtual) VecVirtual {
	t := v.mul(x, x)
	v.mulAdd(t, v.reg("geluCurve"), v.c("geluSlope"))
	return v.mul(x, t)
}
