package nn

import (
	"math"

	"carve/model"
	"carve/tensor"
)

// rope holds the cosines and sines of rotary position embedding (Su et al., arXiv 2104.09864), shared by all blocks.
// A nil rope turns nothing.
type rope struct{ cos, sin *tensor.Tensor } // [positions D/2]

// newRope makes the tables for positions 0 to positions-1 of heads of the given width.
func newRope(r *Rank, c model.Rope, width, positions int) *rope {
	frequencies, amplitude := ropeFrequencies(c, width)
	t := &rope{
		cos: r.Arena.New(tensor.Workspace, wide(r.DType), positions, width/2),
		sin: r.Arena.New(tensor.Workspace, wide(r.DType), positions, width/2),
	}
	fill(t.cos, func(i int) float64 {
		return amplitude * math.Cos(float64(i/len(frequencies))*frequencies[i%len(frequencies)])
	})
	fill(t.sin, func(i int) float64 {
		return amplitude * math.Sin(float64(i/len(frequencies))*frequencies[i%len(frequencies)])
	})
	return t
}

// fill sets element i of a tensor to f(i).
func fill(t *tensor.Tensor, f func(i int) float64) {
	if t.DType() == tensor.FP64 {
		for i := range t.F64() {
			t.F64()[i] = f(i)
		}
		return
	}
	for i := range t.F32() {
		t.F32()[i] = float32(f(i))
	}
}

// turn rotates the heads of x by their rows' positions.
func (t *rope) turn(r *Rank, b *Batch, x tensor.Columns) {
	if t != nil {
		r.Dev.Rotate(tensor.Rotate{X: x, Cos: t.cos, Sin: t.sin, Pos: b.Positions, S: b.sequence()})
	}
}

// turnBack is the backward of turn.
func (t *rope) turnBack(r *Rank, b *Batch, x tensor.Columns) {
	if t != nil {
		r.Dev.Rotate(tensor.Rotate{X: x, Cos: t.cos, Sin: t.sin, Pos: b.Positions, S: b.sequence(), Inverse: true})
	}
}

// ropeFrequencies returns the angle per position of each of the width/2 pairs, and the factor that multiplies
// cosines and sines (1 but for YaRN).
func ropeFrequencies(c model.Rope, width int) (frequencies []float64, amplitude float64) {
	frequencies = make([]float64, width/2)
	for i := range frequencies {
		frequencies[i] = math.Pow(c.Theta, -2*float64(i)/float64(width))
	}
	switch c.Scaling {
	case model.NoScaling:
	case model.LinearScaling:
		for i := range frequencies {
			frequencies[i] /= c.Factor
		}
	case model.Llama3Scaling:
		scaleLlama3(frequencies, c)
	case model.YarnScaling:
		scaleYarn(frequencies, c, width)
		return frequencies, yarnAmplitude(c)
	}
	return frequencies, 1
}

// scaleLlama3 divides the frequencies that turn fewer than LowFrequency times within the original context by Factor,
// keeps those that turn more than HighFrequency times, and blends between (Llama 3.1's reference code).
func scaleLlama3(frequencies []float64, c model.Rope) {
	for i, f := range frequencies {
		turns := float64(c.OriginalContext) * f / (2 * math.Pi)
		keep := clamp((turns - c.LowFrequency) / (c.HighFrequency - c.LowFrequency))
		frequencies[i] = keep*f + (1-keep)*f/c.Factor
	}
}

// scaleYarn blends by pair index instead of frequency (Peng et al., arXiv 2309.00071, "NTK-by-parts"; the bounds are
// rounded outwards as in Hugging Face's code).
func scaleYarn(frequencies []float64, c model.Rope, width int) {
	bound := func(turns float64) float64 {
		return float64(width) * math.Log(float64(c.OriginalContext)/(turns*2*math.Pi)) / (2 * math.Log(c.Theta))
	}
	low := max(math.Floor(bound(c.BetaFast)), 0)
	high := min(math.Ceil(bound(c.BetaSlow)), float64(width-1))
	if low == high {
		high += 0.001
	}
	for i, f := range frequencies {
		divide := clamp((float64(i) - low) / (high - low))
		frequencies[i] = (1-divide)*f + divide*f/c.Factor
	}
}

// yarnAmplitude is the attention factor of YaRN: given, or from the m-scales, or 0.1·ln(factor)+1.
func yarnAmplitude(c model.Rope) float64 {
	scale := func(m float64) float64 {
		if c.Factor <= 1 {
			return 1
		}
		return 0.1*m*math.Log(c.Factor) + 1
	}
	switch {
	case c.AttentionFactor != 0:
		return c.AttentionFactor
	case c.MScale != 0 && c.MScaleAllDim != 0:
		return scale(c.MScale) / scale(c.MScaleAllDim)
	}
	return scale(1)
}

// clamp limits v to [0, 1].
func clamp(v float64) float64 { return max(0, min(1, v)) }
