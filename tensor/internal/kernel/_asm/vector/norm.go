package main

import . "github.com/mmcloughlin/avo/build"

// norms are the kernels of Normalise.
var norms = []kernel{
	{name: "squares", runs: floats("x"), results: []result{{"s", sum}}, unroll: 4, body: func(v *vectors) {
		x := v.load("x")
		v.dotInto("s", x, x)
	}},
	{name: "total", runs: floats("x"), results: []result{{"s", sum}}, unroll: 4, body: func(v *vectors) {
		f := v.folds["s"][v.copy]
		VADDPS(v.load("x"), f, f)
	}},
	{name: "centred", runs: floats("x"), scalars: []string{"mean"}, results: []result{{"s", sum}}, unroll: 4, body: func(v *vectors) {
		d := v.sub(v.c("mean"), v.load("x"))
		v.into("s", v.mul(d, d))
	}},
	{name: "rmsApply", runs: floats("y x w"), scalars: []string{"r"}, unroll: 4, body: func(v *vectors) {
		v.store("y", v.mul(v.load("w"), v.mul(v.c("r"), v.load("x"))))
	}},
	{name: "rmsDot", runs: floats("dy w x"), results: []result{{"s", sum}}, unroll: 4, body: func(v *vectors) {
		v.dotInto("s", v.mul(v.load("dy"), v.load("w")), v.load("x"))
	}},
	{name: "rmsGrad", runs: floats("dx dw dy w x"), scalars: []string{"r", "k"}, unroll: 2, body: func(v *vectors) {
		d, x := v.load("dy"), v.load("x")
		v.store("dw", v.addMul(v.load("dw"), d, v.mul(v.c("r"), x)))
		g := v.mul(v.c("r"), v.mul(v.load("w"), d))
		v.store("dx", v.subMul(g, v.c("k"), x))
	}},
	{name: "layerApply", runs: floats("y x w b"), scalars: []string{"mean", "r"}, unroll: 4, body: func(v *vectors) {
		n := v.mul(v.c("r"), v.sub(v.c("mean"), v.load("x")))
		v.store("y", v.mulAdd(n, v.load("w"), v.load("b")))
	}},
	{name: "layerSums", runs: floats("dy w x"), scalars: []string{"mean", "r"}, results: []result{{"sum0", sum}, {"sum1", sum}}, unroll: 2, body: func(v *vectors) {
		t := v.mul(v.load("dy"), v.load("w"))
		n := v.mul(v.c("r"), v.sub(v.c("mean"), v.load("x")))
		f := v.folds["sum0"][v.copy]
		VADDPS(t, f, f)
		v.dotInto("sum1", t, n)
	}},
	{name: "layerGrad", runs: floats("dx dw db dy w x"), scalars: []string{"mean", "r", "mean0", "mean1"}, unroll: 1, body: func(v *vectors) {
		d := v.load("dy")
		n := v.mul(v.c("r"), v.sub(v.c("mean"), v.load("x")))
		v.store("dw", v.addMul(v.load("dw"), d, n))
		v.store("db", v.add(d, v.load("db")))
		t := v.sub(v.c("mean0"), v.mul(v.load("w"), d))
		v.subMul(t, v.c("mean1"), n)
		v.store("dx", v.mul(v.c("r"), t))
	}},
}
