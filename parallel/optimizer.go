package parallel

import (
	"fmt"

	"carve/nn"
	"carve/optim"
	"carve/plan"
)

// reduceMode is when gradients are summed.
func reduceMode(r plan.Reduce) optim.Mode {
	if r == plan.Naive {
		return optim.Naive
	}
	return optim.Bucketed
}

// newOptimizer makes the optimizer that the plan names.
func newOptimizer(r *nn.Rank, m *nn.Model, o plan.Optimizer) (optim.Optimizer, error) {
	adamw := optim.AdamWOptions{Beta1: o.Beta1, Beta2: o.Beta2, Epsilon: o.Epsilon, Decay: o.WeightDecay}
	switch o.Name {
	case plan.AdamW:
		return optim.NewAdamW(r, m, adamw), nil
	case plan.Muon:
		return optim.NewMuon(r, m, optim.MuonOptions{Momentum: o.Momentum, Decay: o.WeightDecay, Rest: adamw})
	case plan.SGD:
		return optim.NewSGD(r, m, optim.SGDOptions{Momentum: o.Momentum, Decay: o.WeightDecay}), nil
	}
	panic(fmt.Sprintf("parallel: optimizer %d is not known", uint8(o.Name)))
}
