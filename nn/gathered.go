package nn

import (
	"errors"
	"fmt"

	"carve/model"
	"carve/tensor"
)

// TensorKind says how layers split their features over the tensor axis.
type TensorKind uint8

// The kinds.
const (
	// TensorMegatron leaves heads and feed-forward features on their rank between a column- and a row-parallel layer: one
	// collective a branch and direction (Shoeybi et al., arXiv 1909.08053).
	TensorMegatron TensorKind = iota
	// TensorGathered gathers the features of every layer's result right away, and cuts its input: the baseline to measure
	// the other against. Only matrices and their products are split; attention, activations and what they keep are repeated
	// on every rank. Each branch has one collective more in each direction.
	TensorGathered
)

// String is the name in plan files.
func (k TensorKind) String() string {
	switch k {
	case TensorMegatron:
		return "megatron"
	case TensorGathered:
		return "gathered"
	}
	return fmt.Sprintf("tensor(%d)", uint8(k))
}

// checkGathered lists what does not run where features are gathered.
func checkGathered(k TensorKind, tp int, c model.Config) (faults []error) {
	if k != TensorGathered || tp == 1 {
		return nil
	}
	if tp > c.KVHeads {
		faults = append(faults, fmt.Errorf("nn: gathered features do not run over tensor degree %d with %d key-value heads; use megatron, or a divisor of the heads", tp, c.KVHeads))
	}
	if c.Experts.Count > 0 {
		faults = append(faults, errors.New("nn: gathered features do not run with experts; use megatron"))
	}
	return faults
}

// gathered reports whether features are gathered after every layer.
func (r *Rank) gathered() bool { return r.TensorKind == TensorGathered && degree(r.Groups.Tensor) > 1 }

// features is the degree by which heads and feed-forward features are split between the layers of a branch.
func (r *Rank) features() int {
	if r.gathered() {
		return 1
	}
	return degree(r.Groups.Tensor)
}

// joinFeatures gathers t [T N/TP], whose columns are split as dim d of a layer's matrix is, to [T N]. It takes over t,
// and returns it where features stay on their ranks.
func (r *Rank) joinFeatures(l *Linear, d int, t *tensor.Tensor) *tensor.Tensor {
	if !r.gathered() {
		return t
	}
	g := r.Groups.Tensor
	blocks := r.communication(t.DType(), g.Size(), t.Rows(), t.Cols())
	Must(g.AllGather(blocks, t))
	all := r.activation(t.Rows(), t.Cols()*g.Size())
	t.Free()
	for i := range g.Size() {
		block := blocks.RowRange(i*all.Rows(), (i+1)*all.Rows())
		l.features(d, g.Size(), i, func(from, to, width int) {
			r.Dev.CopyColumns(heads(all, to, 1, width), heads(block, from, 1, width))
		})
		block.Free()
	}
	blocks.Free()
	return all
}

// ownFeatures is this rank's columns of t [T N], split as dim d of a layer's matrix is: t itself where it has no others.
// t stays the caller's; see [drop].
func (r *Rank) ownFeatures(l *Linear, d int, t *tensor.Tensor) *tensor.Tensor {
	if !r.gathered() {
		return t
	}
	g := r.Groups.Tensor
	own := r.activation(t.Rows(), t.Cols()/g.Size())
	l.features(d, g.Size(), g.Rank(), func(to, from, width int) {
		r.Dev.CopyColumns(heads(own, to, 1, width), heads(t, from, 1, width))
	})
	return own
}

// features calls f for every part of the fused matrix that dim d splits over n ranks, with the columns of rank i: where they
// begin on the rank and among those of all, and how many they are.
func (l *Linear) features(d, n, i int, f func(own, all, width int)) {
	own := 0
	for _, p := range l.weight.params {
		width := p.Region[d].Len()
		f(own, own*n+i*width, width)
		own += width
	}
}
