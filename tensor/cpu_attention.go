package tensor

import (
	"math"

	"carve/tensor/internal/kernel"
)

// Rows of the blocks that attention works in.
const (
	queryBlock = 64
	keyBlock   = 64
)

// Attention implements [AttentionDevice].
func (c *CPU) Attention(op Attention) {
	op.check("attention")
	sameRuns("attention", op.Out, op.Q)
	if op.Q.T.Rows() == 0 {
		return
	}
	if wide(op.Q.T) {
		c.f64.attend.run(&c.f64, op)
		return
	}
	c.f32.attend.run(&c.f32, op)
}

func (op *Attention) check(name string) {
	sameRuns(name, op.K, op.V)
	need(op.Batch > 0 && op.Q.T.Rows()%op.Batch == 0 && op.K.T.Rows()%op.Batch == 0, name, "rows divide into sequences")
	need(op.K.Heads > 0 && op.Q.Heads%op.K.Heads == 0 && op.Q.Width == op.K.Width, name, "query heads divide among key heads of their size")
	wantLen(name, "lse", op.LSE, op.Q.T.Rows()*op.Q.Heads)
	if op.QueryPos != nil {
		wantLen(name, "query positions", op.QueryPos, op.Q.T.Rows()/op.Batch)
	}
	if op.KeyPos != nil {
		wantLen(name, "key positions", op.KeyPos, op.K.T.Rows()/op.Batch)
	}
	need((op.QueryDoc == nil) == (op.KeyDoc == nil), name, "documents of queries and keys")
	if op.QueryDoc != nil {
		wantLen(name, "query documents", op.QueryDoc, op.Q.T.Rows())
		wantLen(name, "key documents", op.KeyDoc, op.K.T.Rows())
	}
}

// attentionShape is the sizes that forward and backward share.
type attentionShape struct {
	mask
	batch, heads, group, width int // B, K, A/K, D
}

func shapeOf(op *Attention) attentionShape {
	return attentionShape{mask: maskOf(op), batch: op.Batch, heads: op.K.Heads, group: op.Q.Heads / op.K.Heads, width: op.Q.Width}
}

// keySpan is block j of the keys, querySpan block i of the queries.
func (s *attentionShape) keySpan(j int) span {
	return span{j * keyBlock, min((j+1)*keyBlock, s.keys)}
}

func (s *attentionShape) querySpan(i int) span {
	return span{i * queryBlock, min((i+1)*queryBlock, s.rows)}
}

func (s *attentionShape) keyBlocks() int   { return (s.keys + keyBlock - 1) / keyBlock }
func (s *attentionShape) queryBlocks() int { return (s.rows + queryBlock - 1) / queryBlock }

// attention is the task of Attention. An item is some blocks of queries of the heads that share a key-value head of one
// sequence. Its worker packs the keys and values once and then takes block after block of queries through all keys
// that they see.
type attention[T kernel.Float] struct {
	attentionShape
	c       *CPU
	v       kernel.Vector[T]
	q, k, x Columns // query, key, value
	out     lines[T]
	lse     []T
	scale   float64
	merge   bool
	splits  int // items of a key-value head
	s       scratch[T]
	stripes []attentionWorker[T]
}

// attentionWorker is one worker's memory.
type attentionWorker[T kernel.Float] struct {
	keys, values []kernel.PackedB // a block each
	scores       []T              // [queryBlock keyBlock]
	acc          []T              // [queryBlock D]
	top, sum     []T              // [queryBlock]
	row          []T              // [D]
}

func (t *attention[T]) run(o *ops[T], op Attention) {
	t.attentionShape, t.c, t.v = shapeOf(&op), o.c, o.v
	t.q, t.k, t.x, t.out = op.Q, op.K, op.V, linesOf(o.v, op.Out)
	t.lse, t.scale, t.merge = elementsOf[T](op.LSE), op.Scale, op.Merge
	pairs := t.batch * t.heads
	t.splits = min((4*o.c.Threads()+pairs-1)/max(pairs, 1), t.group*t.queryBlocks())
	t.begin(o)
	o.c.ctx.Run(pairs*t.splits, t)
	t.s.free()
}

// begin lays out the workers' memory.
func (t *attention[T]) begin(o *ops[T]) {
	d := t.width
	kLen, vLen := t.c.ctx.PackedLen(d, keyBlock), t.c.ctx.PackedLen(keyBlock, d)
	small := queryBlock*keyBlock + queryBlock*d + 2*queryBlock + d
	t.s = o.scratch(o.c.Threads(), 1, t.keyBlocks()*(kLen+vLen)+small)
	if t.stripes == nil {
		t.stripes = make([]attentionWorker[T], o.c.Threads())
	}
	for i := range t.stripes {
		w := &t.stripes[i]
		mem := cutter[T](t.s.run(i, 0))
		w.keys = packs(w.keys, t.keyBlocks(), kLen, &mem)
		w.values = packs(w.values, t.keyBlocks(), vLen, &mem)
		w.scores, w.acc = mem.cut(queryBlock*keyBlock), mem.cut(queryBlock*d)
		w.top, w.sum, w.row = mem.cut(queryBlock), mem.cut(queryBlock), mem.cut(d)
	}
}

// cutter hands out consecutive parts of a run.
type cutter[T kernel.Float] []T

func (c *cutter[T]) cut(n int) []T {
	part := (*c)[:n:n]
	*c = (*c)[n:]
	return part
}

// packs gives n packed blocks memory of size elements each. It reuses p, which grows to the largest n seen.
func packs[T kernel.Float](p []kernel.PackedB, n, size int, mem *cutter[T]) []kernel.PackedB {
	for cap(p) < n {
		p = append(p[:cap(p)], kernel.PackedB{})
	}
	p = p[:n]
	for i := range p {
		p[i] = packedIn(mem.cut(size))
	}
	return p
}

// packedIn is an empty packed matrix with memory.
func packedIn[T kernel.Float](mem []T) kernel.PackedB {
	if x, ok := any(mem).([]float64); ok {
		return kernel.PackedB{F64: x}
	}
	x, _ := any(mem).([]float32)
	return kernel.PackedB{F32: x}
}

// matrix is the rows of one head from row on, as an operand of a product.
func matrix(c Columns, row, head int) kernel.Mat {
	i := row*c.T.Cols() + c.Start + head*c.Width
	m := kernel.Mat{LD: c.T.Cols()}
	switch c.T.dtype {
	case FP32:
		m.F32 = c.T.F32()[i:]
	case BF16:
		m.BF16 = c.T.BF16()[i:]
	case FP64:
		m.F64 = c.T.F64()[i:]
	case Int32:
		panic("tensor: a product of int32")
	}
	return m
}

// dense is a row-major buffer as an operand of a product.
func dense[T kernel.Float](x []T, ld int) kernel.Mat {
	p := packedIn(x)
	return kernel.Mat{F32: p.F32, F64: p.F64, LD: ld}
}

func transposed(m kernel.Mat) kernel.Mat {
	m.Trans = true
	return m
}

// Do computes one item.
func (t *attention[T]) Do(worker, item int) {
	w := &t.stripes[worker]
	split, pair := item%t.splits, item/t.splits
	b, h := pair/t.heads, pair%t.heads
	for j := range w.keys {
		k := t.keySpan(j)
		row := b*t.keys + k.lo
		t.c.ctx.PackB(&w.keys[j], transposed(matrix(t.k, row, h)), t.width, k.len())
		t.c.ctx.PackB(&w.values[j], matrix(t.x, row, h), k.len(), t.width)
	}
	blocks := t.queryBlocks()
	for i := split; i < t.group*blocks; i += t.splits {
		t.queries(worker, b, h*t.group+i/blocks, t.querySpan(i%blocks))
	}
}

// queries computes one block of queries of one head.
func (t *attention[T]) queries(worker, b, head int, q span) {
	w := &t.stripes[worker]
	n := q.len()
	t.v.Fill(w.top[:n], T(math.Inf(-1)))
	t.v.Fill(w.sum[:n], 0)
	t.v.Fill(w.acc[:n*t.width], 0)
	for j := range w.keys {
		k := t.keySpan(j)
		v := t.look(b, q, k)
		if v == hidden {
			continue
		}
		product := kernel.Block{
			M: n, A: matrix(t.q, b*t.rows+q.lo, head), B: w.keys[j],
			C: dense(w.scores, keyBlock), Alpha: t.scale,
		}
		t.c.ctx.Block(worker, &product)
		t.softmax(w, b, q, k, v)
		product = kernel.Block{
			M: n, A: dense(w.scores, keyBlock), B: w.values[j],
			C: dense(w.acc, t.width), Write: kernel.Accumulate,
		}
		t.c.ctx.Block(worker, &product)
	}
	t.finish(w, b, head, q)
}

// softmax turns a block of scores into unnormalised probabilities, after scaling what was summed before to
// the new maximum of each row (Milakov and Gimelshein, arXiv 1805.02867).
func (t *attention[T]) softmax(w *attentionWorker[T], b int, q, k span, v view) {
	for i := range q.len() {
		row := w.scores[i*keyBlock:][:k.len()]
		if v == partial {
			t.hide(row, b, q.lo+i, k)
		}
		top := max(w.top[i], t.v.Largest(row))
		shift := finite(top)
		if w.top[i] != top {
			keep := T(math.Exp(float64(w.top[i] - shift)))
			w.sum[i] *= keep
			acc := w.acc[i*t.width:][:t.width]
			t.v.Scale(acc, keep, acc)
			w.top[i] = top
		}
		w.sum[i] += t.v.Exp(row, shift)
	}
}

// finite is x, or 0 if a row has seen no key yet and its maximum is -Inf.
func finite[T kernel.Float](x T) T {
	if math.IsInf(float64(x), -1) {
		return 0
	}
	return x
}

// hide gives the keys that query q does not see a score of -Inf.
func (t *attention[T]) hide(row []T, b, q int, k span) {
	minus := T(math.Inf(-1))
	if t.runs() {
		t.v.Fill(row[min(len(row), max(0, q+1-k.lo)):], minus)
		return
	}
	for j := range row {
		if !t.sees(b, q, k.lo+j) {
			row[j] = minus
		}
	}
}

// finish divides by the sums and stores the rows, merged with the earlier ones where that is asked for.
func (t *attention[T]) finish(w *attentionWorker[T], b, head int, q span) {
	for i := range q.len() {
		row := b*t.rows + q.lo + i
		acc := w.acc[i*t.width:][:t.width]
		lse := &t.lse[(b*t.heads*t.group+head)*t.rows+q.lo+i]
		now := w.top[i] + T(math.Log(float64(w.sum[i])))
		norm := T(1)
		if w.sum[i] > 0 {
			norm = 1 / w.sum[i]
		}
		if t.merge && !math.IsInf(float64(*lse), -1) {
			all := logAddExp(*lse, now)
			norm *= T(math.Exp(float64(now - all)))
			t.v.Scale(acc, norm, acc)
			t.v.AddScaled(acc, T(math.Exp(float64(*lse-all))), t.out.row(row, head, w.row))
			t.out.store(t.out.at(row, head), acc)
			*lse = all
			continue
		}
		t.v.Scale(acc, norm, acc)
		t.out.store(t.out.at(row, head), acc)
		*lse = now
	}
}

// logAddExp is log(exp(a)+exp(b)) for a finite a.
func logAddExp[T kernel.Float](a, b T) T {
	top := max(a, b)
	return top + T(math.Log1p(math.Exp(float64(min(a, b)-top))))
}
