package parallel

import (
	"carve/mesh"
	"carve/nn"
	"carve/plan"
	"carve/tensor"
)

// batches are the samples of a step on this rank: the whole sequences of its data share, and its positions of them as
// micro-batches.
type batches struct {
	tokens, targets *tensor.Tensor // int32 [M·B S]
	// positions and documents of packed samples are int32 [M·B S]; nil where a sample is one document.
	positions, documents *tensor.Tensor
	micro                []nn.Batch // [B S/CP] each

	balance mesh.Balance
	degree  int // of the context axis
	at      int // this rank's coordinate on it
	length  int // S
}

// newBatches makes the buffers and the micro-batches. Those are views of the whole sequences where the context axis does
// not split them, and else have memory of their own.
func newBatches(r *nn.Rank, p plan.Plan) *batches {
	n, rows, s := p.MicroBatches(), p.MicroBatch, p.Workload.Sequence
	b := &batches{
		tokens: newIDs(r, n*rows, s), targets: newIDs(r, n*rows, s), micro: make([]nn.Batch, n),
		balance: r.Context.Balance, degree: r.Mesh.Degree(mesh.CP), at: r.At[mesh.CP], length: s,
	}
	if p.Workload.Packing == plan.ByDocument {
		b.positions, b.documents = newIDs(r, n*rows, s), newIDs(r, n*rows, s)
	}
	tokens, targets, positions := b.tokens, b.targets, b.positions
	if b.degree > 1 {
		tokens, targets = newIDs(r, n*rows, s/b.degree), newIDs(r, n*rows, s/b.degree)
		positions = newIDs(r, n*rows, s/b.degree)
		b.balance.Positions(positions.I32(), s, b.degree, b.at)
	}
	for i := range b.micro {
		b.micro[i] = nn.Batch{
			Tokens: some(tokens, i, rows), Targets: some(targets, i, rows), Positions: some(positions, i, rows),
			Documents: some(b.documents, i, rows),
		}
	}
	b.number(r.Mesh.Index(r.Mesh.Rank(r.At), mesh.Samples) * n * rows)
	b.scale(int64(p.StepTokens()))
	return b
}

// number gives the samples their numbers among all of a step, from the first on.
func (b *batches) number(first int) {
	for i := range b.micro {
		b.micro[i].Sample = first + i*b.micro[i].Tokens.Dim(0)
	}
}

// some is the rows of micro-batch i, or nil of nil.
func some(t *tensor.Tensor, i, rows int) *tensor.Tensor {
	if t == nil {
		return nil
	}
	return t.RowRange(i*rows, (i+1)*rows)
}

// scale makes the loss a mean over so many targets of the global batch.
func (b *batches) scale(targets int64) {
	for i := range b.micro {
		b.micro[i].Scale = 1 / float64(max(targets, 1))
	}
}

func newIDs(r *nn.Rank, rows, cols int) *tensor.Tensor {
	return r.Arena.New(tensor.Activation, tensor.Int32, rows, cols)
}

// rows is the number of rows of the residual stream of a micro-batch on this rank.
func (b *batches) rows(r *nn.Rank) int { return r.Rows(b.micro[0].Tokens.Len()) }

// begin readies the micro-batches of a step of a number.
func (b *batches) begin(step int) {
	b.cut(len(b.micro))
	for i := range b.micro {
		b.micro[i].Step = step
	}
}

// cut gives the first n micro-batches this rank's positions of the samples.
func (b *batches) cut(n int) {
	for i := range b.micro[:n] {
		m := &b.micro[i]
		m.Loss, m.Auxiliary = 0, 0
		if b.degree > 1 {
			lo, hi := i*m.Tokens.Dim(0)*b.length, (i+1)*m.Tokens.Dim(0)*b.length
			b.share(m.Tokens, b.tokens, lo, hi)
			b.share(m.Targets, b.targets, lo, hi)
			if b.positions != nil {
				b.share(m.Positions, b.positions, lo, hi)
			}
		}
	}
}

// share copies this rank's positions of the sequences in elements [lo, hi) of all.
func (b *batches) share(mine, all *tensor.Tensor, lo, hi int) {
	if !all.Meta() {
		b.balance.Cut(mine.I32(), all.I32()[lo:hi], b.length, b.degree, b.at)
	}
}

// auxiliary is the sum of the micro-batches' losses that balance experts.
func (b *batches) auxiliary() (sum float64) {
	for i := range b.micro {
		sum += b.micro[i].Auxiliary
	}
	return sum
}
