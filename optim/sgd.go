package optim

import (
	"carve/nn"
	"carve/tensor"
)

// SGDOptions are the constants of stochastic gradient descent with momentum.
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
