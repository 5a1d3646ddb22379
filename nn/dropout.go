package nn

import "carve/tensor"

// dropout zeroes elements of the residual stream's terms in training (GPT-2 after the embedding and every branch). The
// zero value drops nothing.
//
// Its mask is made of counter-based numbers of the seed, the step, the layer's name, and the element's place in the step:
// sample, position and feature. So it is the same under every layout, nothing of it is kept, and the backward, or a
// forward that is run again, makes it once more.
type dropout struct {
	rate      float64
	key       uint64     // of the seed and the layer's name
	sequences *sequences // nil where the context axis has one rank
}

func (b *builder) dropout(name string, rate float64) dropout {
	return dropout{rate: rate, key: Key(b.r.Seed, name+".dropout"), sequences: b.sequences}
}

// on reports whether anything of a batch is dropped.
func (d *dropout) on(b *Batch) bool { return d.rate > 0 && b.Mode.Trains() }

// stream is the key of the random numbers of the batch's step.
func (d *dropout) stream(b *Batch) uint64 { return mix(d.key ^ uint64(b.Step)*0x9e3779b97f4a7c15) }

// apply sets y to residual + dropout(x) for this rank's rows of the residual stream; y may be x.
func (d *dropout) apply(r *Rank, b *Batch, y, x, residual *tensor.Tensor) {
	op := tensor.Dropout{
		Y: y, X: x, Residual: residual, Rate: d.rate, Key: d.stream(b),
		Rows: tensor.Places{First: r.own(b.rows()).Start, S: b.sequence(), Sample: b.Sample},
	}
	if q := d.sequences; q != nil {
		q.ready(r, b)
		op.Rows.At = share(q.positions, q.degree, q.at)
	}
	r.Dev.Dropout(op)
	op.Rows.At.Free()
}

// backward is the gradient of what was dropped from, given that of the result: dy itself where nothing was, else a new
// tensor. dy stays the caller's.
func (d *dropout) backward(r *Rank, b *Batch, dy *tensor.Tensor) *tensor.Tensor {
	if !d.on(b) {
		return dy
	}
	dx := r.activation(dy.Rows(), dy.Cols())
	d.apply(r, b, dx, dy, nil)
	return dx
}

// attention is what the device drops of the probabilities of heads from a number on.
func (d *dropout) attention(b *Batch, head int) (a tensor.AttentionDropout) {
	if d.on(b) {
		a = tensor.AttentionDropout{Rate: d.rate, Key: d.stream(b), Sample: b.Sample, Head: head}
	}
	return a
}
