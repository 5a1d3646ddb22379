package ledger

import (
	"carve/mesh"
	"carve/nn"
	"carve/plan"
)

// Copies is how many ranks of the world hold the same part of a state, on average over its bytes.
type Copies struct {
	Parameters, Gradients, Optimizer float64
}

// copiesOf counts the copies of a stage's parameters, and what state sharding leaves of them.
func copiesOf(p plan.Plan, m mesh.Mesh, params []*nn.Param) Copies {
	stage := p.Layout.Zero.Stage
	return Copies{
		Parameters: meanCopies(p, m, params, stage >= plan.ShardParameters),
		Gradients:  meanCopies(p, m, params, stage >= plan.ShardGradients),
		Optimizer:  meanCopies(p, m, params, stage >= plan.ShardOptimizer),
	}
}

// meanCopies is what all ranks of the stage hold over what of it is distinct; 1 for a stage without parameters.
func meanCopies(p plan.Plan, m mesh.Mesh, params []*nn.Param, sharded bool) float64 { //nolint:revive // one more factor
	var held, distinct float64
	for _, q := range params {
		shards := 1
		if sharded {
			shards = shardRanks(p, q)
		}
		held += float64(q.Len()) / float64(shards)
		distinct += float64(q.Len()) * float64(m.Degree(mesh.PP)) / float64(q.Spec.Copies(m))
	}
	if distinct == 0 {
		return 1
	}
	return held / distinct
}

// shardRanks is the number of ranks that a parameter's state is dealt out to.
func shardRanks(p plan.Plan, q *nn.Param) int {
	ranks := p.Layout.Degrees.Over(mesh.DenseData)
	if q.Spec[mesh.EP].Kind != mesh.Replicated {
		ranks = p.Layout.Degrees.Over(mesh.ExpertData)
	}
	if h := p.Layout.Zero.Hybrid; h > 0 {
		return min(h, ranks)
	}
	return ranks
}
