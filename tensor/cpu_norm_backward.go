package tensor

import "carve/tensor/internal/kernel"

// RMSNormBackward implements [PointwiseDevice].
func (c *CPU) RMSNormBackward(op NormBackward) {
	op.check("rms norm backward")
	if wide(op.X.T) {
		c.f64.rmsBack.run(&c.f64, op)
		return
	}
	c.f32.rmsBack.run(&c.f32, op)
}

// LayerNormBackward implements [PointwiseDevice].
func (c *CPU) LayerNormBackward(op NormBackward) {
	const name = "layer norm backward"
	op.check(name)
	wantLen(name, "bias gradient", op.DB, op.X.Width)
	wantLen(name, "mean", op.Mean, op.X.T.Rows()*op.X.Heads)
	need(op.Y.T == nil || op.B != nil, name, "Y needs B")
	if wide(op.X.T) {
		c.f64.layerBack.run(&c.f64, op)
		return
	}
	c.f32.layerBack.run(&c.f32, op)
}

func (op *NormBackward) check(name string) {
	sameRuns(name, op.DX, op.X)
	sameRuns(name, op.DY, op.X)
	if op.Y.T != nil {
		sameRuns(name, op.Y, op.X)
	}
	wantLen(name, "weight", op.W, op.X.Width)
	wantLen(name, "weight gradient", op.DW, op.X.Width)
	wantLen(name, "rstd", op.RStd, op.X.T.Rows()*op.X.Heads)
}

// normGradRows is what both norms' backwards have in common. Each item of rows sums its own part of the weight
// gradient; the parts are added in the order of the items.
type normGradRows[T kernel.Float] struct {
	spans
	v          kernel.Vector[T]
	dx, dy, x  lines[T]
	y          lines[T]
	w, b       []T
	mean, rstd []T
	add        bool
	s          scratch[T] // per worker: rows of x, dy, dx and what is added to dx
	vectors    scratch[T] // weight, bias expanded, weight and bias gradients
	parts      scratch[T] // per item: weight and bias gradients
}

// gradItems is the largest number of parts of a weight gradient, gradRows the least number of rows of one.
const (
	gradItems = 64
	gradRows  = 16
)

// gradSpans divides rows into parts whose column sums are kept apart.
func gradSpans(rows int) spans {
	return spans{rows: rows, per: max(gradRows, (rows+gradItems-1)/gradItems)}
}

func (t *normGradRows[T]) begin(o *ops[T], op NormBackward) {
	t.v, t.add = o.v, op.Accumulate
	t.dx, t.dy, t.x, t.y = linesOf(o.v, op.DX), linesOf(o.v, op.DY), linesOf(o.v, op.X), linesOf(o.v, op.Y)
	t.spans = gradSpans(t.x.rows)
	t.rstd = elementsOf[T](op.RStd)
	t.s = o.scratch(o.c.Threads(), 4, t.x.width)
	t.vectors = o.scratch(1, 4, t.x.width)
	t.w = o.vector(op.W, t.vectors.run(0, 0))
	if op.B != nil {
		t.b = o.vector(op.B, t.vectors.run(0, 1))
	}
	if op.Mean != nil {
		t.mean = elementsOf[T](op.Mean)
	}
	t.parts = o.scratch(t.items(), 2, t.x.width)
}

// end adds the parts to the gradients.
func (t *normGradRows[T]) end(o *ops[T], op NormBackward) {
	t.sumParts(o, op.DW, 0)
	if op.DB != nil {
		t.sumParts(o, op.DB, 1)
	}
	t.parts.free()
	t.vectors.free()
	t.s.free()
}

func (t *normGradRows[T]) sumParts(o *ops[T], grad *Tensor, which int) {
	if o.c.dry() {
		return
	}
	g := flatOf(o.v, grad)
	sum := g.get(0, t.x.width, t.vectors.run(0, 2))
	for i := range t.items() {
		o.v.Add(sum, t.parts.run(i, which)[:t.x.width])
	}
	g.put(0, sum)
}

// part is the clean buffer of an item's weight (0) or bias (1) gradient.
func (t *normGradRows[T]) part(item, which int) []T {
	p := t.parts.run(item, which)[:t.x.width]
	t.v.Fill(p, 0)
	return p
}

// finish stores a row of dx, or adds it to what is there.
func (t *normGradRows[T]) finish(worker, r, h int, dx []T) {
	if !t.add {
		t.dx.putRow(r, h, dx)
		return
	}
	old := t.dx.row(r, h, t.s.run(worker, 3))
	t.v.Add(old, dx)
	t.dx.putRow(r, h, old)
}

// gradTarget is where a row of dx is computed: a buffer if it is to be added.
func (t *normGradRows[T]) gradTarget(worker, r, h int) []T {
	buf := t.s.run(worker, 2)[:t.x.width]
	if t.add {
		return buf
	}
	return t.dx.rowTarget(r, h, buf)
}

// rmsNormBackward is the task of RMSNormBackward.
type rmsNormBackward[T kernel.Float] struct{ normGradRows[T] }

func (t *rmsNormBackward[T]) run(o *ops[T], op NormBackward) {
	t.begin(o, op)
	o.c.ctx.Run(t.items(), t)
	t.end(o, op)
}

// Do computes the rows of one item.
func (t *rmsNormBackward[T]) Do(worker, item int) {
	dw := t.part(item, 0)
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		for h := range t.x.heads {
			t.one(worker, r, h, dw)
		}
	}
}

// one computes one row: with n = x·rstd and g = dy·w, dx = rstd·(g - n·mean(g·n)).
func (t *rmsNormBackward[T]) one(worker, r, h int, dw []T) {
	x := t.x.row(r, h, t.s.run(worker, 0))
	dy := t.dy.row(r, h, t.s.run(worker, 1))
	rstd := t.rstd[r*t.x.heads+h]
	if t.y.present() {
		y := t.y.rowTarget(r, h, t.s.run(worker, 2))
		t.v.RMSApply(y, x, t.w, rstd)
		t.y.putRow(r, h, y)
	}
	k := t.v.RMSDot(dy, t.w, x) * rstd * rstd * rstd / T(t.x.width)
	dx := t.gradTarget(worker, r, h)
	t.v.RMSGrad(dx, dw, dy, t.w, x, rstd, k)
	t.finish(worker, r, h, dx)
}

// layerNormBackward is the task of LayerNormBackward.
type layerNormBackward[T kernel.Float] struct{ normGradRows[T] }

func (t *layerNormBackward[T]) run(o *ops[T], op NormBackward) {
	t.begin(o, op)
	o.c.ctx.Run(t.items(), t)
	t.end(o, op)
}

// Do computes the rows of one item.
func (t *layerNormBackward[T]) Do(worker, item int) {
	dw, db := t.part(item, 0), t.part(item, 1)
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		for h := range t.x.heads {
			t.one(worker, r, h, dw, db)
		}
	}
}

// one computes one row: with n = (x-mean)·rstd and g = dy·w, dx = rstd·(g - mean(g) - n·mean(g·n)).
func (t *layerNormBackward[T]) one(worker, r, h int, dw, db []T) {
	x := t.x.row(r, h, t.s.run(worker, 0))
	dy := t.dy.row(r, h, t.s.run(worker, 1))
	i := r*t.x.heads + h
	mean, rstd := t.mean[i], t.rstd[i]
	if t.y.present() {
		y := t.y.rowTarget(r, h, t.s.run(worker, 2))
		t.v.LayerApply(y, x, t.w, t.b, mean, rstd)
		t.y.putRow(r, h, y)
	}
	g, gn := t.v.LayerSums(dy, t.w, x, mean, rstd)
	n := T(t.x.width)
	dx := t.gradTarget(worker, r, h)
	t.v.LayerGrad(dx, dw, db, dy, t.w, x, mean, rstd, g/n, gn/n)
	t.finish(worker, r, h, dx)
}
