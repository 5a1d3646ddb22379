package train

import (
	"errors"
	"io"

	"carve/data"
	"carve/mesh"
	"carve/tensor"
)

// validate measures the loss on held-back text: always the same samples, so that two looks can be compared. Every
// rank has its share of them.
func (w *worker) validate(step int) error {
	if w.held == nil {
		return nil
	}
	w.enter(validating)
	start := w.job.now()
	loss, count, err := w.evaluate()
	if err != nil {
		return err
	}
	if err := w.sum(&loss, &count); err != nil {
		return err
	}
	if w.leads() {
		w.report.validation(Validation{
			Step: step, Loss: loss / count, Tokens: int64(count), Elapsed: seconds(w.job.now() - start),
		})
	}
	return nil
}

// evaluate adds up the loss of this rank's share, and the tokens that count.
func (w *worker) evaluate() (loss, count float64, err error) {
	batch := data.Batch{
		Tokens: w.engine.EvaluationTokens(), Targets: w.engine.EvaluationTargets(),
		Positions: w.engine.EvaluationPositions(), Documents: w.engine.EvaluationDocuments(),
	}
	w.held.Rewind()
	for {
		_, err := w.held.Next(batch)
		if errors.Is(err, io.EOF) {
			return loss, count, nil
		}
		if err != nil {
			return 0, 0, err
		}
		part, err := w.engine.Evaluate()
		if err != nil {
			return 0, 0, err
		}
		loss += part
		if w.engine.Judges() && w.rank.At[mesh.CP] == 0 { // the targets are those of whole sequences
			count += float64(counted(batch.Targets))
		}
	}
}

// counted is the number of targets that are tokens.
func counted(targets []int32) (n int) {
	for _, t := range targets {
		if t != data.NoTarget {
			n++
		}
	}
	return n
}

// sum adds two numbers over the ranks.
func (w *worker) sum(a, b *float64) error {
	if w.world.Size() == 1 {
		return nil
	}
	t := w.rank.Arena.New(tensor.Communication, tensor.FP64, 2)
	defer t.Free()
	x := t.F64()
	x[0], x[1] = *a, *b
	err := w.world.AllReduce(t, tensor.Sum)
	*a, *b = x[0], x[1]
	return err
}
