package tensor

import (
	"math"

	"carve/tensor/internal/kernel"
)

// RMSNorm implements [PointwiseDevice]. It reads X twice, the second time from cache, and writes Y: 5 FLOPs per element.
func (c *CPU) RMSNorm(op Norm) {
	op.check("rms norm")
	if wide(op.X.T) {
		c.f64.rms.run(&c.f64, op)
		return
	}
	c.f32.rms.run(&c.f32, op)
}

// LayerNorm implements [PointwiseDevice].
func (c *CPU) LayerNorm(op Norm) {
	op.check("layer norm")
	n := op.X.T.Rows() * op.X.Heads
	wantLen("layer norm", "bias", op.B, op.X.Width)
	wantLen("layer norm", "mean", op.Mean, n)
	if wide(op.X.T) {
		c.f64.layer.run(&c.f64, op)
		return
	}
	c.f32.layer.run(&c.f32, op)
}

func (op *Norm) check(name string) {
	sameRuns(name, op.Y, op.X)
	wantLen(name, "weight", op.W, op.X.Width)
	wantLen(name, "rstd", op.RStd, op.X.T.Rows()*op.X.Heads)
}

// normRows is what both norms' forwards have in common.
type normRows[T kernel.Float] struct {
	spans
	v          kernel.Vector[T]
	y, x       lines[T]
	w, b       []T
	mean, rstd []T
	eps        T
	s          scratch[T] // per worker: a row of x, a row of y
	vectors    scratch[T] // weight and bias expanded
}

func (t *normRows[T]) begin(o *ops[T], op Norm) {
	t.v, t.y, t.x, t.eps = o.v, linesOf(o.v, op.Y), linesOf(o.v, op.X), T(op.Eps)
	t.spans = rowSpans(t.x.rows, t.x.heads*t.x.width)
	t.rstd = elementsOf[T](op.RStd)
	t.s = o.scratch(o.buffers(op.Y.T, op.X.T), 2, t.x.width)
	t.vectors = o.scratch(1, o.expanded(op.W, op.B), t.x.width)
	t.w = o.vector(op.W, t.vectors.run(0, 0))
	if op.B != nil {
		t.b = o.vector(op.B, t.vectors.run(0, 1))
		t.mean = elementsOf[T](op.Mean)
	}
}

func (t *normRows[T]) end() {
	t.vectors.free()
	t.s.free()
}

// rmsNorm is the task of RMSNorm.
type rmsNorm[T kernel.Float] struct{ normRows[T] }

func (t *rmsNorm[T]) run(o *ops[T], op Norm) {
	t.begin(o, op)
	o.c.ctx.Run(t.items(), t)
	t.end()
}

// Do computes rows of one item.
func (t *rmsNorm[T]) Do(worker, item int) {
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		for h := range t.x.heads {
			x := t.x.row(r, h, t.s.run(worker, 0))
			y := t.y.rowTarget(r, h, t.s.run(worker, 1))
			rstd := reciprocalRoot(t.v.MeanSquare(x) + t.eps)
			t.rstd[r*t.x.heads+h] = rstd
			t.v.RMSApply(y, x, t.w, rstd)
			t.y.putRow(r, h, y)
		}
	}
}

// layerNorm is the task of LayerNorm.
type layerNorm[T kernel.Float] struct{ normRows[T] }

func (t *layerNorm[T]) run(o *ops[T], op Norm) {
	t.begin(o, op)
	o.c.ctx.Run(t.items(), t)
	t.end()
}

// Do computes rows of one item.
func (t *layerNorm[T]) Do(worker, item int) {
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		for h := range t.x.heads {
			x := t.x.row(r, h, t.s.run(worker, 0))
			y := t.y.rowTarget(r, h, t.s.run(worker, 1))
			mean, variance := t.v.Moments(x)
			rstd := reciprocalRoot(variance + t.eps)
			i := r*t.x.heads + h
			t.mean[i], t.rstd[i] = mean, rstd
			t.v.LayerApply(y, x, t.w, t.b, mean, rstd)
			t.y.putRow(r, h, y)
		}
	}
}

func reciprocalRoot[T kernel.Float](x T) T { return T(1 / math.Sqrt(float64(x))) }
