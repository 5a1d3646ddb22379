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
	case plan.Ring:
		o.Kind = nn.ContextRing
	case plan.AllGather:
		o.Kind = nn.ContextAllGather
	case plan.AllToAll:
		o.Kind = nn.ContextAllToAll
	}
	return o
}

// tensorKindOf is how layers split their features over the tensor axis.
func tensorKindOf(k plan.TensorKind) (kind nn.TensorKind) {
	switch k {
	case plan.Megatron:
		kind = nn.TensorMegatron
	case plan.Gathered:
		kind = nn.TensorGathered
	}
	return kind
}
