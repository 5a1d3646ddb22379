package verify

import (
	"context"

	"carve/comm"
	"carve/nn"
	"carve/parallel"
	"carve/plan"
)

// world is a run of a plan on local ranks.
type world struct {
	plan    plan.Plan
	samples *samples
	steps   int
	visitor visitor
}

// visitor looks at every rank in every step. Ranks call it at the same time; a rank's calls come in order.
type visitor interface {
	// reduced is called between the reduction of the gradients and the update.
	reduced(e *parallel.Engine, step int)
	// updated is called at the end of a step.
	updated(e *parallel.Engine, step int, r parallel.Result)
}

// run takes the steps. The error is why some rank did not come to an end.
func (w *world) run(ctx context.Context) error {
	local := comm.NewLocal(w.plan.Layout.World(), comm.LocalOptions{})
	engines := make([]*parallel.Engine, local.Size())
	err := comm.Run(ctx, local.Endpoints(), func(end comm.Endpoint) (err error) {
		failed := nn.Guard(func() { err = w.rank(end, &engines[end.Rank()]) })
		if failed != nil {
			return failed
		}
		return err
	})
	if closed := local.Close(); err == nil {
		err = closed
	}
	for _, e := range engines { // not before: ranks read each other's memory
		if e != nil {
			e.Close()
		}
	}
	return err
}

// rank is the life of one rank.
func (w *world) rank(end comm.Endpoint, made **parallel.Engine) error {
	step := 0
	e, err := parallel.New(end, w.plan, parallel.Options{Reduced: func() { w.visitor.reduced(*made, step) }})
	*made = e
	if err != nil {
		return err
	}
	for ; step < w.steps; step++ {
		w.samples.fill(e, step)
		r, err := e.Step(step, w.plan.Optimizer.LearningRate)
		if err != nil {
			return err
		}
		w.visitor.updated(e, step, r)
	}
	return nil
}
