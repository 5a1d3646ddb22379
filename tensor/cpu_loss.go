package tensor

import (
	"math"

	"carve/tensor/internal/kernel"
)

// LossStats implements [LossDevice].
func (c *CPU) LossStats(top, sum, target, logits, targets *Tensor, start int) {
	const name = "loss stats"
	checkLoss(name, targets, top, sum, target)
	need(logits.Rows() == targets.Len(), name, "a target for every row of logits")
	if wide(logits) {
		c.f64.stats.run(&c.f64, top, sum, target, logits, targets, start)
		return
	}
	c.f32.stats.run(&c.f32, top, sum, target, logits, targets, start)
}

// LossMerge implements [LossDevice].
func (c *CPU) LossMerge(sum, top, all *Tensor) {
	checkLoss("loss merge", sum, top, all)
	if wide(sum) {
		lossMerge[float64](sum, top, all)
		return
	}
	lossMerge[float32](sum, top, all)
}

func lossMerge[T kernel.Float](sum, top, all *Tensor) {
	s, t, a := elementsOf[T](sum), elementsOf[T](top), elementsOf[T](all)
	for i := range s {
		if s[i] != 0 {
			s[i] *= T(math.Exp(float64(t[i] - a[i])))
		}
	}
}

// Loss implements [LossDevice].
func (c *CPU) Loss(top, sum, target, targets *Tensor) float64 {
	checkLoss("loss", targets, top, sum, target)
	if wide(sum) {
		return loss[float64](top, sum, target, targets)
	}
	return loss[float32](top, sum, target, targets)
}

func loss[T kernel.Float](top, sum, target, targets *Tensor) float64 {
	a, s, x := elementsOf[T](top), elementsOf[T](sum), elementsOf[T](target)
	total := 0.0
	for i, id := range targets.I32() {
		if id >= 0 {
			total += math.Log(float64(s[i])) + (float64(a[i]) - float64(x[i]))
		}
	}
	return total
}

// LossBackward implements [LossDevice].
func (c *CPU) LossBackward(logits, top, sum, targets *Tensor, start int, scale float64) {
	const name = "loss backward"
	checkLoss(name, targets, top, sum)
	need(logits.Rows() == targets.Len(), name, "a target for every row of logits")
	if wide(logits) {
		c.f64.lossBack.run(&c.f64, logits, top, sum, targets, start, scale)
		return
	}
	c.f32.lossBack.run(&c.f32, logits, top, sum, targets, start, scale)
}

func checkLoss(name string, rows *Tensor, ts ...*Tensor) {
	for _, t := range ts {
		sameLen(name, t, rows)
	}
}

// lossRows is what the tasks on logits have in common.
type lossRows[T kernel.Float] struct {
	spans
	v       kernel.Vector[T]
	x       lines[T]
	targets []int32
	start   int
	s       scratch[T] // per worker: a row
}

func (t *lossRows[T]) begin(o *ops[T], logits, targets *Tensor, start int) {
	t.v, t.x, t.targets, t.start = o.v, linesOf(o.v, whole(logits)), targets.I32(), start
	t.spans = rowSpans(t.x.rows, t.x.width)
	t.s = o.scratch(o.buffers(logits), 1, t.x.width)
}

// column is where row r's target is among these columns, or -1.
func (t *lossRows[T]) column(r int) int {
	c := int(t.targets[r]) - t.start
	if t.targets[r] < 0 || c < 0 || c >= t.x.width {
		return -1
	}
	return c
}

// lossStats is the task of LossStats.
type lossStats[T kernel.Float] struct {
	lossRows[T]
	top, sum, target []T
}

func (t *lossStats[T]) run(o *ops[T], top, sum, target, logits, targets *Tensor, start int) {
	t.begin(o, logits, targets, start)
	t.top, t.sum, t.target = elementsOf[T](top), elementsOf[T](sum), elementsOf[T](target)
	o.c.ctx.Run(t.items(), t)
	t.s.free()
}

// Do computes the rows of one item.
func (t *lossStats[T]) Do(worker, item int) {
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		x := t.x.row(r, 0, t.s.run(worker, 0))
		t.top[r] = t.v.Largest(x)
		t.sum[r] = t.v.SumExp(x, t.top[r])
		t.target[r] = 0
		if c := t.column(r); c >= 0 {
			t.target[r] = x[c]
		}
	}
}

// lossBackward is the task of LossBackward.
type lossBackward[T kernel.Float] struct {
	lossRows[T]
	top, sum []T
	scale    T
}

func (t *lossBackward[T]) run(o *ops[T], logits, top, sum, targets *Tensor, start int, scale float64) {
	t.begin(o, logits, targets, start)
	t.top, t.sum, t.scale = elementsOf[T](top), elementsOf[T](sum), T(scale)
	o.c.ctx.Run(t.items(), t)
	t.s.free()
}

// Do computes the rows of one item.
func (t *lossBackward[T]) Do(worker, item int) {
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		x := t.x.row(r, 0, t.s.run(worker, 0))
		if t.targets[r] < 0 {
			t.v.Fill(x, 0)
		} else {
			t.v.SoftmaxGrad(x, t.top[r], t.scale/t.sum[r])
		}
		if c := t.column(r); c >= 0 {
			x[c] -= t.scale
		}
		t.x.putRow(r, 0, x)
	}
}
