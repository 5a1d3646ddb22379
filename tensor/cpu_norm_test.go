package tensor

import (
	"math"
	"testing"
)

// runs calls f for every run of c with the index of its first element.
func runs(c Columns, f func(run, at int)) {
	for r := range c.T.Rows() {
		for h := range c.Heads {
			f(r*c.Heads+h, r*c.T.Cols()+c.Start+h*c.Width)
		}
	}
}

// normTwin is the forward of either norm in float64.
type normTwin struct{ y, mean, rstd []float64 }

func forwardTwin(x Columns, w, b []float64, eps float64) normTwin {
	vx := values(x.T)
	n := x.T.Rows() * x.Heads
	t := normTwin{make([]float64, n*x.Width), make([]float64, n), make([]float64, n)}
	runs(x, func(run, at int) {
		v := vx[at : at+x.Width]
		if b != nil {
			for _, e := range v {
				t.mean[run] += e / float64(x.Width)
			}
		}
		s := 0.0
		for _, e := range v {
			s += (e - t.mean[run]) * (e - t.mean[run])
		}
		t.rstd[run] = 1 / math.Sqrt(s/float64(x.Width)+eps)
		for i, e := range v {
			y := (e - t.mean[run]) * t.rstd[run] * w[i]
			if b != nil {
				y += b[i]
			}
			t.y[run*x.Width+i] = y
		}
	})
	return t
}

// scatter is the values of c's tensor with the runs replaced.
func scatter(c Columns, x []float64) []float64 {
	v := values(c.T)
	runs(c, func(run, at int) { copy(v[at:at+c.Width], x[run*c.Width:]) })
	return v
}

// gather is the runs of c, one after the other.
func gather(c Columns) []float64 {
	v := values(c.T)
	var x []float64
	runs(c, func(_, at int) { x = append(x, v[at:at+c.Width]...) })
	return x
}

// normShapes are the runs that norms are tested on.
var normShapes = []struct {
	name                            string
	rows, cols, start, heads, width int
}{
	{"block", 37, 64, 0, 1, 64},
	{"one row", 1, 5, 0, 1, 5},
	{"odd width", 70, 333, 0, 1, 333},
	{"heads inside", 19, 100, 7, 3, 24},
	{"empty", 0, 16, 0, 1, 16},
}

func TestNorms(t *testing.T) {
	const eps = 1e-5
	var cases []opCase
	for _, s := range normShapes {
		cases = append(cases, opCase{"rms/" + s.name, func(k *kit) (c trial) {
			x := Columns{k.random(s.rows, s.cols), s.start, s.heads, s.width}
			y := Columns{k.random(s.rows, s.cols), s.start, s.heads, s.width}
			op := Norm{Y: y, X: x, W: k.random(s.width), RStd: k.arena.New(Activation, k.statistics(), s.rows, s.heads), Eps: eps}
			want := forwardTwin(x, values(op.W), nil, eps)
			c.expect(y.T, scatter(y, want.y))
			c.expect(op.RStd, want.rstd)
			c.call = func() { k.dev.RMSNorm(op) }
			return c
		}}, opCase{"layer/" + s.name, func(k *kit) (c trial) {
			x := Columns{k.random(s.rows, s.cols), s.start, s.heads, s.width}
			op := Norm{Y: x, X: x, W: k.random(s.width), B: k.random(s.width), Eps: eps}
			op.Mean = k.arena.New(Activation, k.statistics(), s.rows, s.heads)
			op.RStd = k.arena.New(Activation, k.statistics(), s.rows, s.heads)
			want := forwardTwin(x, values(op.W), values(op.B), eps)
			c.expect(x.T, scatter(x, want.y))
			c.expect(op.Mean, want.mean)
			c.expect(op.RStd, want.rstd)
			c.call = func() { k.dev.LayerNorm(op) }
			return c
		}})
	}
	testCases(t, cases)
}

// backwardTwin is the gradients of Σ dy·y.
func backwardTwin(x, dy Columns, w, mean, rstd []float64) (dx, dw, db []float64) {
	vx, vdy := gather(x), gather(dy)
	n := x.Width
	dx, dw, db = make([]float64, len(vx)), make([]float64, n), make([]float64, n)
	for r, rs := range rstd {
		m := 0.0
		if mean != nil {
			m = mean[r]
		}
		var g, gn float64
		for i := range n {
			norm := (vx[r*n+i] - m) * rs
			g += vdy[r*n+i] * w[i] / float64(n)
			gn += vdy[r*n+i] * w[i] * norm / float64(n)
			dw[i] += vdy[r*n+i] * norm
			db[i] += vdy[r*n+i]
		}
		if mean == nil {
			g = 0
		}
		for i := range n {
			norm := (vx[r*n+i] - m) * rs
			dx[r*n+i] = rs * (vdy[r*n+i]*w[i] - g - norm*gn)
		}
	}
	return dx, dw, db
}

func plus(a, b []float64) []float64 {
	c := make([]float64, len(a))
	for i := range a {
		c[i] = a[i] + b[i]
	}
	return c
}

func TestNormBackward(t *testing.T) {
	var cases []opCase
	for _, s := range normShapes {
		for _, mode := range []string{"overwrite", "accumulate", "in place"} {
			name := s.name + "/" + mode
			cases = append(cases,
				opCase{"rms/" + name, func(k *kit) trial {
					return normBackwardTrial(k, s.rows, s.cols, s.start, s.heads, s.width, mode, false)
				}},
				opCase{"layer/" + name, func(k *kit) trial { return normBackwardTrial(k, s.rows, s.cols, s.start, s.heads, s.width, mode, true) }})
		}
	}
	testCases(t, cases)
}

func normBackwardTrial(k *kit, rows, cols, start, heads, width int, mode string, layer bool) (c trial) {
	run := func() Columns { return Columns{k.random(rows, cols), start, heads, width} }
	op := NormBackward{DX: run(), DY: run(), X: run(), Y: run(), W: k.random(width), Accumulate: mode == "accumulate"}
	if mode == "in place" {
		op.DX = op.DY
	}
	op.DW = k.randomOf(k.statistics(), width)
	op.RStd = k.randomOf(k.statistics(), rows, heads)
	var mean, bias []float64
	if layer {
		op.B, op.DB, op.Mean = k.random(width), k.random(width), k.randomOf(k.statistics(), rows, heads)
		mean, bias = values(op.Mean), values(op.B)
	}
	dx, dw, db := backwardTwin(op.X, op.DY, values(op.W), mean, values(op.RStd))
	if op.Accumulate {
		dx = plus(dx, gather(op.DX))
	}
	c.expect(op.DX.T, scatter(op.DX, dx))
	c.expect(op.DW, plus(values(op.DW), dw))
	c.expect(op.Y.T, scatter(op.Y, applyTwin(op.X, values(op.W), bias, mean, values(op.RStd))))
	if layer {
		c.expect(op.DB, plus(values(op.DB), db))
		c.call = func() { k.dev.LayerNormBackward(op) }
		return c
	}
	c.call = func() { k.dev.RMSNormBackward(op) }
	return c
}

// applyTwin is the forward with given statistics.
func applyTwin(x Columns, w, b, mean, rstd []float64) []float64 {
	v := gather(x)
	for i := range v {
		r, j := i/x.Width, i%x.Width
		if mean != nil {
			v[i] -= mean[r]
		}
		v[i] *= rstd[r] * w[j]
		if b != nil {
			v[i] += b[j]
		}
	}
	return v
}
