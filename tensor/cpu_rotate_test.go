package tensor

import (
	"math"
	"testing"
)

// angles is cos and sin of n positions, [n half].
func (k *kit) angles(n, half int) (cos, sin *Tensor) {
	cos, sin = k.arena.New(Activation, k.statistics(), n, half), k.arena.New(Activation, k.statistics(), n, half)
	var c, s []float64
	for p := range n {
		for i := range half {
			a := float64(p) * math.Pow(10000, -float64(i)/float64(half))
			c, s = append(c, math.Cos(a)), append(s, math.Sin(a))
		}
	}
	setValues(cos, c)
	setValues(sin, s)
	return cos, sin
}

// rotateTwin turns pair (i, i+D/2) as a complex number.
func rotateTwin(op Rotate) []float64 {
	v := values(op.X.T)
	cos, sin, half := values(op.Cos), values(op.Sin), op.X.Width/2
	runs(op.X, func(run, at int) {
		r := run / op.X.Heads
		p := r % op.S
		if op.Pos != nil {
			p = int(op.Pos.I32()[r%op.Pos.Len()])
		}
		for i := range half {
			turn := complex(cos[p*half+i], sin[p*half+i])
			if op.Inverse {
				turn = complex(real(turn), -imag(turn))
			}
			z := complex(v[at+i], v[at+i+half]) * turn
			v[at+i], v[at+i+half] = real(z), imag(z)
		}
	})
	return v
}

func TestRotate(t *testing.T) {
	trialOf := func(k *kit, op Rotate) (c trial) {
		c.expect(op.X.T, rotateTwin(op))
		c.call = func() { k.dev.Rotate(op) }
		return c
	}
	testCases(t, []opCase{
		{"repeated sequence", func(k *kit) trial {
			cos, sin := k.angles(9, 32)
			return trialOf(k, Rotate{X: Columns{k.random(27, 200), 3, 3, 64}, Cos: cos, Sin: sin, S: 9})
		}},
		{"inverse", func(k *kit) trial {
			cos, sin := k.angles(9, 5)
			return trialOf(k, Rotate{X: Columns{k.random(18, 20), 0, 2, 10}, Cos: cos, Sin: sin, S: 9, Inverse: true})
		}},
		{"positions of a sequence", func(k *kit) trial {
			cos, sin := k.angles(9, 8)
			return trialOf(k, Rotate{X: Columns{k.random(6, 16), 0, 1, 16}, Cos: cos, Sin: sin, S: 3, Pos: k.ints(0, 1, 8)})
		}},
		{"positions of every row", func(k *kit) trial {
			cos, sin := k.angles(9, 8)
			return trialOf(k, Rotate{X: Columns{k.random(6, 16), 0, 1, 16}, Cos: cos, Sin: sin, S: 3, Pos: k.ints(0, 1, 8, 3, 2, 2)})
		}},
		{"empty", func(k *kit) trial {
			cos, sin := k.angles(1, 8)
			return trialOf(k, Rotate{X: Columns{k.random(0, 16), 0, 1, 16}, Cos: cos, Sin: sin, S: 1})
		}},
	})
}
