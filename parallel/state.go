package parallel

import (
	"fmt"
	"slices"

	"carve/optim"
	"carve/plan"
	"carve/schedule"
)

// stateOf says where the state of a plan's model lies and how it is updated.
func stateOf(p plan.Plan) optim.Options {
	z := p.Layout.Zero
	o := optim.Options{
		Hybrid: z.Hybrid, Bucket: z.Bucket, Prefetch: z.Prefetch, Algorithm: algorithmOf(p.Optimizer), Reshard: optim.AfterBackward,
	}
	if z.Reshard {
		o.Reshard = optim.AfterForward
	}
	switch z.Stage {
	case plan.Replicated:
		o.Stage = optim.Replicated
	case plan.ShardOptimizer:
		o.Stage = optim.ShardOptimizer
	case plan.ShardGradients:
		o.Stage = optim.ShardGradients
	case plan.ShardParameters:
		o.Stage = optim.ShardParameters
	}
	switch z.Ownership {
	case plan.Flat:
		o.Ownership = optim.Flat
	case plan.WholeTensor:
		o.Ownership = optim.WholeTensor
	}
	switch z.Reduce {
	case plan.Overlap:
		o.Mode = optim.Bucketed
	case plan.Naive:
		o.Mode = optim.Naive
	case plan.Server:
		o.Mode = optim.Server
	}
	return o
}

// algorithmOf is the optimizer that the plan names.
func algorithmOf(o plan.Optimizer) optim.Algorithm {
	adamw := optim.AdamWOptions{Beta1: o.Beta1, Beta2: o.Beta2, Epsilon: o.Epsilon, Decay: o.WeightDecay}
	switch o.Name {
	case plan.AdamW:
		return adamw
	case plan.Muon:
		return optim.MuonOptions{Momentum: o.Momentum, Decay: o.WeightDecay, Rest: adamw}
	case plan.SGD:
		return optim.SGDOptions{Momentum: o.Momentum, Decay: o.WeightDecay}
	}
	panic(fmt.Sprintf("parallel: optimizer %d is not known", uint8(o.Name)))
}

// twins are the pipeline coordinates that hold a unit of this rank, by its name: those with its stage, on any pipe, and for
// a token table that the head shares those with the first or the last stage.
func (l *pipeline) twins(name string) []int {
	for i, c := range l.engine.model.Chunks {
		for _, u := range c.Units {
			if u.Name != name {
				continue
			}
			stages := []int{l.route.Stage(schedule.Place{Rank: l.at, Chunk: i}).Index}
			if u.Tied {
				stages = []int{0, l.route.Depth() - 1}
			}
			return l.holders(stages)
		}
	}
	return nil
}

// holders are the pipeline coordinates that hold one of the stages, in ascending order.
func (l *pipeline) holders(stages []int) (ranks []int) {
	for pipe := range l.route.Pipes() {
		for _, s := range stages {
			ranks = append(ranks, l.route.Place(schedule.Stage{Pipe: pipe, Index: s}).Rank)
		}
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}
