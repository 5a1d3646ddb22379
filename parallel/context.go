package parallel

import (
	"carve/mesh"
	"carve/nn"
	"carve/plan"
)

// contextOf is how attention works over the context axis.
func contextOf(c plan.Context) (o nn.Context) {
	switch c.Balance {
	case plan.Zigzag:
		o.Balance = mesh.Zigzag
	case plan.Contiguous:
		o.Balance = mesh.Contiguous
	}
	switch c.Kind {
	case plan.Ring, plan.AllGather, plan.AllToAll:
		o.Kind = nn.ContextRing
	}
	return o
}
