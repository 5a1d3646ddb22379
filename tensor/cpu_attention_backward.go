package tensor

import "carve/tensor/internal/kernel"

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
// that share it, so that the gradients of keys and values are summed by one worker in a fixed order. As in the
// forward, scores are transposed; four of the five products read them as they lie, and so does the fifth.
type attentionBackward[T kernel.Float] struct {
	attentionShape[T]
	q, k, x, dx Columns // query, key, value, gradient of the output
	out, dout   lines[T]
	dq, dk, dv  lines[T]
	lse, delta  []T
	add         bool
	s           scratch[T]
	workers     []gradWorker[T]
}

// gradWorker is one worker's memory.
type gradWorker[T kernel.Float] struct {
	keys, values   []T            // [SK D], rows laid apart
	keysT          []T            // [D SK], rows laid apart
	dk, dv         []T            // [SK D]
	qT, q          kernel.PackedB // of the current queries
	doutT, dout    kernel.PackedB
	scores, dprobs []T // [keyChunk P]
	spare          kernel.PackedB
	dqT            []T // [D P]
	rows           []T // [P D], rows laid apart
	lse, delta     []T // [P]
	a, b           []T // [D]
}

func (t *attentionBackward[T]) run(o *ops[T], op AttentionBackward) {
	f := &op.Forward
	t.attentionShape = shapeOf(o, f)
	t.q, t.k, t.x, t.dx = f.Q, f.K, f.V, op.DOut
	t.out, t.dout = linesOf(o.v, f.Out), linesOf(o.v, op.DOut)
	t.dq, t.dk, t.dv = linesOf(o.v, op.DQ), linesOf(o.v, op.DK), linesOf(o.v, op.DV)
	t.lse, t.delta, t.add = elementsOf[T](f.LSE), elementsOf[T](op.Delta), op.Accumulate
	t.s = o.scratch(o.c.Threads(), 1, t.memory())
	if !o.c.dry() {
		t.share(o)
	}
	t.c.ctx.Run(t.batch*t.heads, t)
	t.s.free()
}

// memory is the elements that a worker needs.
func (t *attentionBackward[T]) memory() int {
	d, p := t.width, t.panel
	return t.keys*(2*t.rowD+2*d) + d*t.rowS + 2*t.packed(d) + 2*t.c.ctx.PackedLen(p, d) +
		2*keyChunk*p + t.packed(keyChunk) + d*p + p*t.rowD + 2*p + 2*d
}

// share lays out the workers' memory.
func (t *attentionBackward[T]) share(o *ops[T]) {
	d, p := t.width, t.panel
	t.workers = resized(t.workers, o.c.Threads())
	for i := range t.workers {
		w, mem := &t.workers[i], cutter[T](t.s.run(i, 0))
		w.keys, w.values, w.keysT = mem.cut(t.keys*t.rowD), mem.cut(t.keys*t.rowD), mem.cut(d*t.rowS)
		w.dk, w.dv = mem.cut(t.keys*d), mem.cut(t.keys*d)
		w.qT, w.doutT = packedIn(mem.cut(t.packed(d))), packedIn(mem.cut(t.packed(d)))
		w.q, w.dout = packedIn(mem.cut(t.c.ctx.PackedLen(p, d))), packedIn(mem.cut(t.c.ctx.PackedLen(p, d)))
		w.scores, w.dprobs, w.spare = mem.cut(keyChunk*p), mem.cut(keyChunk*p), packedIn(mem.cut(t.packed(keyChunk)))
		w.dqT, w.rows = mem.cut(d*p), mem.cut(p*t.rowD)
		w.lse, w.delta, w.a, w.b = mem.cut(p), mem.cut(p), mem.cut(d), mem.cut(d)
	}
}

// Do computes one item.
func (t *attentionBackward[T]) Do(worker, item int) {
	w, ctx := &t.workers[worker], t.c.ctx
	b, h := item/t.heads, item%t.heads
	if t.keys > 0 {
		key, value := matrix(t.k, b*t.keys, h), matrix(t.x, b*t.keys, h)
		kernel.Lay(ctx, w.keys, t.rowD, key, t.keys, t.width)
		kernel.Lay(ctx, w.values, t.rowD, value, t.keys, t.width)
		kernel.Lay(ctx, w.keysT, t.rowS, transposed(key), t.width, t.keys)
	}
	t.v.Fill(w.dk, 0)
	t.v.Fill(w.dv, 0)
	for i := range t.group * t.panels() {
		t.queries(worker, b, h*t.group+i/t.panels(), t.querySpan(i%t.panels()))
	}
	t.store(&t.dk, b*t.keys, h, w.dk, t.width, t.keys, w.a)
	t.store(&t.dv, b*t.keys, h, w.dv, t.width, t.keys, w.a)
}

// store writes n rows of a result, ld elements apart, or adds them to what is there.
func (t *attentionBackward[T]) store(l *lines[T], first, head int, rows []T, ld, n int, buf []T) {
	for i := range n {
		x := rows[i*ld:][:t.width]
		if t.add {
			t.v.Add(x, l.row(first+i, head, buf))
		}
		l.store(l.at(first+i, head), x)
	}
}

// queries goes through the keys with one panel of queries of one head.
func (t *attentionBackward[T]) queries(worker, b, head int, q span) {
	w, ctx := &t.workers[worker], t.c.ctx
	n, first := q.len(), b*t.rows+q.lo
	query, dout := matrix(t.q, first, head), matrix(t.dx, first, head)
	ctx.PackB(&w.qT, transposed(query), t.width, n)
	ctx.PackB(&w.q, query, n, t.width)
	ctx.PackB(&w.doutT, transposed(dout), t.width, n)
	ctx.PackB(&w.dout, dout, n, t.width)
	t.statistics(w, b, head, q)
	t.v.Fill(w.dqT, 0)
	for lo := 0; lo < t.keys; lo += keyChunk {
		if k, seen := t.chunk(b, q, lo); seen != hidden {
			t.visit(worker, b, head, q, k, seen)
		}
	}
	kernel.Lay(ctx, w.rows, t.rowD, transposed(dense(w.dqT, t.panel)), n, t.width)
	t.store(&t.dq, first, head, w.rows, t.rowD, n, w.a)
}

// statistics computes the row sums of Out·DOut and gathers the rows' log-sum-exp. Rows that fill the panel up get no
// probabilities.
func (t *attentionBackward[T]) statistics(w *gradWorker[T], b, head int, q span) {
	at, n := (b*t.heads*t.group+head)*t.rows+q.lo, q.len()
	for i := range n {
		row := b*t.rows + q.lo + i
		w.delta[i] = t.v.Dot(t.out.row(row, head, w.a), t.dout.row(row, head, w.b))
		w.lse[i] = endless(t.lse[at+i])
	}
	for i := n; i < t.panel; i++ {
		w.delta[i], w.lse[i] = 0, infinity[T]()
	}
	copy(t.delta[at:][:n], w.delta)
}

// visit adds what some keys give to the gradients: with Pᵀ = exp(Sᵀ - lse) and dSᵀ = Pᵀ·(dPᵀ - delta)·scale,
// dV += Pᵀ·dO, dK += dSᵀ·Q, dQᵀ += Kᵀ·dSᵀ. What the forward dropped is dropped from dPᵀ, and from the P of dV.
func (t *attentionBackward[T]) visit(worker, b, head int, q, k span, seen view) {
	w, m := &t.workers[worker], k.len()
	p, ds := w.scores[:m*t.panel], w.dprobs[:m*t.panel]
	t.pad(p, q)
	t.pad(ds, q)
	t.multiply(worker, kernel.Block{M: m, A: dense(w.keys[k.lo*t.rowD:], t.rowD), B: w.qT, C: dense(p, t.panel), Alpha: t.scale})
	t.multiply(worker, kernel.Block{M: m, A: dense(w.values[k.lo*t.rowD:], t.rowD), B: w.doutT, C: dense(ds, t.panel)})
	t.drop(ds, b, head, q, k)
	t.v.PanelGrad(p, ds, w.lse, w.delta, T(t.scale))
	if seen == partial {
		t.hide(p, b, q, k, 0)
		t.hide(ds, b, q, k, 0)
	}
	t.drop(p, b, head, q, k)
	at := k.lo * t.width
	t.multiply(worker, kernel.Block{M: m, A: dense(p, t.panel), B: w.dout, C: dense(w.dv[at:], t.width), Write: kernel.Accumulate})
	t.multiply(worker, kernel.Block{M: m, A: dense(ds, t.panel), B: w.q, C: dense(w.dk[at:], t.width), Write: kernel.Accumulate})
	t.multiply(worker, kernel.Block{
		M: t.width, A: dense(w.keysT[k.lo:], t.rowS), B: t.operand(ds, &w.spare), C: dense(w.dqT, t.panel), Write: kernel.Accumulate,
	})
}
