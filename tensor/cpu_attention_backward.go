package tensor

import (
	"math"

	"carve/tensor/internal/kernel"
)

// AttentionBackward implements [AttentionDevice].
func (c *CPU) AttentionBackward(op AttentionBackward) {
	const name = "attention backward"
	op.Forward.check(name)
	sameRuns(name, op.DOut, op.Forward.Q)
	sameRuns(name, op.DQ, op.Forward.Q)
	sameRuns(name, op.DK, op.Forward.K)
	sameRuns(name, op.DV, op.Forward.V)
	sameLen(name, op.Delta, op.Forward.LSE)
	if wide(op.Forward.Q.T) {
		c.f64.attendB.run(&c.f64, op)
		return
	}
	c.f32.attendB.run(&c.f32, op)
}

// attentionBackward is the task of AttentionBackward. An item is one key-value head of one sequence with all query heads
// that share it, so that the gradients of keys and values are summed by one worker in a fixed order. Scores are
// computed transposed, Sᵀ = K·Qᵀ: then four of the five products read them as they lie.
type attentionBackward[T kernel.Float] struct {
	attentionShape
	c           *CPU
	v           kernel.Vector[T]
	q, k, x     Columns // query, key, value
	out, dout   lines[T]
	doutColumns Columns
	dq, dk, dv  lines[T]
	lse, delta  []T
	scale       float64
	add         bool
	s           scratch[T]
	stripes     []gradWorker[T]
}

// gradWorker is one worker's memory.
type gradWorker[T kernel.Float] struct {
	keys           []kernel.PackedB // K, a block each
	qT, q          kernel.PackedB   // of the current queries
	doutT, dout    kernel.PackedB
	scores, dprobs []T // [keyBlock queryBlock]
	dk, dv         []T // [SK D]
	dq             []T // [queryBlock D]
	lse            []T // [queryBlock]
	a, b           []T // [D]
}

func (t *attentionBackward[T]) run(o *ops[T], op AttentionBackward) {
	f := &op.Forward
	t.attentionShape, t.c, t.v = shapeOf(f), o.c, o.v
	t.q, t.k, t.x, t.doutColumns = f.Q, f.K, f.V, op.DOut
	t.out, t.dout = linesOf(o.v, f.Out), linesOf(o.v, op.DOut)
	t.dq, t.dk, t.dv = linesOf(o.v, op.DQ), linesOf(o.v, op.DK), linesOf(o.v, op.DV)
	t.lse, t.delta = elementsOf[T](f.LSE), elementsOf[T](op.Delta)
	t.scale, t.add = f.Scale, op.Accumulate
	t.begin(o)
	o.c.ctx.Run(t.batch*t.heads, t)
	t.s.free()
}

// begin lays out the workers' memory.
func (t *attentionBackward[T]) begin(o *ops[T]) {
	d := t.width
	tall, flat := t.c.ctx.PackedLen(d, queryBlock), t.c.ctx.PackedLen(queryBlock, d)
	key := t.c.ctx.PackedLen(keyBlock, d)
	size := t.keyBlocks()*key + 2*(tall+flat) + 2*keyBlock*queryBlock + 2*t.keys*d + queryBlock*d + queryBlock + 2*d
	t.s = o.scratch(o.c.Threads(), 1, size)
	if t.stripes == nil {
		t.stripes = make([]gradWorker[T], o.c.Threads())
	}
	for i := range t.stripes {
		w := &t.stripes[i]
		mem := cutter[T](t.s.run(i, 0))
		w.keys = packs(w.keys, t.keyBlocks(), key, &mem)
		w.qT, w.doutT = packedIn(mem.cut(tall)), packedIn(mem.cut(tall))
		w.q, w.dout = packedIn(mem.cut(flat)), packedIn(mem.cut(flat))
		w.scores, w.dprobs = mem.cut(keyBlock*queryBlock), mem.cut(keyBlock*queryBlock)
		w.dk, w.dv, w.dq = mem.cut(t.keys*d), mem.cut(t.keys*d), mem.cut(queryBlock*d)
		w.lse, w.a, w.b = mem.cut(queryBlock), mem.cut(d), mem.cut(d)
	}
}

// Do computes one item.
func (t *attentionBackward[T]) Do(worker, item int) {
	w := &t.stripes[worker]
	b, h := item/t.heads, item%t.heads
	for j := range w.keys {
		k := t.keySpan(j)
		t.c.ctx.PackB(&w.keys[j], matrix(t.k, b*t.keys+k.lo, h), k.len(), t.width)
	}
	t.v.Fill(w.dk, 0)
	t.v.Fill(w.dv, 0)
	for head := h * t.group; head < (h+1)*t.group; head++ {
		for i := range t.queryBlocks() {
			t.queries(worker, b, h, head, t.querySpan(i))
		}
	}
	for r := range t.keys {
		t.store(&t.dk, b*t.keys+r, h, w.dk[r*t.width:][:t.width], w.a)
		t.store(&t.dv, b*t.keys+r, h, w.dv[r*t.width:][:t.width], w.a)
	}
}

// store writes a row of a result, or adds it to what is there.
func (t *attentionBackward[T]) store(l *lines[T], row, head int, x, buf []T) {
	if t.add {
		old := l.row(row, head, buf)
		t.v.Add(x, old)
	}
	l.store(l.at(row, head), x)
}

// queries goes through the keys with one block of queries of one head.
func (t *attentionBackward[T]) queries(worker, b, h, head int, q span) {
	w := &t.stripes[worker]
	n, row := q.len(), b*t.rows+q.lo
	ctx := t.c.ctx
	query, dout := matrix(t.q, row, head), matrix(t.doutColumns, row, head)
	ctx.PackB(&w.qT, transposed(query), t.width, n)
	ctx.PackB(&w.q, query, n, t.width)
	ctx.PackB(&w.doutT, transposed(dout), t.width, n)
	ctx.PackB(&w.dout, dout, n, t.width)
	delta := t.rowStatistics(w, b, head, q)
	t.v.Fill(w.dq[:n*t.width], 0)
	for j := range w.keys {
		k := t.keySpan(j)
		v := t.look(b, q, k)
		if v != hidden {
			t.block(worker, b, h, q, k, v, delta)
		}
	}
	for i := range n {
		t.store(&t.dq, row+i, head, w.dq[i*t.width:][:t.width], w.a)
	}
}

// rowStatistics computes the row sums of Out·DOut, which it returns, and gathers the rows' log-sum-exp.
func (t *attentionBackward[T]) rowStatistics(w *gradWorker[T], b, head int, q span) (delta []T) {
	at := (b*t.heads*t.group+head)*t.rows + q.lo
	delta = t.delta[at:][:q.len()]
	for i := range delta {
		row := b*t.rows + q.lo + i
		delta[i] = t.v.Dot(t.out.row(row, head, w.a), t.dout.row(row, head, w.b))
		w.lse[i] = t.lse[at+i]
		if math.IsInf(float64(w.lse[i]), -1) {
			w.lse[i] = T(math.Inf(1)) // a query that sees no key: its probabilities are 0
		}
	}
	return delta
}

// block adds what one block of queries and keys gives to the gradients: with Pᵀ = exp(Sᵀ - lse) and
// dSᵀ = Pᵀ·(dPᵀ - delta)·scale, dV += Pᵀ·dO, dK += dSᵀ·Q, dQ += dS·K.
func (t *attentionBackward[T]) block(worker, b, h int, q, k span, v view, delta []T) {
	w := &t.stripes[worker]
	n, m := q.len(), k.len()
	row := b*t.keys + k.lo
	p, dp := dense(w.scores, queryBlock), dense(w.dprobs, queryBlock)
	t.product(worker, kernel.Block{M: m, A: matrix(t.k, row, h), B: w.qT, C: p, Alpha: t.scale})
	t.product(worker, kernel.Block{M: m, A: matrix(t.x, row, h), B: w.doutT, C: dp})
	for j := range m {
		s, ds := w.scores[j*queryBlock:][:n], w.dprobs[j*queryBlock:][:n]
		t.v.ScoreGrad(s, ds, w.lse[:n], delta, T(t.scale))
		if v == partial {
			t.hide(s, ds, b, q, k.lo+j)
		}
	}
	at := k.lo * t.width
	t.product(worker, kernel.Block{M: m, A: p, B: w.dout, C: dense(w.dv[at:], t.width), Write: kernel.Accumulate})
	t.product(worker, kernel.Block{M: m, A: dp, B: w.q, C: dense(w.dk[at:], t.width), Write: kernel.Accumulate})
	dp.Trans = true
	t.product(worker, kernel.Block{M: n, A: dp, B: w.keys[k.lo/keyBlock], C: dense(w.dq, t.width), Write: kernel.Accumulate})
}

func (t *attentionBackward[T]) product(worker int, b kernel.Block) { t.c.ctx.Block(worker, &b) }

// hide clears the probabilities and gradients of the queries that do not see key k.
func (t *attentionBackward[T]) hide(p, ds []T, b int, q span, k int) {
	if t.runs() {
		n := min(len(p), max(0, k-q.lo))
		t.v.Fill(p[:n], 0)
		t.v.Fill(ds[:n], 0)
		return
	}
	for i := range p {
		if !t.sees(b, q.lo+i, k) {
			p[i], ds[i] = 0, 0
		}
	}
}
