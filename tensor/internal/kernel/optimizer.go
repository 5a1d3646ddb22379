package kernel

import "math"

func (portable[T]) AdamW(p, m, v, g []T, s AdamStep) {
	m, v, g = m[:len(p)], v[:len(p)], g[:len(p)]
	rate, eps, decay, grow := T(s.Rate), T(s.Eps), T(s.Decay), T(s.Correct1)
	b1, b2 := T(1-s.Beta1), T(1-s.Beta2)
	scale, correct := T(s.GradScale), T(s.Correct2)
	for i := range p {
		d := g[i] * scale
		m[i] += b1 * (d - m[i])
		v[i] += b2 * (d*d - v[i])
		p[i] -= rate * (m[i]*grow/(sqrt(v[i]*correct)+eps) + decay*p[i])
	}
}

func (portable[T]) SGD(p, m, g []T, s SGDStep) {
	m, g = m[:len(p)], g[:len(p)]
	rate, mu, decay, scale := T(s.Rate), T(s.Momentum), T(s.Decay), T(s.GradScale)
	for i := range p {
		m[i] = mu*m[i] + g[i]*scale
		p[i] -= rate * (m[i] + decay*p[i])
	}
}

func sqrt[T Float](x T) T { return T(math.Sqrt(float64(x))) }
