package tensor

import (
	"math"

	"carve/tensor/internal/kernel"
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
	need(op.Dropout.Rate >= 0 && op.Dropout.Rate < 1, name, "a rate of dropout from 0 to below 1")
	need((op.QueryDoc == nil) == (op.KeyDoc == nil), name, "documents of queries and keys")
	if op.QueryDoc != nil {
		wantLen(name, "query documents", op.QueryDoc, op.Q.T.Rows())
		wantLen(name, "key documents", op.KeyDoc, op.K.T.Rows())
	}
}

// attention is the task of Attention. An item is some panels of queries of the heads that share a key-value head of one
// sequence. Its worker lays out the keys and values once and then takes panel after panel of queries through all
// keys that they see. Everything is transposed, Sᵀ = K·Qᵀ and Outᵀ = Vᵀ·Pᵀ: so the softmax runs along whole vectors of
// queries, and Pᵀ lies as the second product wants it.
type attention[T kernel.Float] struct {
	attentionShape[T]
	q, k, x Columns // query, key, value
	out     lines[T]
	lse     []T
	merge   bool
	splits  int // items of a key-value head
	s       scratch[T]
	workers []attentionWorker[T]
}

// attentionWorker is one worker's memory.
type attentionWorker[T kernel.Float] struct {
	keys           []T // [SK D], rows laid apart
	valuesT        []T // [D SK], rows laid apart
	qT             kernel.PackedB
	scores         []T // [keyChunk P]
	spare          kernel.PackedB
	accT           []T // [D P]
	rows           []T // [P D]
	top, sum, keep []T // [P]
	row            []T // [D]
}

func (t *attention[T]) run(o *ops[T], op Attention) {
	t.attentionShape = shapeOf(o, &op)
	t.q, t.k, t.x, t.out = op.Q, op.K, op.V, linesOf(o.v, op.Out)
	t.lse, t.merge = elementsOf[T](op.LSE), op.Merge
	pairs := t.batch * t.heads
	t.splits = min((4*o.c.Threads()+pairs-1)/pairs, t.group*t.panels())
	t.s = o.scratch(o.c.Threads(), 1, t.memory())
	if !o.c.dry() {
		t.share(o)
	}
	t.c.ctx.Run(pairs*t.splits, t)
	t.s.free()
}

// memory is the elements that a worker needs.
func (t *attention[T]) memory() int {
	d, p := t.width, t.panel
	return t.keys*t.rowD + d*t.rowS + t.packed(d) + keyChunk*p + t.packed(keyChunk) + d*p + p*t.rowD + 3*p + d
}

// share lays out the workers' memory.
func (t *attention[T]) share(o *ops[T]) {
	d, p := t.width, t.panel
	t.workers = resized(t.workers, o.c.Threads())
	for i := range t.workers {
		w, mem := &t.workers[i], cutter[T](t.s.run(i, 0))
		w.keys, w.valuesT = mem.cut(t.keys*t.rowD), mem.cut(d*t.rowS)
		w.qT, w.scores, w.spare = packedIn(mem.cut(t.packed(d))), mem.cut(keyChunk*p), packedIn(mem.cut(t.packed(keyChunk)))
		w.accT, w.rows = mem.cut(d*p), mem.cut(p*t.rowD)
		w.top, w.sum, w.keep = mem.cut(p), mem.cut(p), mem.cut(p)
		w.row = mem.cut(d)
	}
}

// Do computes one item.
func (t *attention[T]) Do(worker, item int) {
	w := &t.workers[worker]
	split, pair := item%t.splits, item/t.splits
	b, h := pair/t.heads, pair%t.heads
	if t.keys > 0 {
		kernel.Lay(t.c.ctx, w.keys, t.rowD, matrix(t.k, b*t.keys, h), t.keys, t.width)
		kernel.Lay(t.c.ctx, w.valuesT, t.rowS, transposed(matrix(t.x, b*t.keys, h)), t.width, t.keys)
	}
	for i := split; i < t.group*t.panels(); i += t.splits {
		t.queries(worker, b, h*t.group+i/t.panels(), t.querySpan(i%t.panels()))
	}
}

// queries computes one panel of queries of one head.
func (t *attention[T]) queries(worker, b, head int, q span) {
	w, ctx := &t.workers[worker], t.c.ctx
	ctx.PackB(&w.qT, transposed(matrix(t.q, b*t.rows+q.lo, head)), t.width, q.len())
	t.v.Fill(w.top, -infinity[T]())
	t.v.Fill(w.sum, 0)
	write := kernel.Overwrite
	for lo := 0; lo < t.keys; lo += keyChunk {
		k, seen := t.chunk(b, q, lo)
		if seen == hidden {
			continue
		}
		s := w.scores[:k.len()*t.panel]
		t.pad(s, q)
		t.multiply(worker, kernel.Block{
			M: k.len(), A: dense(w.keys[k.lo*t.rowD:], t.rowD), B: w.qT, C: dense(s, t.panel), Alpha: t.scale,
		})
		if seen == partial {
			t.hide(s, b, q, k, -infinity[T]())
		}
		t.v.PanelSoftmax(s, w.top, w.sum, w.keep)
		t.drop(s, b, head, q, k) // from what multiplies the values, not from the sums
		if write == kernel.Accumulate {
			t.v.PanelScale(w.accT, w.keep)
		}
		t.multiply(worker, kernel.Block{
			M: t.width, A: dense(w.valuesT[k.lo:], t.rowS), B: t.operand(s, &w.spare), C: dense(w.accT, t.panel), Write: write,
		})
		write = kernel.Accumulate
	}
	if write == kernel.Overwrite {
		t.v.Fill(w.accT, 0)
	}
	t.finish(w, b, head, q)
}

// finish divides by the sums and stores the rows, merged with the earlier ones where that is asked for.
func (t *attention[T]) finish(w *attentionWorker[T], b, head int, q span) {
	n, first := q.len(), b*t.rows+q.lo
	lse := t.lse[(b*t.heads*t.group+head)*t.rows+q.lo:][:n]
	t.normalise(w, lse)
	t.v.PanelScale(w.accT, w.sum)
	acc := transposed(dense(w.accT, t.panel))
	if !t.merge && !t.out.buffered() {
		kernel.Lay(t.c.ctx, t.out.full[t.out.at(first, head):], t.out.stride, acc, n, t.width)
		return
	}
	kernel.Lay(t.c.ctx, w.rows, t.rowD, acc, n, t.width)
	for i := range n {
		row := w.rows[i*t.rowD:][:t.width]
		if w.keep[i] > 0 {
			t.v.AddScaled(row, w.keep[i], t.out.row(first+i, head, w.row))
		}
		t.out.store(t.out.at(first+i, head), row)
	}
}

// normalise replaces the sums by what to multiply each query's row with, and keep by what its earlier row is
// multiplied with; and updates the log-sum-exps.
func (t *attention[T]) normalise(w *attentionWorker[T], lse []T) {
	for i := range lse {
		now := w.top[i] + T(math.Log(float64(w.sum[i])))
		w.keep[i] = 0
		if w.sum[i] > 0 {
			w.sum[i] = 1 / w.sum[i]
		}
		if !t.merge || math.IsInf(float64(lse[i]), -1) {
			lse[i] = now
			continue
		}
		all := logAddExp(lse[i], now)
		w.sum[i] *= T(math.Exp(float64(now - all)))
		w.keep[i] = T(math.Exp(float64(lse[i] - all)))
		lse[i] = all
	}
}

// logAddExp is log(exp(a)+exp(b)) for a finite a.
func logAddExp[T kernel.Float](a, b T) T {
	top := max(a, b)
	return top + T(math.Log1p(math.Exp(float64(min(a, b)-top))))
}
