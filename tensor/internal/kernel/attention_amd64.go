//go:build amd64 && !noasm

package kernel

import "unsafe"

// panelFits reports whether panels of n columns are two vectors wide.
func (s simd) panelFits(n int) bool {
	if s.wide {
		return n == 32
	}
	return n == 16
}

func (s simd) PanelSoftmax(x, top, sum, keep []float32) {
	p := len(top)
	if !s.panelFits(p) {
		s.portable.PanelSoftmax(x, top, sum, keep)
		return
	}
	if s.wide {
		panelSoftmaxAVX512(len(x)/p, unsafe.SliceData(x), at(top, p), at(sum, p), at(keep, p))
		return
	}
	panelSoftmaxAVX2(len(x)/p, unsafe.SliceData(x), at(top, p), at(sum, p), at(keep, p))
}

func (s simd) PanelScale(x, a []float32) {
	p := len(a)
	if !s.panelFits(p) {
		s.portable.PanelScale(x, a)
		return
	}
	if s.wide {
		panelScaleAVX512(len(x)/p, unsafe.SliceData(x), at(a, p))
		return
	}
	panelScaleAVX2(len(x)/p, unsafe.SliceData(x), at(a, p))
}

func (s simd) PanelGrad(x, dp, lse, delta []float32, scale float32) {
	p, n := len(lse), len(x)
	if !s.panelFits(p) {
		s.portable.PanelGrad(x, dp, lse, delta, scale)
		return
	}
	if s.wide {
		panelGradAVX512(n/p, at(x, n), at(dp, n), at(lse, p), at(delta, p), scale)
		return
	}
	panelGradAVX2(n/p, at(x, n), at(dp, n), at(lse, p), at(delta, p), scale)
}
