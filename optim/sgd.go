package optim

import (
	"carve/nn"
	"carve/tensor"
)

// SGDOptions are the constants of SGD.
type SGDOptions struct {
	Momentum float64 // 0 means none, and no state
	Decay    float64 // of the parameters whose Decay is set
}

func (o SGDOptions) check(*nn.Rank, Options) error { return nil }

func (o SGDOptions) whole(*nn.Param) bool { return false }

func (o SGDOptions) kinds(*nn.Param) []StateKind {
	if o.Momentum == 0 {
		return nil
	}
	return []StateKind{Momentum}
}

func (o SGDOptions) update(r *nn.Rank, s *slot, c change) {
	op := tensor.SGD{
		Rate: c.rate, Momentum: o.Momentum, GradScale: c.scale,
		Master: s.master, Grad: s.grad, Param: s.copyOut(),
	}
	if len(s.moments) > 0 {
		op.M = s.moments[0]
	}
	if s.decay {
		op.Decay = o.Decay
	}
	r.Dev.SGD(op)
}

// SGD is stochastic gradient descent with momentum.
type SGD struct {
	options SGDOptions
	memory  *memory
	steps   int
}

// NewSGD makes the optimizer of all parameters of a model, which must have their values.
func NewSGD(r *nn.Rank, m *nn.Model, o SGDOptions) *SGD {
	var kinds []StateKind
	if o.Momentum != 0 {
		kinds = []StateKind{Momentum}
	}
	spans := spansOf(m.Params(), func(*nn.Param) bool { return true }, sameDecay)
	return &SGD{options: o, memory: newMemory(r, m, kinds, spans)}
}

// Step implements [Optimizer].
func (a *SGD) Step(rate, scale float64) {
	a.steps++
	op := tensor.SGD{Rate: rate, Momentum: a.options.Momentum, GradScale: scale}
	for i := range a.memory.slots {
		s := &a.memory.slots[i]
		op.Master, op.Grad, op.Param, op.M = s.master, s.grad, s.copyOut(), nil
		if len(s.moments) > 0 {
			op.M = s.moments[0]
		}
		op.Decay = 0
		if s.decay {
			op.Decay = a.options.Decay
		}
		a.memory.r.Dev.SGD(op)
	}
}

// Steps implements [Optimizer].
func (a *SGD) Steps() int { return a.steps }

// States implements [Optimizer].
func (a *SGD) States() []Entry { return a.memory.state }

// Restore implements [Optimizer].
func (a *SGD) Restore(steps int) {
	a.steps = steps
	a.memory.publish()
}
