package train

import (
	"context"
	"math"

	"carve/nn"
	"carve/optim"
	"carve/tensor"
)

// step is one step of training on one rank: the whole recipe. It returns the global gradient norm and whether
// all was finite; if not, nothing was updated.
//
//	split        the global batch: each rank has its own micro-batches
//	replicated   parameters and optimizer state
//	collective   all-reduce of the gradients, in buckets
//	hidden       behind the backward of the last micro-batch, but for the last bucket
func (w *worker) step(ctx context.Context, rate float64) (norm float64, finite bool, err error) {
	w.enter(loading)
	wait, err := w.samples.Next(ctx, w.tokens.I32(), w.targets.I32())
	if err != nil {
		return 0, false, err
	}
	w.exposed, w.waited, w.loss, w.suspect = w.end.Waited(), wait, 0, 0
	w.model.Begin()
	last := w.plan.MicroBatches() - 1
	for i := range last + 1 {
		b := w.micro(i)
		w.enter(forward)
		pass := w.model.Forward(w.rank, &b.Batch)
		w.count(i, b.Loss)
		w.enter(backward)
		if i < last {
			w.model.Backward(w.rank, pass, nil)
		} else {
			w.model.Backward(w.rank, pass, w.reducer) // starts the reduction of each bucket that is complete
		}
		b.free()
	}
	w.enter(reducing)
	w.reducer.Finish()
	w.enter(norming)
	norm = w.norm.Of() // after the reduction: the same number on every rank
	if math.IsNaN(norm) || math.IsInf(norm, 0) {
		return norm, false, nil // before the update: the weights are still those of the step before
	}
	w.enter(updating)
	w.optimizer.Step(rate, optim.ClipScale(norm, w.plan.Optimizer.Clip))
	return norm, true, nil
}

// microBatch is a view of some of the rank's samples of a step.
type microBatch struct{ nn.Batch }

// micro is the micro-batch of a number; the caller frees it.
func (w *worker) micro(i int) *microBatch {
	b, s := w.plan.MicroBatch, w.plan.Workload.Sequence
	cut := func(t *tensor.Tensor) *tensor.Tensor { return t.Slice(i*b*s, (i+1)*b*s, b, s) } // [B S]
	w.batch = microBatch{nn.Batch{
		Tokens: cut(w.tokens), Targets: cut(w.targets), Scale: 1 / float64(w.plan.StepTokens()),
	}}
	return &w.batch
}

// free gives the views back.
func (b *microBatch) free() {
	b.Tokens.Free()
	b.Targets.Free()
}

// count adds the loss of a micro-batch, and remembers the first that is not finite.
func (w *worker) count(i int, loss float64) {
	finite := !math.IsNaN(w.loss) && !math.IsInf(w.loss, 0)
	w.loss += loss
	if finite && (math.IsNaN(loss) || math.IsInf(loss, 0)) {
		w.suspect = i
	}
}

// enter says what the rank does now.
func (w *worker) enter(o operation) {
	w.at.operation = o
	w.timeline.enter(o)
}
