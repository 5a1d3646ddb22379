package train

import (
	"context"

	"carve/data"
	"carve/parallel"
)

// step is one step of training on one rank: samples, and the engine's recipe. It returns the global gradient norm and
// whether all was finite; if not, nothing was updated.
func (w *worker) step(ctx context.Context, rate float64) (norm float64, finite bool, err error) {
	w.enter(loading)
	wait, err := w.samples.Next(ctx, data.Batch{
		Tokens: w.engine.Tokens(), Targets: w.engine.Targets(), Positions: w.engine.Positions(), Documents: w.engine.Documents(),
	})
	if err != nil {
		return 0, false, err
	}
	w.engine.SetTargets(w.samples.Targets())
	w.exposed, w.waited = w.end.Waited(), wait
	w.enter(stepping)
	r, err := w.engine.Step(w.at.step, rate)
	if err != nil {
		return 0, false, err
	}
	w.loss, w.loads = r.Loss, r.Loads
	return r.Norm, r.Finite, nil
}

// enter says what the rank does now.
func (w *worker) enter(o operation) {
	w.at.operation = o.String()
	w.timeline.enter(w.at.operation, o.category())
}

// enterPhase says what the rank does now within a step.
func (w *worker) enterPhase(p parallel.Phase) {
	w.at.operation = p.String()
	w.timeline.enter(w.at.operation, categoryOf(p))
}
