package kernel

import "unsafe"

// form is what packing makes of the elements of an operand: units along K.
type form uint8

const (
	formKeep   form = iota // fp32 or fp64 as it is
	formExpand             // bf16 to fp32
	formPairs              // two bf16, adjacent along K, to one unit of four bytes
	forms
)

// tileFunc multiplies up to engine.rows rows of A, one panel of B and k units:
//
//	for i := range rows {
//		for j := range width {
//			s := 0
//			for p := range k {
//				s = fma(A[i,p], B[p,j], s)
//			}
//			C[i,j] = alpha*s    // or += alpha*s, if add is not 0
//		}
//	}
//
// Strides are in bytes. B and C are read and written in whole width.
type tileFunc func(rows int, a *byte, lda int, ka int, b *byte, ldb int, next int, k int, c *byte, ldc int, alpha float64, add int)

// panelsFunc splits k rows of units into n panels of width, which lie stride
// bytes apart and hold one row after another.
type panelsFunc func(dst *byte, stride int, src *byte, ld int, k int, n int)

// transposeFunc transposes lanes rows of n·lanes units.
type transposeFunc func(dst *byte, dstLD int, src *byte, srcLD int, n int)

// engine is one kind of arithmetic: the tile and how operands are packed for it.
type engine struct {
	rows, width int // of a tile
	unit        int // bytes of a unit
	per         int // elements along K in a unit
	depth       int // most units between two visits of C

	tile tileFunc
	half tileFunc // half the width, with the same panels; nil if there is none

	lanes     int // units in a vector
	panels    [forms]panelsFunc
	transpose [forms]transposeFunc
}

// form says what packing for e makes of m.
func (e *engine) form(m *Mat) form {
	switch {
	case m.BF16 == nil:
		return formKeep
	case e.per == 2:
		return formPairs
	default:
		return formExpand
	}
}

// The engines that need no assembly.
func portable32() engine {
	return engine{rows: 4, width: 4, unit: 4, per: 1, depth: 256, tile: tilePortable[float32]}
}

func portable64() engine {
	return engine{rows: 4, width: 4, unit: 8, per: 1, depth: 256, tile: tilePortable[float64]}
}

// engines are the arithmetics of a context.
type engines struct {
	f32, bf16, f64 engine
	pairs          bool // products of two bf16 operands use bf16
}

// of chooses the engine for a product. Operands without elements may have no dtype; the result has.
func (s *engines) of(g *Gemm) *engine {
	a, b := &g.A, &g.B
	switch {
	case a.F64 != nil || b.F64 != nil || g.C.F64 != nil:
		return &s.f64
	case s.pairs && a.BF16 != nil && b.BF16 != nil:
		return &s.bf16
	default:
		return &s.f32
	}
}

// tilePortable is the tile of four by four in Go.
func tilePortable[T float32 | float64](rows int, a *byte, lda int, ka int, b *byte, ldb int, _ int, k int, c *byte, ldc int, alpha float64, add int) {
	bs := unsafe.Pointer(b)
	for i := range rows {
		var s [4]T
		as := unsafe.Add(unsafe.Pointer(a), i*lda)
		for p := range k {
			x := *(*T)(unsafe.Add(as, p*ka))
			row := (*[4]T)(unsafe.Add(bs, p*ldb))
			s[0] += x * row[0]
			s[1] += x * row[1]
			s[2] += x * row[2]
			s[3] += x * row[3]
		}
		for j := range s {
			s[j] *= T(alpha)
		}
		out := (*[4]T)(unsafe.Add(unsafe.Pointer(c), i*ldc))
		if add == 0 {
			*out = s
			continue
		}
		for j, x := range s {
			out[j] += x
		}
	}
}
