package parallel

import (
	"carve/nn"
	"carve/plan"
	"carve/tensor"
)

// batches are the samples of a step on this rank: the whole sequences of its data share, and its positions of them as
// micro-batches.
type batches struct {
	tokens, targets *tensor.Tensor // int32 [M·B S]
	micro           []nn.Batch
}

// newBatches makes the buffers and the micro-batches as views of them.
func newBatches(r *nn.Rank, p plan.Plan) *batches {
	n, rows, s := p.MicroBatches(), p.MicroBatch, p.Workload.Sequence
	b := &batches{
		tokens:  r.Arena.New(tensor.Activation, tensor.Int32, n*rows, s),
		targets: r.Arena.New(tensor.Activation, tensor.Int32, n*rows, s),
		micro:   make([]nn.Batch, n),
	}
	for i := range b.micro {
		b.micro[i] = nn.Batch{
			Tokens: b.tokens.RowRange(i*rows, (i+1)*rows), Targets: b.targets.RowRange(i*rows, (i+1)*rows),
			Scale: 1 / float64(p.StepTokens()),
		}
	}
	return b
}

// rows is the number of rows of a micro-batch's activations between layers on this rank.
func (b *batches) rows(r *nn.Rank) int { return r.Rows(b.micro[0].Tokens.Len()) }

// cut gives every micro-batch this rank's positions of the samples.
func (b *batches) cut() {
	for i := range b.micro {
		b.micro[i].Loss = 0
	}
}
