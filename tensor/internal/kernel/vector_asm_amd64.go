//go:build amd64 && !noasm

package kernel

import (
	"math"
	"unsafe"
)

// Vector32 is the fastest arithmetic on float32 that the features allow.
func Vector32(f Features) Vector[float32] {
	switch {
	case f.AVX512:
		return simd{wide: true}
	case f.AVX2:
		return simd{}
	}
	return portable[float32]{}
}

// simd is Vector in AVX2 or, if wide, AVX-512. Sums are kept in float32, one per lane and copy of the unrolled loop, but
// for those that are float64 by contract.
type simd struct {
	portable[float32]
	wide bool
}

// at is a pointer to the elements of x, of which there must be n: what the slicing of the portable loops checks.
func at[T any](x []T, n int) *T { return unsafe.SliceData(x[:n]) }

func (s simd) Fill(dst []float32, v float32) {
	if s.wide {
		fillAVX512(len(dst), unsafe.SliceData(dst), v)
		return
	}
	fillAVX2(len(dst), unsafe.SliceData(dst), v)
}

func (s simd) Add(dst, x []float32) {
	n := len(dst)
	if s.wide {
		addAVX512(n, at(dst, n), at(x, n))
		return
	}
	addAVX2(n, at(dst, n), at(x, n))
}

func (s simd) AddScaled(dst []float32, a float32, x []float32) {
	n := len(dst)
	if s.wide {
		addScaledAVX512(n, at(dst, n), at(x, n), a)
		return
	}
	addScaledAVX2(n, at(dst, n), at(x, n), a)
}

func (s simd) Scale(dst []float32, a float32, x []float32) {
	n := len(dst)
	if s.wide {
		scaleAVX512(n, at(dst, n), at(x, n), a)
		return
	}
	scaleAVX2(n, at(dst, n), at(x, n), a)
}

func (s simd) Rotate(a, b, c, d []float32) {
	n := len(a)
	if s.wide {
		rotateAVX512(n, at(a, n), at(b, n), at(c, n), at(d, n))
		return
	}
	rotateAVX2(n, at(a, n), at(b, n), at(c, n), at(d, n))
}

func (s simd) Unrotate(a, b, c, d []float32) {
	n := len(a)
	if s.wide {
		unrotateAVX512(n, at(a, n), at(b, n), at(c, n), at(d, n))
		return
	}
	unrotateAVX2(n, at(a, n), at(b, n), at(c, n), at(d, n))
}

func (s simd) Widen(dst []float32, x []uint16) {
	n := len(dst)
	if s.wide {
		widenAVX512(n, at(dst, n), at(x, n))
		return
	}
	m := n &^ 7
	widenAVX2(m, at(dst, m), at(x, m))
	widen(dst[m:], x[m:n])
}

func (s simd) Narrow(dst []uint16, x []float32) {
	n := len(dst)
	if s.wide {
		narrowAVX512(n, at(dst, n), at(x, n))
		return
	}
	m := n &^ 7
	narrowAVX2(m, at(dst, m), at(x, m))
	narrow(dst[m:], x[m:n])
}

func (s simd) Sum(x []float32) float64 {
	if s.wide {
		return sumAVX512(len(x), unsafe.SliceData(x))
	}
	return sumAVX2(len(x), unsafe.SliceData(x))
}

func (s simd) SumSquares(x []float32) float64 {
	if s.wide {
		return sumSquaresAVX512(len(x), unsafe.SliceData(x))
	}
	return sumSquaresAVX2(len(x), unsafe.SliceData(x))
}

func (s simd) Dot(x, y []float32) float32 {
	n := len(x)
	if s.wide {
		return dotAVX512(n, at(x, n), at(y, n))
	}
	return dotAVX2(n, at(x, n), at(y, n))
}

func (s simd) Largest(x []float32) float32 {
	if s.wide {
		return largestAVX512(len(x), unsafe.SliceData(x))
	}
	return largestAVX2(len(x), unsafe.SliceData(x))
}

// Finite holds if the largest absolute value, compared as an integer, is below that of infinity.
func (s simd) Finite(x []float32) bool {
	const infinity = 0x7f800000
	if s.wide {
		return math.Float32bits(largestBitsAVX512(len(x), unsafe.SliceData(x))) < infinity
	}
	return math.Float32bits(largestBitsAVX2(len(x), unsafe.SliceData(x))) < infinity
}
