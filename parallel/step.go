package parallel

import (
	"math"

	"carve/nn"
	"carve/optim"
)

// Result is what a step found.
type Result struct {
	// Loss is this rank's term of the sum over the world of -ln p over the targets, in nats; see [Engine.Counts].
	Loss float64
	// Auxiliary is this rank's term of the loss that balances experts; see [nn.Batch].
	Auxiliary float64
	// Loads are those of the experts of every layer that has some, over all ranks, which stay until the next step.
	Loads []nn.ExpertLoad
	// Norm is the gradient's global norm before clipping, the same on every rank.
	Norm float64
	// Finite tells whether the norm is a number; if not, nothing was updated.
	Finite bool
}

// Step is one step of training on one rank: the whole recipe, for every layout. Tokens and Targets hold the samples. Its number
// is what dropout draws from.
//
// The schedule's actions run the micro-batches through this rank's stages; inside them the layers communicate over
// the tensor, context and expert axes. Gradients that are complete are reduced over the data axes while the backward goes
// on; what is left is waited for, the norm is taken, and the parameters are updated by those who own them.
func (e *Engine) Step(number int, rate float64) (Result, error) {
	e.state.Begin()
	e.batches.begin(number)
	if err := e.pipeline.run(e.rank, e.state); err != nil {
		return Result{}, err
	}
	e.enter(Reducing)
	e.state.Finish()
	e.options.Reduced()
	e.enter(Norming)
	r := Result{Loss: e.pipeline.loss(), Norm: e.state.Norm(), Finite: true} // after the reduction: the same number on every rank
	if math.IsNaN(r.Norm) || math.IsInf(r.Norm, 0) {
		r.Finite = false // before the update: the weights are still those of the step before
		return r, nil
	}
	e.enter(Updating)
	e.state.Step(rate, optim.ClipScale(r.Norm, e.plan.Optimizer.Clip))
	r.Auxiliary, r.Loads = e.batches.auxiliary(), e.model.SettleExperts(e.rank)
	return r, nil
}

// Inspect runs the forward and backward of the last step's samples once more and returns the first number on this rank
// that is not finite, or nil. Every rank calls it. It overwrites the gradients.
func (e *Engine) Inspect() (*nn.NonFiniteError, error) {
	watched, i := e.rank.Inspect()
	i.Values(e.model)
	e.state.Begin()
	if err := e.pipeline.run(watched, e.state); err != nil {
		return nil, err
	}
	e.state.Finish()
	for _, p := range e.state.Gradients() {
		i.Gradient(p.Param.Name, p.Tensor)
	}
	return i.First(), nil
}

// enter says what the rank does now.
func (e *Engine) enter(p Phase) { e.options.Enter(p) }
