package train

import (
	"math"

	"carve/optim"
)

// feed deals out one rank's micro-batches.
type feed interface {
	// Fill writes the next micro-batch, [B S], and returns the nanoseconds that it had to wait for it.
	Fill(tokens, targets []int32) (waited int64, err error)
}

// step is one step of training on one rank: the whole recipe. It returns the global gradient norm and whether
// all was finite; if not, nothing was updated.
//
//	split        the global batch: each rank has its own micro-batches
//	replicated   parameters and optimizer state
//	collective   all-reduce of the gradients, in buckets
//	hidden       behind the backward of the last micro-batch, but for the last bucket
func (w *worker) step(rate float64) (norm float64, finite bool, err error) {
	w.loss, w.waited, w.suspect = 0, 0, w.suspect[:0]
	w.model.Begin()
	last := w.plan.MicroBatches() - 1
	for i := range last + 1 {
		if err := w.next(); err != nil {
			return 0, false, err
		}
		w.enter(forward)
		pass := w.model.Forward(w.rank, &w.batch)
		w.count()
		w.enter(backward)
		if i < last {
			w.model.Backward(w.rank, pass, nil)
			continue
		}
		w.model.Backward(w.rank, pass, w.reducer) // starts the reduction of each bucket that is complete
	}
	w.enter(reducing)
	w.reducer.Finish()
	w.enter(norming)
	norm = w.norm.Of() // after the reduction: the same number on every rank
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return norm, false, nil // before the update: the weights are still good
	}
	w.enter(updating)
	w.optimizer.Step(rate, optim.ClipScale(norm, w.plan.Optimizer.Clip))
	return norm, true, nil
}

// next takes the next micro-batch from the feed.
func (w *worker) next() error {
	w.enter(loading)
	waited, err := w.train.Fill(w.batch.Tokens.I32(), w.batch.Targets.I32())
	w.waited += waited
	w.batch.Scale = 1 / float64(w.plan.StepTokens())
	return err
}

// count adds the micro-batch's loss, and remembers the batch if that is not finite.
func (w *worker) count() {
	w.loss += w.batch.Loss
	if len(w.suspect) == 0 && (math.IsNaN(w.batch.Loss) || math.IsInf(w.batch.Loss, 0)) {
		w.suspect = append(append(w.suspect, w.batch.Tokens.I32()...), w.batch.Targets.I32()...)
	}
}

// enter says what the rank does now.
func (w *worker) enter(o operation) {
	w.at.operation = o
	w.timeline.enter(o)
}
