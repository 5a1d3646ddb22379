package verify

import (
	"carve/mesh"
	"carve/plan"
)

// Constants of the proof's optimizer. The step is large enough that a parameter that misses one differs by far more than
// round-off, and ε such that round-off of a gradient that should be zero stays small: at g = 0 AdamW multiplies it by
// rate/ε.
const (
	rate    = 1e-2
	epsilon = 1e-3
	clip    = 0.5 // below the norm of the first steps, so that it counts
)

// Exact is the plan as a proof runs it: in fp64, on local ranks, with the optimizer's constants replaced.
func Exact(p plan.Plan) plan.Plan {
	p.Precision, p.Engine = plan.FP64, plan.Local
	o := &p.Optimizer
	o.LearningRate, o.Schedule, o.Warmup, o.Epsilon = rate, plan.Constant, 0, epsilon
	if o.Clip > 0 {
		o.Clip = clip
	}
	return p
}

// Alone is the same training on one rank: the same global batch in the same micro-batches.
func Alone(p plan.Plan) plan.Plan {
	l := plan.Layout{Order: mesh.DefaultOrder(), Zero: plan.Zero{Bucket: p.Layout.Zero.Bucket}}
	for _, a := range mesh.All {
		l.Degrees[a] = 1
	}
	l.Pipeline = plan.Pipeline{Schedule: plan.OneForwardOneBackward, Virtual: 1}
	l.Experts = p.Layout.Experts
	l.Experts.Tensor, l.Experts.Overlap = 1, false
	l.Tensor.Chunks = 1
	p.Layout, p.Recompute, p.Offload = l, plan.Recompute{}, plan.NoOffload
	return p
}
