package tensor

import "carve/tensor/internal/kernel"

// Embed implements [PointwiseDevice].
func (c *CPU) Embed(y, table, ids *Tensor, start int) {
	checkEmbed("embed", y, table, ids)
	if wide(y) || wide(table) {
		c.f64.lookup.run(&c.f64, y, table, ids, start)
		return
	}
	c.f32.lookup.run(&c.f32, y, table, ids, start)
}

// EmbedBackward implements [PointwiseDevice]. Rows of one id are added in their order.
func (c *CPU) EmbedBackward(dtable, dy, ids *Tensor, start int) {
	checkEmbed("embed backward", dy, dtable, ids)
	if wide(dtable) || wide(dy) {
		c.f64.scatter.run(&c.f64, dtable, dy, ids, start)
		return
	}
	c.f32.scatter.run(&c.f32, dtable, dy, ids, start)
}

func checkEmbed(name string, y, table, ids *Tensor) {
	need(y.Cols() == table.Cols(), name, "rows of the table's width")
	wantLen(name, "ids", ids, y.Rows())
}

// embedding is the task of Embed.
type embedding[T kernel.Float] struct {
	spans
	v        kernel.Vector[T]
	y, table lines[T]
	ids      []int32
	start    int
	s        scratch[T] // per worker: a row
}

func (t *embedding[T]) run(o *ops[T], y, table, ids *Tensor, start int) {
	t.v, t.y, t.table, t.ids, t.start = o.v, linesOf(o.v, whole(y)), linesOf(o.v, whole(table)), ids.I32(), start
	t.spans = rowSpans(t.y.rows, t.y.width)
	t.s = o.scratch(o.buffers(y, table), 1, t.y.width)
	o.c.ctx.Run(t.items(), t)
	t.s.free()
}

// Do looks up the rows of one item.
func (t *embedding[T]) Do(worker, item int) {
	buf := t.s.run(worker, 0)
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		id := int(t.ids[r]) - t.start
		if id < 0 || id >= t.table.rows {
			x := t.y.rowTarget(r, 0, buf)
			t.v.Fill(x, 0)
			t.y.putRow(r, 0, x)
			continue
		}
		t.y.store(t.y.at(r, 0), t.table.row(id, 0, buf))
	}
}

// embeddingBackward is the task of EmbedBackward. The rows of one id form a chain; whoever has its first row adds them
// all, in order, and rounds once.
type embeddingBackward[T kernel.Float] struct {
	spans
	v          kernel.Vector[T]
	dtable, dy lines[T]
	ids        []int32
	start      int
	next       []int32    // [T] the next row of the same id, or endOfChain
	inner      []int32    // [T] 1 for rows that are not the first of their id
	s          scratch[T] // per worker: a row of dtable, of dy
}

const endOfChain = -1

func (t *embeddingBackward[T]) run(o *ops[T], dtable, dy, ids *Tensor, start int) {
	t.v, t.dtable, t.dy, t.ids, t.start = o.v, linesOf(o.v, whole(dtable)), linesOf(o.v, whole(dy)), ids.I32(), start
	t.spans = rowSpans(t.dy.rows, t.dy.width)
	chains := o.c.arena.New(Workspace, Int32, t.dtable.rows+2*t.dy.rows)
	if !o.c.dry() {
		t.chain(chains.I32())
	}
	t.s = o.scratch(o.buffers(dtable, dy), 2, t.dy.width)
	o.c.ctx.Run(t.items(), t)
	t.s.free()
	chains.Free()
}

// chain links the rows of each id in mem, which has a place for every id and two for every row.
func (t *embeddingBackward[T]) chain(mem []int32) {
	last := mem[:t.dtable.rows] // row of each id seen last
	t.next, t.inner = mem[len(last):][:t.dy.rows], mem[len(last)+t.dy.rows:]
	for i := range last {
		last[i] = endOfChain
	}
	for r := range t.ids {
		t.next[r], t.inner[r] = endOfChain, 0
		id, ok := t.tableRow(r)
		if !ok {
			continue
		}
		if before := last[id]; before != endOfChain {
			t.next[before], t.inner[r] = int32(r), 1
		}
		last[id] = int32(r)
	}
}

// tableRow is the row of dtable that row r belongs to, if there is one.
func (t *embeddingBackward[T]) tableRow(r int) (row int, ok bool) {
	row = int(t.ids[r]) - t.start
	return row, row >= 0 && row < t.dtable.rows
}

// Do adds the chains that begin in one item.
func (t *embeddingBackward[T]) Do(worker, item int) {
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		row, ok := t.tableRow(r)
		if !ok || t.inner[r] != 0 {
			continue
		}
		d := t.dtable.row(row, 0, t.s.run(worker, 0))
		for from := int32(r); from != endOfChain; from = t.next[from] {
			t.v.Add(d, t.dy.row(int(from), 0, t.s.run(worker, 1)))
		}
		t.dtable.putRow(row, 0, d)
	}
}
