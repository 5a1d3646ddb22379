package tensor

import (
	"math"
	"testing"
)

// lossTwin is the statistics of rows of logits.
func lossTwin(x []float64, cols int, targets []int32, start int) (top, sum, target []float64) {
	for r, id := range targets {
		row := x[r*cols : (r+1)*cols]
		m, s, y := math.Inf(-1), 0.0, 0.0
		for _, v := range row {
			m = max(m, v)
		}
		for j, v := range row {
			s += math.Exp(v - m)
			if int(id)-start == j {
				y = v
			}
		}
		top, sum, target = append(top, m), append(sum, s), append(target, y)
	}
	return top, sum, target
}

func TestLoss(t *testing.T) {
	targets := []int32{0, 5, 12, -1, 999, 7, 8}
	var cases []opCase
	for _, cols := range []int{1, 9, 1000} {
		for _, start := range []int{0, 5} {
			cases = append(cases, opCase{"stats", func(k *kit) (c trial) {
				rows := len(targets)
				x, id := k.random(rows, cols), k.ints(targets...)
				stat := func() *Tensor { return k.randomOf(k.statistics(), rows) }
				top, sum, target := stat(), stat(), stat()
				wt, ws, wy := lossTwin(values(x), cols, targets, start)
				c.expect(top, wt)
				c.expect(sum, ws)
				c.expect(target, wy)
				c.call = func() { k.dev.LossStats(top, sum, target, x, id, start) }
				return c
			}}, opCase{"backward", func(k *kit) (c trial) {
				rows := len(targets)
				x, id := k.random(rows, cols), k.ints(targets...)
				top, sum := k.randomOf(k.statistics(), rows), k.randomOf(k.statistics(), rows)
				setValues(sum, apply(values(sum), func(v float64) float64 { return float64(cols) * (1.5 + math.Abs(v)) }))
				vt, vs, want := values(top), values(sum), values(x)
				for i := range want {
					r, j := i/cols, i%cols
					want[i] = 0.25 * math.Exp(want[i]-vt[r]) / vs[r]
					if int(targets[r])-start == j {
						want[i] -= 0.25
					}
					if targets[r] < 0 {
						want[i] = 0
					}
				}
				c.expect(x, want)
				c.call = func() { k.dev.LossBackward(x, top, sum, id, start, 0.25) }
				return c
			}})
		}
	}
	testCases(t, cases)
}

// Two ranks' halves of the vocabulary, merged, give the loss of the whole.
func TestLossOfTwoRanks(t *testing.T) {
	for _, d := range []DType{FP32, FP64} {
		k := newKit(d, 2)
		targets := []int32{3, 39, 20, -1}
		const cols = 40
		x, id := k.random(len(targets), cols), k.ints(targets...)
		setValues(x, apply(values(x), func(v float64) float64 { return 300 * v }))
		stats := func(logits *Tensor, start int) (top, sum, target *Tensor) {
			stat := func() *Tensor { return k.randomOf(d, len(targets)) }
			top, sum, target = stat(), stat(), stat()
			k.dev.LossStats(top, sum, target, logits, id, start)
			return top, sum, target
		}
		want := 0.0
		wt, ws, wy := lossTwin(values(x), cols, targets, 0)
		for r := range targets[:3] {
			want += math.Log(ws[r]) + wt[r] - wy[r]
		}
		half := func(c int) *Tensor {
			h := k.random(len(targets), cols/2)
			k.dev.CopyColumns(whole(h), Columns{x, c, 1, cols / 2})
			return h
		}
		t0, s0, y0 := stats(half(0), 0)
		t1, s1, y1 := stats(half(cols/2), cols/2)
		all := k.randomOf(d, len(targets))
		r := NewReducer()
		r.Reduce([]*Tensor{all}, []*Tensor{t0, t1}, Max, 0, all.Len())
		k.dev.LossMerge(s0, t0, all)
		k.dev.LossMerge(s1, t1, all)
		k.dev.Add(s0, s1)
		k.dev.Add(y0, y1)
		if got := k.dev.Loss(all, s0, y0, id); !near(got, want, tolerances[d]) {
			t.Errorf("%v: loss of two ranks %v, want %v", d, got, want)
		}
		k.close()
	}
}
