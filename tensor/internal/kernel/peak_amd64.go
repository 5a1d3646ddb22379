//go:build amd64 && !noasm

package kernel

import "time"

// peakChains is the number of independent multiply-adds of a turn of the generated loops.
const peakChains = 12

// peakVector measures the generated loops that the features allow.
func peakVector(f Features, budget time.Duration) (p Peak, ok bool) {
	const f32, pairs = 2 * peakChains * peakTurns, 4 * peakChains * peakTurns // FLOPs a lane
	switch {
	case f.AVX512:
		p.F32 = fastest(budget, 16*f32, func() { peakF32AVX512(peakTurns) })
	case f.AVX2:
		p.F32 = fastest(budget, 8*f32, func() { peakF32AVX2(peakTurns) })
	default:
		return p, false
	}
	if f.AVX512 && f.BF16 {
		p.BF16 = fastest(budget, 16*pairs, func() { peakBF16AVX512(peakTurns) })
	}
	return p, true
}
