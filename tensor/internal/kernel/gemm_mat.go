package kernel

import "math"

// at is element (i, j) of the operand.
func (m *Mat) at(i, j int) float64 {
	if m.Trans {
		i, j = j, i
	}
	p := i*m.LD + j
	switch {
	case m.F32 != nil:
		return float64(m.F32[p])
	case m.BF16 != nil:
		return float64(expand(m.BF16[p]))
	default:
		return m.F64[p]
	}
}

// set stores v as element (i, j), rounded to the element type.
func (m *Mat) set(i, j int, v float64) {
	p := i*m.LD + j
	switch {
	case m.F32 != nil:
		m.F32[p] = float32(v)
	case m.BF16 != nil:
		m.BF16[p] = round(float32(v))
	default:
		m.F64[p] = v
	}
}

// expand is the fp32 value of a bf16.
func expand(x uint16) float32 { return math.Float32frombits(uint32(x) << 16) }

// round is the bf16 nearest to x, ties to even; NaN stays a quiet NaN.
func round(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
