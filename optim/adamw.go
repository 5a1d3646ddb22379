package optim

import (
	"math"

	"carve/nn"
	"carve/tensor"
)

// AdamWOptions are the constants of AdamW: Adam with decoupled weight decay (Loshchilov and Hutter, arXiv 1711.05101).
// Zero values mean 0.9, 0.95, 1e-8, and no decay.
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
