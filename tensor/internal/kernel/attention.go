package kernel

import (
	"math"
	"unsafe"
)

// PanelWidth is the number of columns that a product takes at once when it computes in T. A PackedB of at most that
// many columns is K rows of PanelWidth elements, one after the other, so that what one Block wrote can be another's B.
func PanelWidth[T Float](c *Context) int { return engineOf[T](c).width }

func engineOf[T Float](c *Context) *engine {
	if unsafe.Sizeof(T(0)) == 8 {
		return &c.engines.f64
	}
	return &c.engines.f32
}

// Lay writes op(a) [rows cols] to dst, row by row, ld elements apart; bf16 is expanded. It is for the inside of a Task.
func Lay[T Float](c *Context, dst []T, ld int, a Mat, rows, cols int) {
	a.check("A", rows, cols)
	if rows == 0 || cols == 0 {
		return
	}
	_ = dst[(rows-1)*ld+cols-1]
	e := engineOf[T](c)
	s := e.source(&a, cols, a.Trans)
	e.packA(unsafe.Pointer(unsafe.SliceData(dst)), ld*e.unit, &s, 0, cols, 0, rows)
}

// LayWidth is the least distance of rows of n elements that spreads them over the sets of a cache.
func LayWidth[T Float](n int) int {
	size := int(unsafe.Sizeof(T(0)))
	return oddLines(n*size) / size
}

func (portable[T]) PanelSoftmax(s, top, sum, keep []T) {
	p := len(top)
	sum, keep = sum[:p], keep[:p]
	for i, old := range top {
		t := old
		for j := i; j < len(s); j += p {
			t = max(t, s[j])
		}
		shift := max(t, T(-math.MaxFloat32))
		keep[i] = exp(old - shift)
		total := float64(sum[i]) * float64(keep[i])
		for j := i; j < len(s); j += p {
			s[j] = exp(s[j] - shift)
			total += float64(s[j])
		}
		top[i], sum[i] = t, T(total)
	}
}

func (portable[T]) PanelScale(x, a []T) {
	p := len(a)
	for ; len(x) >= p; x = x[p:] {
		row := x[:p]
		for i, f := range a {
			row[i] *= f
		}
	}
}

func (portable[T]) PanelGrad(s, dp, lse, delta []T, scale T) {
	p := len(lse)
	delta = delta[:p]
	for ; len(s) >= p; s, dp = s[p:], dp[p:] {
		row, grad := s[:p], dp[:p]
		for i, l := range lse {
			e := exp(row[i] - l)
			row[i], grad[i] = e, e*(grad[i]-delta[i])*scale
		}
	}
}
