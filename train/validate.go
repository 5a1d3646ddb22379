package train

import "carve/tensor"

// validate measures the loss on held-back text: always the same samples, so that two looks can be compared. Every
// rank has its share of each global batch.
func (w *worker) validate(step int) error {
	batches := w.plan.Workload.Validation.Batches
	if w.job.validation == nil || batches == 0 {
		return nil
	}
	w.enter(validating)
	start := w.job.now()
	source, err := w.job.validation(w.data())
	if err != nil || source == nil {
		return err
	}
	var loss, count float64
	for range batches * w.plan.MicroBatches() {
		if _, err := source.Fill(w.batch.Tokens.I32(), w.batch.Targets.I32()); err != nil {
			return err
		}
		w.model.Evaluate(w.rank, &w.batch)
		loss += w.batch.Loss
		count += float64(w.batch.Tokens.Len())
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
