package optim_test

import (
	"math"
	"strings"
	"testing"

	"carve/comm"
	"carve/nn"
	"carve/optim"
	"carve/tensor"
)

// TestMuonIsOrthogonal looks at one update without momentum or decay: divided by its factor, the update of a matrix
// [m n] must have all singular values near 1, so that the smaller of O·Oᵀ and Oᵀ·O is near the identity.
func TestMuonIsOrthogonal(t *testing.T) {
	r, m := alone(t, tensor.FP64)
	before := map[string][]float64{}
	for _, p := range m.Params() {
		before[p.Name] = values(p.Value)
	}
	o := stateOf(t, r, m, optim.MuonOptions{})
	draw(r, m, 1)
	const rate = 1e-2
	o.Step(rate, 1)
	for _, p := range m.Params() {
		if p.Kind != nn.Matrix {
			continue
		}
		rows, cols := p.Shape[0], p.Shape[1]
		update := make([]float64, rows*cols)
		for i, v := range values(p.Value) {
			update[i] = (before[p.Name][i] - v) / (rate * 0.2 * math.Sqrt(float64(max(rows, cols))))
		}
		// The sum of squared singular values is n when all are 1; Jordan's coefficients leave them in [0.7, 1.2].
		square := 0.0
		for _, v := range update {
			square += v * v
		}
		if mean := square / float64(min(rows, cols)); mean < 0.5 || mean > 1.45 {
			t.Errorf("%s: mean squared singular value %.2f", p.Name, mean)
		}
		if v := quadratic(update, rows, cols); v > 1.25 {
			t.Errorf("%s: largest singular value %.2f", p.Name, v)
		}
	}
}

// quadratic is the largest singular value of a matrix, by power iteration.
func quadratic(a []float64, rows, cols int) float64 {
	x := make([]float64, cols)
	for i := range x {
		x[i] = 1 + float64(i%3)
	}
	size := 0.0
	for range 50 {
		y, z := make([]float64, rows), make([]float64, cols)
		for i := range y {
			for j := range x {
				y[i] += a[i*cols+j] * x[j]
			}
		}
		size = 0
		for j := range z {
			for i := range y {
				z[j] += a[i*cols+j] * y[i]
			}
			size += z[j] * z[j]
		}
		size = math.Sqrt(size)
		for j := range x {
			x[j] = z[j] / size
		}
	}
	return math.Sqrt(size)
}

// TestMuonEqualsOneRank holds owned and broadcast matrices to one rank that has them all.
func TestMuonEqualsOneRank(t *testing.T) {
	j := newJob()
	j.algorithm = muon()
	for _, d := range precisions() {
		want := j.run(t, layout{dtype: d.dtype})
		for _, l := range muonLayouts() {
			l.dtype = d.dtype
			if worst, where := want.distance(j.run(t, l)); worst > d.tolerance {
				t.Errorf("%v: %s differs by %.1e, tolerance %.0e", l, where, worst, d.tolerance)
			}
		}
	}
}

// muonLayouts deal matrices out whole.
func muonLayouts() []layout {
	all := []layout{{dp: 2}, {dp: 4, micro: 3}, {dp: 2, state: optim.Options{Mode: optim.Server}}, {tp: 2}, {tp: 4, dp: 2}}
	for stage := optim.ShardOptimizer; stage <= optim.ShardParameters; stage++ {
		o := optim.Options{Stage: stage, Ownership: optim.WholeTensor, Prefetch: 1}
		all = append(all, layout{dp: 3, micro: 2, state: o})
		o.Hybrid = 2
		all = append(all, layout{dp: 4, state: o})
		all = append(all, layout{dp: 2, tp: 2, rows: true, micro: 2, state: o})
	}
	return all
}

func TestMuonRefusesRanges(t *testing.T) {
	r, m := alone(t, tensor.FP32)
	o := optim.Options{Algorithm: muon(), Stage: optim.ShardOptimizer}
	if _, err := optim.NewState(r, m, o); err != nil {
		t.Errorf("one rank has all of every range: %v", err)
	}
	r.Groups.Data = comm.NewGroup("data", []int{0, 1}, 0, nil)
	_, err := optim.NewState(r, m, o)
	if err == nil || !strings.Contains(err.Error(), "use ownership tensor") {
		t.Errorf("error %v does not name the remedy", err)
	}
}
