package parallel

import (
	"carve/mesh"
	"carve/schedule"
	"carve/tensor"
)

// EvaluationTokens and EvaluationTargets are where the caller puts a batch to evaluate: one micro-batch [B S].
func (e *Engine) EvaluationTokens() []int32 { return e.first(e.Tokens()) }

// EvaluationTargets are the tokens to predict; see [Engine.EvaluationTokens].
func (e *Engine) EvaluationTargets() []int32 { return e.first(e.Targets()) }

// EvaluationPositions and EvaluationDocuments are the batch's [Engine.Positions] and [Engine.Documents], or nil.
func (e *Engine) EvaluationPositions() []int32 { return e.first(e.Positions()) }

// EvaluationDocuments are the numbers of the tokens' documents; see [Engine.EvaluationPositions].
func (e *Engine) EvaluationDocuments() []int32 { return e.first(e.Documents()) }

// first is the first micro-batch of a step's buffer, or nil.
func (e *Engine) first(v []int32) []int32 {
	return v[:min(len(v), e.plan.MicroBatch*e.plan.Workload.Sequence)]
}

// Evaluate returns this rank's term of the loss of the micro-batch in the evaluation buffers; the sum over the world is
// the sum of -ln p. Every rank of a pipeline calls it. It overwrites the samples of the step.
func (e *Engine) Evaluate() (loss float64, err error) {
	e.batches.cut(1)
	b := &e.batches.micro[0]
	var x *tensor.Tensor
	for stage := range e.pipeline.route.Depth() {
		here := e.pipeline.route.Place(schedule.Stage{Index: stage})
		if here.Rank != e.pipeline.at {
			continue
		}
		if x, err = e.pipeline.fetch(x, here); err != nil {
			return 0, err
		}
		x = e.model.Chunks[here.Chunk].Evaluate(e.rank, b, x)
		if x, err = e.pipeline.pass(x, here); err != nil {
			return 0, err
		}
	}
	if !e.Judges() {
		return 0, nil
	}
	return b.Loss, nil
}

// Judges tells whether this rank's result of [Engine.Evaluate] counts: it is the one of those with the same positions of the
// same samples that has the head which evaluates. Of the two heads of a pipeline that runs both ways that is one.
func (e *Engine) Judges() bool {
	last := e.pipeline.route.Place(schedule.Stage{Index: e.pipeline.route.Depth() - 1})
	return e.rank.At[mesh.TP] == 0 && last.Rank == e.pipeline.at
}

// fetch is the input of a stage: x, which the stage before left here, or what its rank sends.
func (l *pipeline) fetch(x *tensor.Tensor, here schedule.Place) (*tensor.Tensor, error) {
	before, ok := l.route.Previous(here)
	if !ok || before.Rank == l.at {
		return x, nil
	}
	t, work := l.receive(l.activations, schedule.Action{Peer: before.Rank})
	return t, work.Wait()
}

// pass hands the result of a stage to the next one; it is returned when that is here.
func (l *pipeline) pass(y *tensor.Tensor, here schedule.Place) (*tensor.Tensor, error) {
	next, ok := l.route.Next(here)
	if !ok || next.Rank == l.at {
		return y, nil
	}
	defer y.Free()
	return nil, l.activations.Send(y, next.Rank)
}
