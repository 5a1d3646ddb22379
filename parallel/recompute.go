package parallel

import (
	"carve/nn"
	"carve/plan"
)

// recomputeOf is what of every block is computed again.
func recomputeOf(c plan.Recompute) func(block int) nn.Recompute {
	return func(block int) nn.Recompute {
		switch c.Kind {
		case plan.Selective:
			return nn.Selective
		case plan.FullBlock:
			return nn.FullBlock
		case plan.Periodic:
			if block%c.Every == 0 {
				return nn.FullBlock
			}
		case plan.KeepAll:
		}
		return nn.KeepAll
	}
}
