package optim_test

import (
	"math"
	"slices"
	"testing"

	"carve/mesh"
	"carve/optim"
)

// block is a part of a global tensor.
type block struct {
	name   string
	shape  []int
	region mesh.Region
	values []float64
	owned  bool
}

// blocks copies pieces.
func blocks(pieces []optim.Piece) (out []block) {
	for _, p := range pieces {
		name := p.Param.Name
		if p.Kind != optim.Value && p.Kind != optim.Gradient {
			name = string(p.Kind) + " " + name
		}
		out = append(out, block{name, p.Param.Shape, p.Region, values(p.Tensor), p.Owned})
	}
	return out
}

// cover writes owned blocks into the global tensors and wants every element to have one owner.
func cover(t testing.TB, workers []*worker, tensors map[string][]float64, of func(*worker) []block) {
	t.Helper()
	owners := map[string][]float64{}
	for _, w := range workers {
		for _, b := range of(w) {
			if !b.owned {
				continue
			}
			n := 1
			for _, d := range b.shape {
				n *= d
			}
			if tensors[b.name] == nil {
				tensors[b.name], owners[b.name] = make([]float64, n), make([]float64, n)
			}
			for i, v := range b.values {
				at := b.at(i)
				owners[b.name][at]++
				tensors[b.name][at] = v
			}
		}
	}
	for name, list := range owners {
		for i, n := range list {
			if n != 1 {
				t.Fatalf("element %d of %s has %v owners", i, name, n)
			}
		}
	}
}

// at is where element i of a block is in the global tensor.
func (b *block) at(i int) (at int) {
	scale := 1
	for dim, v := range slices.Backward(b.shape) {
		n := b.region[dim].Len()
		at += (b.region[dim].Start + i%n) * scale
		i /= n
		scale *= v
	}
	return at
}

// distance is the worst difference of two tensors, relative to the largest element.
func distance(x, y []float64) float64 {
	size, diff := 1e-3, 0.0
	for i := range x {
		size = max(size, math.Abs(x[i]))
		diff = max(diff, math.Abs(x[i]-y[i]))
		if math.IsNaN(x[i] - y[i]) {
			diff = math.Inf(1)
		}
	}
	return diff / size
}

// distance is the worst difference of two runs, each tensor relative to its largest element, and where it is.
func (a result) distance(b result) (worst float64, where string) {
	see := func(name string, x, y []float64) {
		if d := distance(x, y); d > worst {
			worst, where = d, name
		}
	}
	see("loss", a.losses, b.losses)
	see("gradient norm", a.norms, b.norms)
	for name := range a.grads {
		see("gradient of "+name, a.grads[name], b.grads[name])
		see("value of "+name, a.params[name], b.params[name])
	}
	return worst, where
}
