package nn_test

import (
	"math"
	"testing"

	"carve/model"
	"carve/nn"
	"carve/tensor"
)

// numericTolerance bounds the relative difference of a gradient from its central difference. With a step of 1e-5 the
// difference has a truncation error of about 1e-10 times the third derivative and a rounding error of 1e-16/1e-5.
const numericTolerance = 1e-7

// TestModelGradient compares the gradient of the loss by sampled parameters with central differences, through the whole
// model, for every family, with and without packed documents.
func TestModelGradient(t *testing.T) {
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			r := newRank(t, tensor.FP64)
			m := newModel(t, r, f.config, nn.Options{Logits: 1})
			for _, b := range []*nn.Batch{
				newBatch(r, f.config.Vocab, 2, 6, 1),
				packed(r, newBatch(r, f.config.Vocab, 3, 5, 2)),
			} {
				if worst := compareGradients(r, m, b, picks()); worst > numericTolerance {
					t.Errorf("worst relative error %.1e exceeds %.0e", worst, numericTolerance)
				}
			}
		})
	}
}

// compareGradients returns the worst difference of gradients and central differences over some elements of every parameter, relative to the largest gradient of that parameter.
func compareGradients(r *nn.Rank, m *nn.Model, b *nn.Batch, picks int) (worst float64) {
	gradients(r, m, b)
	var grads [][]float64 // a forward adds to those of a fused head
	for _, p := range m.Params() {
		grads = append(grads, floats(p.Grad))
	}
	for k, p := range m.Params() {
		grad := grads[k]
		size := 0.0
		for _, g := range grad {
			size = max(size, math.Abs(g))
		}
		for _, i := range sample(p.Name, len(grad), picks) {
			numeric := slope(&p.Value.F64()[i], func() float64 { return objective(r, m, b) })
			worst = worse(worst, math.Abs(numeric-grad[i])/max(size, 1e-3))
		}
	}
	return worst
}

// picks is how many elements of a tensor are compared.
func picks() int {
	if racing {
		return 1
	}
	return 6
}

// worse is the larger error; NaN is the largest.
func worse(a, b float64) float64 {
	if math.IsNaN(b) {
		return math.Inf(1)
	}
	return max(a, b)
}

// slope is the central difference of f by v.
func slope(v *float64, f func() float64) float64 {
	const step = 1e-5
	old := *v
	defer func() { *v = old }()
	*v = old + step
	up := f()
	*v = old - step
	return (up - f()) / (2 * step)
}

// sample picks a few of n elements, always the same ones for a name.
func sample(name string, n, most int) []int {
	picks := []int{n - 1}
	for k := uint64(0); len(picks) < min(n, most); k++ {
		picks = append(picks, int(nn.Key(k, name)%uint64(n)))
	}
	return picks
}

// TestLayerGradient checks each layer by itself: the function <dy, y(x)> has the gradient that Backward(dy) returns,
// by x and by the layer's parameters.
func TestLayerGradient(t *testing.T) {
	for _, f := range families() {
		t.Run(f.name, func(t *testing.T) {
			f.config.Dropout = model.Dropout{} // values are those of evaluation
			r := newRank(t, tensor.FP64)
			m := newModel(t, r, f.config, nn.Options{Experts: nn.ExpertOptions{Balance: nn.Unbalanced}})
			b := packed(r, newBatch(r, f.config.Vocab, 2, 6, 3))
			for _, u := range []*nn.Unit{m.Units[0], m.Units[1]} {
				for _, l := range u.Layers {
					checkLayer(t, r, m, l, b)
				}
			}
		})
	}
}

func checkLayer(t *testing.T, r *nn.Rank, m *nn.Model, l nn.Layer, b *nn.Batch) {
	t.Helper()
	rows, hidden := b.Tokens.Len(), m.Config.Hidden
	x, dy := noise(r, "x", rows, hidden), noise(r, "dy", rows, hidden)
	value := func() float64 {
		b.Mode = nn.Evaluate
		y, _ := l.Forward(r, b, clone(r, x))
		defer y.Free()
		return dot(y, dy)
	}
	b.Mode = nn.Train
	m.Begin()
	y, saved := l.Forward(r, b, clone(r, x))
	y.Free()
	dx := l.Backward(r, clone(r, dy), saved)
	worst := 0.0
	compare := func(v, grad *tensor.Tensor, name string) {
		for _, i := range sample(name, v.Len(), picks()) {
			worst = worse(worst, math.Abs(slope(&v.F64()[i], value)-grad.F64()[i]))
		}
	}
	if dx != nil {
		compare(x, dx, "x")
		dx.Free()
	}
	for _, p := range l.Params() {
		compare(p.Value, p.Grad, p.Name)
	}
	if worst > numericTolerance {
		t.Errorf("%s: worst error %.1e exceeds %.0e", l.Name(), worst, numericTolerance)
	}
	x.Free()
	dy.Free()
}

func noise(r *nn.Rank, name string, dims ...int) *tensor.Tensor {
	t := r.Arena.New(tensor.Activation, r.DType, dims...)
	r.Dev.Normal(tensor.Normal{T: t, Key: nn.Key(5, name), Std: 1, Cols: t.Cols()})
	return t
}

func clone(r *nn.Rank, t *tensor.Tensor) *tensor.Tensor {
	c := r.Arena.New(t.Category(), t.DType(), t.Shape()...)
	r.Dev.Copy(c, t)
	return c
}

func dot(a, b *tensor.Tensor) (sum float64) {
	for i, v := range a.F64() {
		sum += v * b.F64()[i]
	}
	return sum
}
