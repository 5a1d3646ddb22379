package tensor

import "carve/tensor/internal/kernel"

// columnBlock is the width of the columns that one item of a column-wise task owns: whole cache lines of any dtype.
const columnBlock = 256

// SumRows implements [LinearDevice]. Each item sums its columns over the rows in order.
func (c *CPU) SumRows(dst, x *Tensor) {
	wantLen("sum rows", "destination", dst, x.Cols())
	if wide(dst) || wide(x) {
		c.f64.sums.run(&c.f64, dst, x)
		return
	}
	c.f32.sums.run(&c.f32, dst, x)
}

// columnSums is the task of SumRows.
type columnSums[T kernel.Float] struct {
	v       kernel.Vector[T]
	dst     flat[T]
	x       flat[T]
	rows, n int
	s       scratch[T] // per worker: the sum, a row
}

func (t *columnSums[T]) run(o *ops[T], dst, x *Tensor) {
	t.v, t.dst, t.x, t.rows, t.n = o.v, flatOf(o.v, dst), flatOf(o.v, x), x.Rows(), x.Cols()
	t.s = o.scratch(o.c.Threads(), 2, min(t.n, columnBlock))
	o.c.ctx.Run((t.n+columnBlock-1)/columnBlock, t)
	t.s.free()
}

// Do sums the columns of one item.
func (t *columnSums[T]) Do(worker, item int) {
	c := item * columnBlock
	n := min(columnBlock, t.n-c)
	sum := t.s.run(worker, 0)[:n]
	t.v.Fill(sum, 0)
	for r := range t.rows {
		t.v.Add(sum, t.x.get(r*t.n+c, n, t.s.run(worker, 1)))
	}
	d := t.dst.get(c, n, t.s.run(worker, 1))
	t.v.Add(d, sum)
	t.dst.put(c, d)
}
