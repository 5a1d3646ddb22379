package tensor

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// gatings are ways to route 8 experts.
func gatings() map[string]Gating {
	return map[string]Gating{
		"one":        {PerToken: 1, Scale: 1},
		"normalised": {PerToken: 3, Normalise: true, Scale: 1},
		"scaled":     {PerToken: 2, Scale: 16},
		"sigmoid":    {Score: Sigmoid, PerToken: 3, Normalise: true, Scale: 2.5},
		"groups":     {PerToken: 3, Groups: 4, GroupsPerToken: 2, GroupTop: 1, Scale: 1},
		"best two":   {Score: Sigmoid, PerToken: 4, Groups: 4, GroupsPerToken: 2, GroupTop: 2, Normalise: true, Scale: 2},
		"all":        {Score: Sigmoid, PerToken: 8, Scale: 1},
	}
}

// routeTwin routes one row by sorting.
func routeTwin(g Gating, logits, bias []float64) (scores, gate []float64) {
	total := 0.0
	scores = apply(logits, func(v float64) float64 {
		if g.Score == Sigmoid {
			return 1 / (1 + math.Exp(-v))
		}
		total += math.Exp(v)
		return math.Exp(v)
	})
	if g.Score == Softmax {
		scores = apply(scores, func(v float64) float64 { return v / total })
	}
	pick := slices.Clone(scores)
	for i := range bias {
		pick[i] += bias[i]
	}
	if g.Groups > 1 {
		size := len(pick) / g.Groups
		worth := make([]float64, g.Groups)
		for i := range worth {
			for _, e := range descending(pick[i*size : (i+1)*size])[:g.GroupTop] {
				worth[i] += pick[i*size+e]
			}
		}
		for _, i := range descending(worth)[g.GroupsPerToken:] {
			copy(pick[i*size:(i+1)*size], slices.Repeat([]float64{math.Inf(-1)}, size))
		}
	}
	sum := 0.0
	for _, e := range descending(pick)[:g.PerToken] {
		gate = append(gate, scores[e]*g.Scale)
		sum += scores[e]
	}
	if g.Normalise {
		gate = apply(gate, func(v float64) float64 { return v / sum })
	}
	return scores, gate
}

// descending is the indices of x from the largest number to the smallest, equal ones in order.
func descending(x []float64) []int {
	index := make([]int, len(x))
	for i := range index {
		index[i] = i
	}
	slices.SortStableFunc(index, func(a, b int) int {
		switch {
		case x[a] > x[b]:
			return -1
		case x[a] < x[b]:
			return 1
		}
		return 0
	})
	return index
}

func TestRoute(t *testing.T) {
	const experts = 8
	var cases []opCase
	for name, g := range gatings() {
		for _, n := range []int{0, 1, 70} {
			cases = append(cases, opCase{fmt.Sprintf("%s/%d", name, n), func(k *kit) (c trial) {
				x, bias := k.randomOf(k.statistics(), n, experts), k.randomOf(k.statistics(), experts)
				choice, gate := k.arena.New(Activation, Int32, n, g.PerToken), k.randomOf(k.statistics(), n, g.PerToken)
				var scores, gates []float64
				for r, logits := 0, values(x); r < n; r++ {
					s, w := routeTwin(g, logits[r*experts:(r+1)*experts], values(bias))
					scores, gates = append(scores, s...), append(gates, w...)
				}
				c.expect(x, scores)
				c.expect(gate, gates) // tells the choice
				c.call = func() { k.dev.Route(Route{Gating: g, Scores: x, Bias: bias, Choice: choice, Gate: gate}) }
				return c
			}})
		}
	}
	testCases(t, cases)
}

// TestRouteTies wants the lowest index of equal scores, and no trouble with numbers that are none.
func TestRouteTies(t *testing.T) {
	k := newKit(FP32, 1)
	defer k.close()
	inf, nan := math.Inf(1), math.NaN()
	for _, c := range []struct {
		logits []float64
		want   []int32
	}{
		{[]float64{1, 1, 1, 1}, []int32{0, 1}},
		{[]float64{0, 2, 1, 2}, []int32{1, 3}},
		{[]float64{-inf, -inf, -inf, 0}, []int32{3, 0}},
		{[]float64{nan, nan, nan, nan}, nil},
		{[]float64{inf, inf, 0, 0}, nil},
	} {
		x := k.arena.New(Activation, FP32, 1, 4)
		setValues(x, c.logits)
		choice, gate := k.arena.New(Activation, Int32, 1, 2), k.random(1, 2)
		k.dev.Route(Route{Gating: Gating{PerToken: 2, Scale: 1}, Scores: x, Choice: choice, Gate: gate})
		if c.want != nil && !slices.Equal(choice.I32(), c.want) {
			t.Errorf("of %v experts %v are chosen, want %v", c.logits, choice.I32(), c.want)
		}
		for _, e := range choice.I32() {
			if e < 0 || e > 3 {
				t.Errorf("of %v expert %d is chosen", c.logits, e)
			}
		}
	}
}

// TestRouteBackward compares the gradient of Σ weight·gate + Σ push·score by the logits with central differences, with a
// choice that is left out.
func TestRouteBackward(t *testing.T) {
	const rows, experts, length = 5, 8, 3
	for name, g := range gatings() {
		k := newKit(FP64, 1)
		logits, push, weight := k.random(rows, experts), k.random(2, experts), k.random(rows*g.PerToken)
		weight.F64()[0] = 0 // left out
		before := values(logits)
		choice, gate := k.arena.New(Activation, Int32, rows, g.PerToken), k.random(rows, g.PerToken)
		at, pull := k.arena.New(Activation, Int32, rows, g.PerToken), k.random(rows*g.PerToken)
		k.dev.Route(Route{Gating: g, Scores: logits, Choice: choice, Gate: gate})
		for i := range at.I32() { // slots in reverse
			at.I32()[i] = int32(len(at.I32()) - 1 - i)
			pull.F64()[at.I32()[i]] = weight.F64()[i] * gate.F64()[i]
		}
		at.I32()[0] = -1
		value := func(x []float64) (sum float64) {
			for r := range rows {
				s, w := routeTwin(g, x[r*experts:(r+1)*experts], nil)
				total := 1.0
				if g.Score == Sigmoid {
					total = summed(s)
				}
				for j, v := range w {
					sum += weight.F64()[r*g.PerToken+j] * v
				}
				for e, v := range s {
					sum += push.F64()[(1+r)/length*experts+e] * v / total
				}
			}
			return sum
		}
		k.dev.RouteBackward(RouteBackward{
			Gating: g, Scores: logits, Choice: choice, Gate: gate, At: at, Pull: pull, Push: push, First: 1, Length: length,
		})
		for i, got := range logits.F64() {
			const step = 1e-5
			x := slices.Clone(before)
			x[i] += step
			up := value(x)
			x[i] -= 2 * step
			if want := (up - value(x)) / (2 * step); math.Abs(got-want) > 1e-8 {
				t.Errorf("%s: gradient %d is %v, want %v", name, i, got, want)
			}
		}
		k.close()
	}
}

func summed(x []float64) (sum float64) {
	for _, v := range x {
		sum += v
	}
	return sum
}
