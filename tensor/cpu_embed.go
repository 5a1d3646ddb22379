package tensor

import "carve/tensor/internal/kernel"

// Embed implements [PointwiseDevice].
func (c *CPU) Embed(y, table, ids *Tensor, start int) {
	const name = "embed"
	checkEmbed(name, y, table, ids)
	need(y.dtype == table.dtype, name, "rows of the table's dtype")
	c.lookup.run(c, y, table, ids, start)
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

// embedding is the task of Embed: copies of rows.
type embedding struct {
	spans
	dst, src    []byte
	ids         []int32
	start, rows int
	width       int // bytes
}

func (t *embedding) run(c *CPU, y, table, ids *Tensor, start int) {
	t.dst, t.src, t.ids, t.start, t.rows = y.Raw(), table.Raw(), ids.I32(), start, table.Rows()
	t.width = y.Cols() * y.dtype.Size()
	t.spans = rowSpans(y.Rows(), t.width/4)
	c.ctx.Run(t.items(), t)
}

// Do copies the rows of one item.
func (t *embedding) Do(_, item int) {
	lo, hi := t.of(item)
	for r := lo; r < hi; r++ {
		to, id := t.dst[r*t.width:(r+1)*t.width], int(t.ids[r])-t.start
		if id < 0 || id >= t.rows {
			clear(to)
			continue
		}
		copy(to, t.src[id*t.width:])
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
