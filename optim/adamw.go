package optim

import (
	"math"

	"carve/nn"
	"carve/tensor"
)

// AdamWOptions are the constants of AdamW (Loshchilov and Hutter, arXiv 1711.05101). Zero values mean 0.9, 0.95,
// 1e-8, and no decay.
type AdamWOptions struct {
	Beta1, Beta2, Epsilon float64
	Decay                 float64 // of the parameters whose Decay is set
}

func (o AdamWOptions) withDefaults() AdamWOptions {
	if o.Beta1 == 0 {
		o.Beta1 = 0.9
	}
	if o.Beta2 == 0 {
		o.Beta2 = 0.95
	}
	if o.Epsilon == 0 {
		o.Epsilon = 1e-8
	}
	return o
}

func (o AdamWOptions) check(*nn.Rank, Options) error { return nil }

func (o AdamWOptions) whole(*nn.Param) bool { return false }

func (o AdamWOptions) kinds(*nn.Param) []StateKind { return []StateKind{First, Second} }

func (o AdamWOptions) update(r *nn.Rank, s *slot, c change) {
	o = o.withDefaults()
	op := tensor.AdamW{
		Rate: c.rate, Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Epsilon, GradScale: c.scale,
		Correct1: 1 - math.Pow(o.Beta1, float64(c.step)),
		Correct2: 1 - math.Pow(o.Beta2, float64(c.step)),
		Master:   s.master, M: s.moments[0], V: s.moments[1], Grad: s.grad, Param: s.copyOut(),
	}
	if s.decay {
		op.Decay = o.Decay
	}
	r.Dev.AdamW(op)
}

// AdamW is Adam with decoupled weight decay.
type AdamW struct {
	options AdamWOptions
	memory  *memory
	steps   int
}

// NewAdamW makes the optimizer of all parameters of a model, which must have their values.
func NewAdamW(r *nn.Rank, m *nn.Model, o AdamWOptions) *AdamW {
	return newAdamW(r, m, o, func(*nn.Param) bool { return true })
}

// newAdamW makes the optimizer of the chosen parameters.
func newAdamW(r *nn.Rank, m *nn.Model, o AdamWOptions, choose func(*nn.Param) bool) *AdamW {
	spans := spansOf(m.Params(), choose, sameDecay)
	return &AdamW{options: o.withDefaults(), memory: newMemory(r, m, []StateKind{First, Second}, spans)}
}

// Step implements [Optimizer].
func (a *AdamW) Step(rate, scale float64) {
	a.steps++
	o := a.options
	op := tensor.AdamW{
		Rate: rate, Beta1: o.Beta1, Beta2: o.Beta2, Eps: o.Epsilon, GradScale: scale,
		Correct1: 1 - math.Pow(o.Beta1, float64(a.steps)),
		Correct2: 1 - math.Pow(o.Beta2, float64(a.steps)),
	}
	for i := range a.memory.slots {
		s := &a.memory.slots[i]
		op.Master, op.M, op.V, op.Grad, op.Param = s.master, s.moments[0], s.moments[1], s.grad, s.copyOut()
		op.Decay = 0
		if s.decay {
			op.Decay = o.Decay
		}
		a.memory.r.Dev.AdamW(op)
	}
}

// Steps implements [Optimizer].
func (a *AdamW) Steps() int { return a.steps }

// States implements [Optimizer].
func (a *AdamW) States() []Entry { return a.memory.state }

// Restore implements [Optimizer].
func (a *AdamW) Restore(steps int) {
	a.steps = steps
	a.memory.publish()
}
