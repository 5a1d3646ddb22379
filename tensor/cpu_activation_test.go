package tensor

import (
	"math"
	"testing"
)

func siluTwin(x float64) float64 { return x / (1 + math.Exp(-x)) }

func geluTwin(x float64) float64 {
	return x / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(x+0.044715*x*x*x)))
}

// geluSlopeTwin is the derivative of geluTwin, in tanh.
func geluSlopeTwin(x float64) float64 {
	c := math.Sqrt(2 / math.Pi)
	th := math.Tanh(c * (x + 0.044715*x*x*x))
	return (1+th)/2 + x/2*(1-th*th)*c*(1+3*0.044715*x*x)
}

// apply is f of every element.
func apply(x []float64, f func(float64) float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = f(v)
	}
	return y
}

// gatedTwin is y, dg and du of SwiGLU, given the rows of [g u].
func gatedTwin(x, dy []float64, width int) (y, dx []float64) {
	y, dx = make([]float64, len(x)/2), make([]float64, len(x))
	for i := range y {
		r, c := i/width, i%width
		gi, ui := 2*r*width+c, 2*r*width+c+width
		g, u := x[gi], x[ui]
		y[i] = siluTwin(g) * u
		if dy != nil {
			s := 1 / (1 + math.Exp(-g))
			dx[gi] = dy[i] * u * (s + g*s*(1-s))
			dx[ui] = dy[i] * siluTwin(g)
		}
	}
	return y, dx
}

func TestActivations(t *testing.T) {
	shapes := []struct {
		name       string
		rows, cols int
	}{
		{"small", 3, 5}, {"rows", 41, 344}, {"wide", 2, 5000}, {"empty", 0, 8}, {"no columns", 4, 0},
	}
	var cases []opCase
	for _, s := range shapes {
		cases = append(cases, opCase{"swiglu/" + s.name, func(k *kit) (c trial) {
			x, y := k.random(s.rows, 2*s.cols), k.random(s.rows, s.cols)
			want, _ := gatedTwin(values(x), nil, s.cols)
			c.expect(y, want)
			c.call = func() { k.dev.SwiGLU(y, x) }
			return c
		}}, opCase{"swiglu backward/" + s.name, func(k *kit) (c trial) {
			x, dy, y, dx := k.random(s.rows, 2*s.cols), k.random(s.rows, s.cols), k.random(s.rows, s.cols), k.random(s.rows, 2*s.cols)
			wantY, wantDX := gatedTwin(values(x), values(dy), s.cols)
			c.expect(y, wantY)
			c.expect(dx, wantDX)
			c.call = func() { k.dev.SwiGLUBackward(dx, y, dy, x) }
			return c
		}}, opCase{"swiglu backward in place/" + s.name, func(k *kit) (c trial) {
			x, dy := k.random(s.rows, 2*s.cols), k.random(s.rows, s.cols)
			_, want := gatedTwin(values(x), values(dy), s.cols)
			c.expect(x, want)
			c.call = func() { k.dev.SwiGLUBackward(x, nil, dy, x) }
			return c
		}}, opCase{"gelu/" + s.name, func(k *kit) (c trial) {
			x, y := k.random(s.rows, s.cols), k.random(s.rows, s.cols)
			c.expect(y, apply(values(x), geluTwin))
			c.call = func() { k.dev.GELU(y, x) }
			return c
		}}, opCase{"gelu backward/" + s.name, func(k *kit) (c trial) {
			x, dy, y := k.random(s.rows, s.cols), k.random(s.rows, s.cols), k.random(s.rows, s.cols)
			want := values(dy)
			for i, v := range values(x) {
				want[i] *= geluSlopeTwin(v)
			}
			c.expect(y, apply(values(x), geluTwin))
			c.expect(dy, want)
			c.call = func() { k.dev.GELUBackward(dy, y, dy, x) }
			return c
		}})
	}
	testCases(t, cases)
}
