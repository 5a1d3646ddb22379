package train

import (
	"context"
	"fmt"
	"math"

	"carve/data"
	"carve/mesh"
	"carve/unit"
)

// loop trains from where the state stands to the last step. Every rank runs it, and every rank decides alike: what a
// decision rests on is the same everywhere, or comes from rank 0 over the board.
func (w *worker) loop(ctx context.Context) error {
	if w.state.Steps() == 0 {
		if err := w.validate(0); err != nil {
			return err
		}
		if w.job.budget > 0 {
			if err := w.rehearse(ctx); err != nil {
				return err
			}
		}
	}
	var err error
	if err = w.openSamples(ctx, w.job.position); err != nil {
		return err
	}
	for stop := false; !stop && w.state.Steps() < w.plan.Steps(); {
		if stop, err = w.advance(ctx); err != nil {
			return err
		}
	}
	return nil
}

// openSamples begins to read the samples of the steps, ahead of them.
func (w *worker) openSamples(ctx context.Context, from *data.State) (err error) {
	const ahead = 2 // steps
	if w.samples != nil {
		w.samples.Close()
	}
	if w.samples, err = w.job.loader(w.data(), from); err != nil {
		return err
	}
	return w.samples.Start(ctx, ahead)
}

// advance makes one step and what is due after it, and reports whether the run was asked to stop.
func (w *worker) advance(ctx context.Context) (stop bool, err error) {
	n := w.state.Steps()
	w.at.step = n + 1
	start := w.job.now()
	norm, finite, err := w.step(ctx, w.rates.Rate(n))
	if err != nil {
		return false, err
	}
	if !finite {
		return false, w.explain(fmt.Sprintf("the gradient norm is %v", norm))
	}
	if err := w.publish(w.asked(), 0); err != nil {
		return false, err
	}
	loss := w.board.sum(lossSlot) / float64(max(w.samples.Targets(), 1))
	if math.IsNaN(loss) || math.IsInf(loss, 0) {
		return false, w.explain(fmt.Sprintf("the loss is %v", loss))
	}
	stop = w.board.first(stopSlot) != 0
	w.timeline.step(n+1, int64(w.plan.StepTokens()))
	w.tell(norm, loss, seconds(w.job.now()-start))
	return stop, w.due(stop)
}

// due validates and saves when it is time to.
func (w *worker) due(stop bool) error { //nolint:revive // one more thing that makes a checkpoint due
	done, last := w.state.Steps(), w.plan.Steps()
	if done == last || every(done, w.plan.Workload.Validation.Interval) {
		if err := w.validate(done); err != nil {
			return err
		}
	}
	if stop || done == last || every(done, w.plan.Checkpoint.Every) {
		return w.save(done)
	}
	return nil
}

// every tells whether something that happens at an interval is due; 0 is never.
func every(step, interval int) bool { return interval > 0 && step%interval == 0 }

// leads tells whether this rank speaks for the run.
func (w *worker) leads() bool { return w.end.Rank() == 0 }

// asked tells whether rank 0 was asked to stop.
func (w *worker) asked() bool {
	if !w.leads() {
		return false
	}
	select {
	case <-w.job.stop:
		return true
	default:
		return false
	}
}

// tell reports a step.
func (w *worker) tell(norm, loss float64, elapsed unit.Seconds) {
	if !w.leads() {
		return
	}
	w.report.experts(w.state.Steps(), w.loads, w.plan.Layout.Degrees[mesh.EP])
	w.report.step(stepResult{
		step: w.state.Steps(), norm: norm, loss: loss, rate: w.rates.Rate(w.state.Steps() - 1), elapsed: elapsed,
		exposed: w.board.mean(exposeSlot), waited: w.board.mean(waitSlot), memory: w.board.memory(),
	})
}
