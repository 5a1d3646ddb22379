package nn

import "carve/tensor"

// Layer is one step of the residual stream, with explicit forward and backward.
//
// Ownership: Forward takes over x (frees it or keeps it in Saved) and the caller owns y. Backward takes over dy
// and saved, and the caller owns dx. The first layer of a model gets a nil x and returns a nil dx, the last
// returns a nil y and gets a nil dy: they read tokens and targets from the batch.
type Layer interface {
	// Name is the module's name in Hugging Face's checkpoints: "model.layers.3.self_attn".
	Name() string
	// Forward computes y [T H] from x [T H], T = B·S rows. Where the mode keeps nothing, saved is nil.
	Forward(r *Rank, b *Batch, x *tensor.Tensor) (y *tensor.Tensor, saved Saved)
	// Backward computes dx from dy and adds to the gradients of the parameters.
	Backward(r *Rank, dy *tensor.Tensor, saved Saved) (dx *tensor.Tensor)
	// Params lists the layer's own parameters.
	Params() []*Param
}

// Saved is what the forward of one micro-batch leaves for its backward. Many may be in flight. Free gives the
// memory back without a backward.
type Saved interface {
	Free()
	// Each visits every tensor that is kept, nil ones too; the visitor may put another in its place.
	Each(visit func(t **tensor.Tensor))
}

// Mode says what a forward is for.
type Mode uint8

// The modes.
const (
	Train    Mode = iota // a backward follows
	Evaluate             // only the result counts: nothing is kept
	Discard              // of training, but the backward will run the forward again: nothing is kept
	Again                // that second forward: a backward follows, and what is counted once a micro-batch was counted
)

// Keeps tells whether the forward keeps what a backward needs.
func (m Mode) Keeps() bool { return m == Train || m == Again }

// Trains tells whether the forward is one of training: with dropout.
func (m Mode) Trains() bool { return m != Evaluate }

// Counts tells whether what is counted once a micro-batch, such as the load of experts, is counted now.
func (m Mode) Counts() bool { return m == Train || m == Discard }

// Batch is one micro-batch of this rank. The tensors are the caller's and stay until the backward is through.
type Batch struct {
	Tokens *tensor.Tensor // int32 [B S]
	// Targets are the tokens to predict, int32 [B S]; -1 is not counted. Not needed for logits.
	Targets *tensor.Tensor
	// Positions are the tokens' positions, int32 [B S]; nil means 0, 1, … S-1 in every sequence. Over the context axis a
	// batch has this rank's part of every sequence ([mesh.Balance.Cut]), S stands for S/CP, and positions are needed.
	Positions *tensor.Tensor
	// Documents number the documents packed into a sequence, int32 [B S]; attention does not cross them. nil means
	// that each sequence is one document. Over the context axis they are those of the whole sequences: every rank's
	// queries need to know every rank's keys.
	Documents *tensor.Tensor
	// Scale is 1/(valid targets of the global batch over all its micro-batches and ranks), so that gradients are sums.
	Scale float64
	// Step is the number of the step, and Sample that of the first sequence among all of the step: what dropout makes its
	// random numbers of, besides positions. Not needed without dropout.
	Step, Sample int
	Mode         Mode

	// Loss is set by the forward: the sum of -ln p over this micro-batch's valid targets, in nats.
	Loss float64
	// Auxiliary grows in forwards of training by the loss that balances experts, times its coefficient and Scale: this
	// rank's part, of which the sum over ranks and micro-batches counts next to Loss·Scale, and whose gradient is in the
	// gradients. The caller clears it.
	Auxiliary float64
}

// rows is the number of tokens B·S.
func (b *Batch) rows() int { return b.Tokens.Len() }

// sequence is the number of tokens of a sequence S.
func (b *Batch) sequence() int { return b.Tokens.Dim(1) }

// pool recycles the saved values of a layer, so that a step allocates none.
type pool[T any] struct{ spare []*T }

func (p *pool[T]) get() *T {
	if n := len(p.spare); n > 0 {
		v := p.spare[n-1]
		p.spare = p.spare[:n-1]
		return v
	}
	return new(T)
}

// put clears v and keeps it.
func (p *pool[T]) put(v *T) {
	var zero T
	*v = zero
	p.spare = append(p.spare, v)
}

// heads is a run of heads in the columns of t.
func heads(t *tensor.Tensor, start, count, width int) tensor.Columns {
	return tensor.Columns{T: t, Start: start, Heads: count, Width: width}
}

// whole is all columns of t as one run.
func whole(t *tensor.Tensor) tensor.Columns { return heads(t, 0, 1, t.Cols()) }
