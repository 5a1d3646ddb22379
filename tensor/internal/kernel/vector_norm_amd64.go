//go:build amd64 && !noasm

package kernel

import "unsafe"

func (s simd) MeanSquare(x []float32) float32 {
	if s.wide {
		return squaresAVX512(len(x), unsafe.SliceData(x)) / float32(len(x))
	}
	return squaresAVX2(len(x), unsafe.SliceData(x)) / float32(len(x))
}

func (s simd) Moments(x []float32) (mean, variance float32) {
	n := float32(len(x))
	if s.wide {
		mean = totalAVX512(len(x), unsafe.SliceData(x)) / n
		return mean, centredAVX512(len(x), unsafe.SliceData(x), mean) / n
	}
	mean = totalAVX2(len(x), unsafe.SliceData(x)) / n
	return mean, centredAVX2(len(x), unsafe.SliceData(x), mean) / n
}

func (s simd) RMSApply(y, x, w []float32, r float32) {
	n := len(y)
	if s.wide {
		rmsApplyAVX512(n, at(y, n), at(x, n), at(w, n), r)
		return
	}
	rmsApplyAVX2(n, at(y, n), at(x, n), at(w, n), r)
}

func (s simd) RMSDot(dy, w, x []float32) float32 {
	n := len(dy)
	if s.wide {
		return rmsDotAVX512(n, at(dy, n), at(w, n), at(x, n))
	}
	return rmsDotAVX2(n, at(dy, n), at(w, n), at(x, n))
}

func (s simd) RMSGrad(dx, dw, dy, w, x []float32, r, k float32) {
	n := len(dx)
	if s.wide {
		rmsGradAVX512(n, at(dx, n), at(dw, n), at(dy, n), at(w, n), at(x, n), r, k)
		return
	}
	rmsGradAVX2(n, at(dx, n), at(dw, n), at(dy, n), at(w, n), at(x, n), r, k)
}

func (s simd) LayerApply(y, x, w, b []float32, mean, r float32) {
	n := len(y)
	if s.wide {
		layerApplyAVX512(n, at(y, n), at(x, n), at(w, n), at(b, n), mean, r)
		return
	}
	layerApplyAVX2(n, at(y, n), at(x, n), at(w, n), at(b, n), mean, r)
}

func (s simd) LayerSums(dy, w, x []float32, mean, r float32) (g, gx float32) {
	n := len(dy)
	if s.wide {
		return layerSumsAVX512(n, at(dy, n), at(w, n), at(x, n), mean, r)
	}
	return layerSumsAVX2(n, at(dy, n), at(w, n), at(x, n), mean, r)
}

func (s simd) LayerGrad(dx, dw, db, dy, w, x []float32, mean, r, g, gx float32) {
	n := len(dx)
	if s.wide {
		layerGradAVX512(n, at(dx, n), at(dw, n), at(db, n), at(dy, n), at(w, n), at(x, n), mean, r, g, gx)
		return
	}
	layerGradAVX2(n, at(dx, n), at(dw, n), at(db, n), at(dy, n), at(w, n), at(x, n), mean, r, g, gx)
}
