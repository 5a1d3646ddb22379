package verify

import (
	"cmp"
	"context"
	"sync"
	"time"

	"carve/comm"
	"carve/nn"
	"carve/parallel"
	"carve/plan"
)

// world is a run of a plan on local ranks.
type world struct {
	plan    plan.Plan
	samples *samples
	first   int // step
	steps   int // up to this one
	visitor visitor
	plant   *planter                   // nil for none
	observe func(rank int) nn.Observer // nil for none
	limit   time.Duration              // that a rank may wait for one operation; 0 means Limit
}

// visitor looks at every rank in every step. Ranks call it at the same time; a rank's calls come in order.
type visitor interface {
	// began is called before the first step.
	began(e *parallel.Engine)
	// reduced is called between the reduction of the gradients and the update.
	reduced(e *parallel.Engine, step int)
	// updated is called at the end of a step.
	updated(e *parallel.Engine, step int, r parallel.Result)
}

// run takes the steps. The error is why some rank did not come to an end; of ranks that wait for each other it names the one to
// blame.
func (w *world) run(ctx context.Context) error {
	local := comm.NewLocal(w.plan.Layout.World(), comm.LocalOptions{})
	engines := make([]*parallel.Engine, local.Size())
	dog := comm.NewWatchdog(comm.WatchdogOptions{Limit: cmp.Or(w.limit, Limit), Keep: kept})
	ends := local.Endpoints()
	for i, e := range ends {
		ends[i] = dog.Watch(e)
	}
	watching, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { dog.Run(watching) })
	err := comm.Run(ctx, ends, func(end comm.Endpoint) (err error) {
		failed := nn.Guard(func() { err = w.rank(end, &engines[end.Rank()]) })
		if failed != nil {
			return failed
		}
		return err
	})
	stop()
	watch.Wait()
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

// kept is how many operations of a rank the watchdog remembers.
const kept = 64

// rank is the life of one rank.
func (w *world) rank(end comm.Endpoint, made **parallel.Engine) error {
	step := w.first
	o := parallel.Options{Reduced: func() { w.visitor.reduced(*made, step) }}
	if w.observe != nil {
		o.Observer = w.observe(end.Rank())
	}
	place := &spoiled{}
	if w.plant != nil {
		place = w.plant.wrap(end)
		defer place.arena.Close()
		end = place
	}
	e, err := parallel.New(end, w.plan, o)
	*made = e
	if err != nil {
		return err
	}
	w.visitor.began(e)
	for ; step < w.steps; step++ {
		place.step = step
		if err := w.step(e, step); err != nil {
			return err
		}
	}
	return nil
}

// step is one step of a rank.
func (w *world) step(e *parallel.Engine, step int) error {
	w.samples.fill(e, step)
	restore := func() {}
	if w.plant != nil {
		w.plant.lose(e, w.plan, step)
		restore = w.plant.remember(e, step)
	}
	r, err := e.Step(step, w.plan.Optimizer.LearningRate)
	if err != nil {
		return err
	}
	restore()
	w.visitor.updated(e, step, r)
	return nil
}
