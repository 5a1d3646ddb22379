package tensor

import (
	"fmt"
	"math"
	"testing"
)

// master is the dtype of the optimizer's state.
func (k *kit) master(n int) *Tensor { return k.randomOf(k.statistics(), n) }

func TestAdamW(t *testing.T) {
	var cases []opCase
	for _, n := range []int{0, 1, 100, 5000} {
		cases = append(cases, opCase{fmt.Sprint(n), func(k *kit) (c trial) {
			op := AdamW{
				Master: k.master(n), M: k.master(n), V: k.master(n), Grad: k.random(n),
				Rate: 1e-2, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Correct1: 1 - 0.9*0.9, Correct2: 1 - 0.95*0.95, GradScale: 0.5,
			}
			setValues(op.V, apply(values(op.V), math.Abs))
			p, m, v := values(op.Master), values(op.M), values(op.V)
			for i, g := range values(op.Grad) {
				g *= op.GradScale
				m[i] = op.Beta1*m[i] + (1-op.Beta1)*g
				v[i] = op.Beta2*v[i] + (1-op.Beta2)*g*g
				p[i] -= op.Rate * (m[i]/op.Correct1/(math.Sqrt(v[i]/op.Correct2)+op.Eps) + op.Decay*p[i])
			}
			c.expect(op.Master, p)
			c.expect(op.M, m)
			c.expect(op.V, v)
			if k.dtype == BF16 {
				op.Param = k.random(n)
				c.expect(op.Param, p)
			}
			c.call = func() { k.dev.AdamW(op) }
			return c
		}})
	}
	testCases(t, cases)
}

func TestSGD(t *testing.T) {
	var cases []opCase
	for _, n := range []int{0, 1, 5000} {
		for _, momentum := range []float64{0, 0.9} {
			cases = append(cases, opCase{fmt.Sprint(n, momentum), func(k *kit) (c trial) {
				op := SGD{Master: k.master(n), Grad: k.random(n), Rate: 0.1, Momentum: momentum, Decay: 0.01, GradScale: 2}
				p, m := values(op.Master), make([]float64, n)
				if momentum > 0 {
					op.M = k.master(n)
					m = values(op.M)
				}
				for i, g := range values(op.Grad) {
					m[i] = momentum*m[i] + g*op.GradScale
					p[i] -= op.Rate * (m[i] + op.Decay*p[i])
				}
				c.expect(op.Master, p)
				if op.M != nil {
					c.expect(op.M, m)
				}
				if k.dtype == BF16 {
					op.Param = k.random(n)
					c.expect(op.Param, p)
				}
				c.call = func() { k.dev.SGD(op) }
				return c
			}})
		}
	}
	testCases(t, cases)
}

func TestSquaredNormAndFinite(t *testing.T) {
	for _, d := range []DType{FP32, BF16, FP64} {
		for _, n := range []int{0, 1, 2047, 100003} {
			one, many := newKit(d, 1), newKit(d, 4)
			x, y := one.random(n), many.random(n)
			want := 0.0
			for _, v := range values(x) {
				want += v * v
			}
			got := one.dev.SquaredNorm(x)
			if !near(got, want, 1e-12) {
				t.Errorf("%v %d: squared norm %v, want %v", d, n, got, want)
			}
			if again := many.dev.SquaredNorm(y); again != got {
				t.Errorf("%v %d: squared norm %v with one thread, %v with four", d, n, got, again)
			}
			checkFinite(t, many, y)
			one.close()
			many.close()
		}
	}
}

// checkFinite plants a bad number everywhere that matters.
func checkFinite(t *testing.T, k *kit, x *Tensor) {
	t.Helper()
	if !k.dev.Finite(x) {
		t.Errorf("%v is not finite", x)
	}
	good := values(x)
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, at := range []int{0, len(good) / 2, len(good) - 1} {
			if len(good) == 0 {
				continue
			}
			v := good[at]
			good[at] = bad
			setValues(x, good)
			if k.dev.Finite(x) {
				t.Errorf("%v with %v at %d is finite", x, bad, at)
			}
			good[at] = v
		}
	}
	setValues(x, good)
	if !raceEnabled {
		if n := testing.AllocsPerRun(5, func() { k.dev.Finite(x); k.dev.SquaredNorm(x) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
}
