//go:build amd64 && !noasm

package kernel

import "unsafe"

func (s simd) SwiGLU(y, g, u []float32) {
	n := len(y)
	if s.wide {
		swiGLUAVX512(n, at(y, n), at(g, n), at(u, n))
		return
	}
	swiGLUAVX2(n, at(y, n), at(g, n), at(u, n))
}

func (s simd) SwiGLUGrad(dg, du, y, dy, g, u []float32) {
	n := len(dg)
	if s.wide {
		swiGLUGradAVX512(n, at(dg, n), at(du, n), at(y, n), at(dy, n), at(g, n), at(u, n))
		return
	}
	swiGLUGradAVX2(n, at(dg, n), at(du, n), at(y, n), at(dy, n), at(g, n), at(u, n))
}

func (s simd) GELU(y, x []float32) {
	n := len(y)
	if s.wide {
		geluAVX512(n, at(y, n), at(x, n))
		return
	}
	geluAVX2(n, at(y, n), at(x, n))
}

func (s simd) GELUGrad(dx, y, dy, x []float32) {
	n := len(dx)
	if s.wide {
		geluGradAVX512(n, at(dx, n), at(y, n), at(dy, n), at(x, n))
		return
	}
	geluGradAVX2(n, at(dx, n), at(y, n), at(dy, n), at(x, n))
}

func (s simd) Exp(x []float32, shift float32) float32 {
	if s.wide {
		return expAVX512(len(x), unsafe.SliceData(x), shift)
	}
	return expAVX2(len(x), unsafe.SliceData(x), shift)
}

func (s simd) SumExp(x []float32, shift float32) float32 {
	if s.wide {
		return sumExpAVX512(len(x), unsafe.SliceData(x), shift)
	}
	return sumExpAVX2(len(x), unsafe.SliceData(x), shift)
}

func (s simd) SoftmaxGrad(x []float32, shift, scale float32) {
	if s.wide {
		softmaxGradAVX512(len(x), unsafe.SliceData(x), shift, scale)
		return
	}
	softmaxGradAVX2(len(x), unsafe.SliceData(x), shift, scale)
}
