//go:build amd64 && !noasm

package kernel

func (s simd) AdamW(p, m, v, g []float32, a AdamStep) {
	n := len(p)
	rate, b1, b2, eps, decay := float32(a.Rate), float32(1-a.Beta1), float32(1-a.Beta2), float32(a.Eps), float32(a.Decay)
	c1, c2, scale := float32(a.Correct1), float32(a.Correct2), float32(a.GradScale)
	if s.wide {
		adamWAVX512(n, at(p, n), at(m, n), at(v, n), at(g, n), rate, b1, b2, eps, decay, c1, c2, scale)
		return
	}
	adamWAVX2(n, at(p, n), at(m, n), at(v, n), at(g, n), rate, b1, b2, eps, decay, c1, c2, scale)
}

func (s simd) SGD(p, m, g []float32, a SGDStep) {
	n := len(p)
	rate, momentum, decay, scale := float32(a.Rate), float32(a.Momentum), float32(a.Decay), float32(a.GradScale)
	if s.wide {
		sgdAVX512(n, at(p, n), at(m, n), at(g, n), rate, momentum, decay, scale)
		return
	}
	sgdAVX2(n, at(p, n), at(m, n), at(g, n), rate, momentum, decay, scale)
}
