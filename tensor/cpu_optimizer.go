package tensor

import (
	"sync/atomic"

	"carve/tensor/internal/kernel"
)

// AdamW implements [OptimizerDevice] in one pass over memory.
func (c *CPU) AdamW(op AdamW) {
	const name = "adamw"
	sameLen(name, op.M, op.Master)
	sameLen(name, op.V, op.Master)
	checkStep(name, op.Master, op.Grad, op.Param)
	step := kernel.AdamStep{
		Rate: op.Rate, Beta1: op.Beta1, Beta2: op.Beta2, Eps: op.Eps, Decay: op.Decay,
		Correct1: 1 / op.Correct1, Correct2: 1 / op.Correct2, GradScale: op.GradScale,
	}
	call := stepCall{kind: adamW, master: op.Master, m: op.M, v: op.V, grad: op.Grad, param: op.Param, adam: step}
	c.optimise(call)
}

// SGD implements [OptimizerDevice].
func (c *CPU) SGD(op SGD) {
	const name = "sgd"
	if op.M != nil {
		sameLen(name, op.M, op.Master)
	}
	checkStep(name, op.Master, op.Grad, op.Param)
	step := kernel.SGDStep{Rate: op.Rate, Momentum: op.Momentum, Decay: op.Decay, GradScale: op.GradScale}
	c.optimise(stepCall{kind: sgd, master: op.Master, m: op.M, grad: op.Grad, param: op.Param, sgd: step})
}

func checkStep(name string, master, grad, param *Tensor) {
	sameLen(name, grad, master)
	if param != nil {
		sameLen(name, param, master)
	}
}

type stepKind uint8

const (
	adamW stepKind = iota
	sgd
)

// stepCall is the operands of one call.
type stepCall struct {
	kind                      stepKind
	master, m, v, grad, param *Tensor
	adam                      kernel.AdamStep
	sgd                       kernel.SGDStep
}

func (c *CPU) optimise(call stepCall) {
	if wide(call.master) {
		c.f64.step.run(&c.f64, call)
		return
	}
	c.f32.step.run(&c.f32, call)
}

// optimizerStep is the task of AdamW and SGD: block by block, so that the rounded copy is made from cache.
type optimizerStep[T kernel.Float] struct {
	spans
	kind        stepKind
	vec         kernel.Vector[T]
	p, m, v     []T
	grad, param flat[T]
	adam        kernel.AdamStep
	sgd         kernel.SGDStep
	s           scratch[T] // per worker: gradient, and momentum that nobody keeps
}

func (t *optimizerStep[T]) run(o *ops[T], call stepCall) {
	t.kind, t.vec, t.adam, t.sgd = call.kind, o.v, call.adam, call.sgd
	t.p, t.m, t.v = elementsOf[T](call.master), nil, nil
	if call.m != nil {
		t.m = elementsOf[T](call.m)
	}
	if call.v != nil {
		t.v = elementsOf[T](call.v)
	}
	t.grad, t.param = flatOf(o.v, call.grad), flatOf(o.v, call.param)
	n := call.master.Len()
	t.spans = blockSpans(n)
	t.s = o.scratch(o.c.Threads(), 2, min(n, pieceElements))
	o.c.ctx.Run(t.items(), t)
	t.s.free()
}

// Do updates the pieces of one item.
func (t *optimizerStep[T]) Do(worker, item int) {
	lo, hi := t.of(item)
	for piece := lo; piece < hi; piece++ {
		i := piece * pieceElements
		n := min(pieceElements, len(t.p)-i)
		p := t.p[i : i+n]
		g := t.grad.get(i, n, t.s.run(worker, 0))
		switch t.kind {
		case adamW:
			t.vec.AdamW(p, t.m[i:i+n], t.v[i:i+n], g, t.adam)
		case sgd:
			t.vec.SGD(p, t.momentum(worker, i, n), g, t.sgd)
		}
		t.param.store(i, p)
	}
}

// momentum is the kept momentum, or zeros.
func (t *optimizerStep[T]) momentum(worker, i, n int) []T {
	if t.m != nil {
		return t.m[i : i+n]
	}
	z := t.s.run(worker, 1)[:n]
	t.vec.Fill(z, 0)
	return z
}

// SquaredNorm implements [OptimizerDevice].
func (c *CPU) SquaredNorm(t *Tensor) float64 {
	if wide(t) {
		return c.f64.norm2.run(&c.f64, t)
	}
	return c.f32.norm2.run(&c.f32, t)
}

// squaredNorm is the task of SquaredNorm: a partial sum per item, added in order.
type squaredNorm[T kernel.Float] struct {
	spans
	v     kernel.Vector[T]
	x     flat[T]
	n     int
	parts []float64
	s     scratch[T] // per worker: a piece
}

func (t *squaredNorm[T]) run(o *ops[T], x *Tensor) float64 {
	t.v, t.x, t.n = o.v, flatOf(o.v, x), x.Len()
	t.spans = blockSpans(t.n)
	parts := o.c.f64.scratch(1, 1, t.items())
	t.parts = parts.run(0, 0)
	t.s = o.scratch(o.buffers(x), 1, min(t.n, pieceElements))
	o.c.ctx.Run(t.items(), t)
	total := 0.0
	if !o.c.dry() {
		for _, p := range t.parts[:t.items()] {
			total += p
		}
	}
	t.s.free()
	parts.free()
	return total
}

// Do sums the pieces of one item.
func (t *squaredNorm[T]) Do(worker, item int) {
	lo, hi := t.of(item)
	sum := 0.0
	for p := lo; p < hi; p++ {
		i := p * pieceElements
		sum += t.v.SumSquares(t.x.get(i, min(pieceElements, t.n-i), t.s.run(worker, 0)))
	}
	t.parts[item] = sum
}

// Finite implements [OptimizerDevice].
func (c *CPU) Finite(t *Tensor) bool {
	if wide(t) {
		return c.f64.finite.run(&c.f64, t)
	}
	return c.f32.finite.run(&c.f32, t)
}

// finiteness is the task of Finite.
type finiteness[T kernel.Float] struct {
	spans
	v   kernel.Vector[T]
	x   flat[T]
	n   int
	bad atomic.Bool
	s   scratch[T] // per worker: a piece
}

func (t *finiteness[T]) run(o *ops[T], x *Tensor) bool {
	t.v, t.x, t.n = o.v, flatOf(o.v, x), x.Len()
	t.spans = blockSpans(t.n)
	t.s = o.scratch(o.buffers(x), 1, min(t.n, pieceElements))
	t.bad.Store(false)
	o.c.ctx.Run(t.items(), t)
	t.s.free()
	return !t.bad.Load()
}

// Do looks at the pieces of one item.
func (t *finiteness[T]) Do(worker, item int) {
	lo, hi := t.of(item)
	for p := lo; p < hi && !t.bad.Load(); p++ {
		i := p * pieceElements
		if !t.v.Finite(t.x.get(i, min(pieceElements, t.n-i), t.s.run(worker, 0))) {
			t.bad.Store(true)
		}
	}
}
