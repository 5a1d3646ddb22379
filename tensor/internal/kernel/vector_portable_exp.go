package kernel

import "math"

// exp and sigmoid compute in float64 whatever T is.
func exp[T Float](x T) T { return T(math.Exp(float64(x))) }

func sigmoid[T Float](x T) T { return T(1 / (1 + math.Exp(-float64(x)))) }

func (portable[T]) SwiGLU(y, g, u []T) {
	g, u = g[:len(y)], u[:len(y)]
	for i := range y {
		y[i] = g[i] * sigmoid(g[i]) * u[i]
	}
}

func (portable[T]) SwiGLUGrad(dg, du, y, dy, g, u []T) {
	du, y, dy, g, u = du[:len(dg)], y[:len(dg)], dy[:len(dg)], g[:len(dg)], u[:len(dg)]
	for i := range dg {
		d, a, b := dy[i], g[i], u[i]
		s := sigmoid(a)
		y[i] = a * s * b
		du[i] = d * (a * s)
		dg[i] = d * b * s * (1 + a*(1-s))
	}
}

// GELU's tanh form is x·σ(2z) with z = √(2/π)·(x + 0.044715·x³), because (1+tanh z)/2 = σ(2z).
const (
	geluSlope = 2 * 0.797884560802865355879892119868763736951717262329869315331851659 // 2·√(2/π)
	geluCubic = 0.044715
)

func (portable[T]) GELU(y, x []T) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] = v * sigmoid(geluSlope*v*(1+geluCubic*v*v))
	}
}

func (portable[T]) GELUGrad(dx, y, dy, x []T) {
	y, dy, x = y[:len(dx)], dy[:len(dx)], x[:len(dx)]
	for i := range dx {
		v, d := x[i], dy[i]
		s := sigmoid(geluSlope * v * (1 + geluCubic*v*v))
		y[i] = v * s
		dx[i] = d * s * (1 + v*(1-s)*(geluSlope*(1+3*geluCubic*v*v)))
	}
}

func (portable[T]) Exp(x []T, shift T) T {
	s := 0.0
	for i, v := range x {
		e := exp(v - shift)
		x[i] = e
		s += float64(e)
	}
	return T(s)
}

func (portable[T]) SumExp(x []T, shift T) T {
	s := 0.0
	for _, v := range x {
		s += math.Exp(float64(v - shift))
	}
	return T(s)
}

func (portable[T]) SoftmaxGrad(x []T, shift, scale T) {
	for i, v := range x {
		x[i] = scale * exp(v-shift)
	}
}
