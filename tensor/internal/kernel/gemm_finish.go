package kernel

import "unsafe"

// plain says that C may be written by tiles themselves.
func (g *Gemm) plain() bool {
	return g.C.BF16 == nil && g.Bias.empty() && g.Residual.empty()
}

// scale is the factor that an Alpha stands for.
func scale(alpha float64) float64 {
	if alpha == 0 {
		return 1
	}
	return alpha
}

// add is what tiles and finishing need to know of w, for the sum over K from a
// unit on: what follows the first part is always added.
func (w Write) add(from int) int {
	if w == Accumulate || from > 0 {
		return 1
	}
	return 0
}

// finish ends row i of C from column j: x holds the sums, and is scratch.
func (g *Gemm) finish(x unsafe.Pointer, i, j, n int) {
	if g.C.F64 != nil {
		finishRow(unsafe.Slice((*float64)(x), n), g, i, j)
		return
	}
	finishRow(unsafe.Slice((*float32)(x), n), g, i, j)
}

func finishRow[T float32 | float64](x []T, g *Gemm, i, j int) {
	addRow(x, &g.Bias, 0, j)
	addRow(x, &g.Residual, i, j)
	if g.Write == Accumulate {
		addRow(x, &g.C, i, j)
	}
	switch p := i*g.C.LD + j; {
	case g.C.F32 != nil:
		for k, v := range x {
			g.C.F32[p+k] = float32(v)
		}
	case g.C.BF16 != nil:
		for k, v := range x {
			g.C.BF16[p+k] = round(float32(v))
		}
	default:
		for k, v := range x {
			g.C.F64[p+k] = float64(v)
		}
	}
}

// addRow adds row i of m from column j, if there is one.
func addRow[T float32 | float64](x []T, m *Mat, i, j int) {
	p := i*m.LD + j
	switch {
	case m.F32 != nil:
		for k, v := range m.F32[p : p+len(x)] {
			x[k] += T(v)
		}
	case m.BF16 != nil:
		for k, v := range m.BF16[p : p+len(x)] {
			x[k] += T(expand(v))
		}
	case m.F64 != nil:
		for k, v := range m.F64[p : p+len(x)] {
			x[k] += T(v)
		}
	}
}

// pointer is the address of the element (i, j) of an fp32 or fp64 matrix and
// its stride in bytes.
func (m *Mat) pointer(i, j int) (p unsafe.Pointer, ld int) {
	if m.F64 != nil {
		return unsafe.Pointer(&m.F64[i*m.LD+j]), m.LD * 8
	}
	return unsafe.Pointer(&m.F32[i*m.LD+j]), m.LD * 4
}

// mergeTile writes or adds the sums at x, whose rows are ld bytes apart, to
// rows × n elements of m from (i, j).
func (m *Mat) mergeTile(x unsafe.Pointer, ld, i, j, rows, n, add int) {
	for r := range rows {
		p := (i+r)*m.LD + j
		row := unsafe.Add(x, r*ld)
		if m.F64 != nil {
			merge(m.F64[p:p+n], unsafe.Slice((*float64)(row), n), add)
		} else {
			merge(m.F32[p:p+n], unsafe.Slice((*float32)(row), n), add)
		}
	}
}

func merge[T float32 | float64](c, x []T, add int) {
	if add == 0 {
		copy(c, x)
		return
	}
	for k, v := range x {
		c[k] += v
	}
}
