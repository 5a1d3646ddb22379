package main

// optimizers are the kernels of Optimise. Of AdamW, b1 and b2 are 1-β, c1 and c2 the bias corrections.
var optimizers = []kernel{
	{name: "adamW", runs: floats("p m v grad"), scalars: []string{"rate", "b1", "b2", "eps", "decay", "c1", "c2", "scale"}, unroll: 1, body: func(v *vectors) {
		g := v.mul(v.c("scale"), v.load("grad"))
		m := v.load("m")
		v.addMul(m, v.c("b1"), v.sub(m, g))
		v.store("m", m)
		w := v.load("v")
		v.addMul(w, v.c("b2"), v.sub(w, v.mul(g, g)))
		v.store("v", w)
		root := v.add(v.c("eps"), v.sqrt(v.mul(v.c("c2"), w)))
		p := v.load("p")
		step := v.addMul(v.div(root, v.mul(v.c("c1"), m)), v.c("decay"), p)
		v.store("p", v.subMul(p, v.c("rate"), step))
	}},
	{name: "sgd", runs: floats("p m grad"), scalars: []string{"rate", "momentum", "decay", "scale"}, unroll: 2, body: func(v *vectors) {
		m := v.mul(v.c("momentum"), v.load("m"))
		v.addMul(m, v.c("scale"), v.load("grad"))
		v.store("m", m)
		p := v.load("p")
		step := v.addMul(v.move(m), v.c("decay"), p)
		v.store("p", v.subMul(p, v.c("rate"), step))
	}},
}
