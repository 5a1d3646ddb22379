package kernel

import "math"

// portable is Vector in plain Go. It is what every CPU without assembly and every fp64 tensor uses, and what the
// assembly is tested against. Sums are kept in float64.
type portable[T Float] struct{}

// Vector64 is the arithmetic on float64.
func Vector64() Vector[float64] { return portable[float64]{} }

func (portable[T]) Fill(dst []T, v T) {
	for i := range dst {
		dst[i] = v
	}
}

func (portable[T]) Add(dst, x []T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += x[i]
	}
}

func (portable[T]) AddScaled(dst []T, a T, x []T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] += a * x[i]
	}
}

func (portable[T]) Scale(dst []T, a T, x []T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = a * x[i]
	}
}

func (portable[T]) Widen(dst []T, x []uint16) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = T(expand(x[i]))
	}
}

func (portable[T]) Narrow(dst []uint16, x []T) {
	x = x[:len(dst)]
	for i := range dst {
		dst[i] = round(towardOdd(float64(x[i])))
	}
}

// towardOdd is x in fp32, with the last bit set when x lies between two fp32 numbers, so that rounding once more to
// bf16 is as if x had been rounded once.
func towardOdd(x float64) float32 {
	y := float32(x)
	if float64(y) == x || x != x {
		return y
	}
	bits := math.Float32bits(y)
	if math.Abs(float64(y)) > math.Abs(x) {
		bits-- // round toward zero first
	}
	return math.Float32frombits(bits | 1)
}

func (portable[T]) Rotate(a, b, c, s []T) {
	b, c, s = b[:len(a)], c[:len(a)], s[:len(a)]
	for i, x := range a {
		y := b[i]
		a[i], b[i] = x*c[i]-y*s[i], y*c[i]+x*s[i]
	}
}

func (portable[T]) Unrotate(a, b, c, s []T) {
	b, c, s = b[:len(a)], c[:len(a)], s[:len(a)]
	for i, x := range a {
		y := b[i]
		a[i], b[i] = x*c[i]+y*s[i], y*c[i]-x*s[i]
	}
}

func (portable[T]) Sum(x []T) float64 {
	s := 0.0
	for _, v := range x {
		s += float64(v)
	}
	return s
}

func (portable[T]) SumSquares(x []T) float64 {
	s := 0.0
	for _, v := range x {
		s += float64(v) * float64(v)
	}
	return s
}

func (portable[T]) Dot(x, y []T) T {
	y = y[:len(x)]
	s := 0.0
	for i, v := range x {
		s += float64(v) * float64(y[i])
	}
	return T(s)
}

func (portable[T]) Largest(x []T) T {
	m := T(math.Inf(-1))
	for _, v := range x {
		m = max(m, v)
	}
	return m
}

func (portable[T]) Finite(x []T) bool {
	for _, v := range x {
		if v-v != 0 {
			return false
		}
	}
	return true
}
