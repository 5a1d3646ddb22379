package parallel

import (
	"carve/nn"
	"carve/plan"
)

// expertsOf says how a mixture of experts runs.
func expertsOf(x plan.Experts) nn.ExpertOptions {
	o := nn.ExpertOptions{Tensor: x.Tensor, BiasRate: x.Rate}
	if x.Dispatch == plan.Dropping {
		o.Capacity = x.Capacity
	}
	switch x.Balance {
	case plan.ModelBalance:
		o.Balance = nn.AsDescribed
	case plan.NoBalance:
		o.Balance = nn.Unbalanced
	case plan.LossBalance:
		o.Balance = nn.ByLoss
	case plan.BiasBalance:
		o.Balance = nn.ByBias
	}
	return o
}
