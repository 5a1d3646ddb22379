package tensor

import (
	"math"

	"carve/tensor/internal/kernel"
)

const (
	// leastPanel is the least number of queries that go through the keys together.
	leastPanel = 16
	// keyChunk is the number of keys whose scores are kept at once: with a panel of queries they fit the first-level
	// cache, and they are whole tiles of 14 and of 6 rows.
	keyChunk = 126
)

// attentionShape is what forward and backward share.
type attentionShape[T kernel.Float] struct {
	mask
	c                          *CPU
	v                          kernel.Vector[T]
	batch, heads, group, width int // B, K, A/K, D
	scale                      float64
	panel                      int  // P, queries of a panel
	direct                     bool // a panel is as wide as the products' own
	rowD, rowS                 int  // distance of rows of D elements, of SK
	dropout                    AttentionDropout
}

func shapeOf[T kernel.Float](o *ops[T], op *Attention) attentionShape[T] {
	s := attentionShape[T]{
		mask: maskOf(op), c: o.c, v: o.v,
		batch: op.Batch, heads: op.K.Heads, group: op.Q.Heads / op.K.Heads, width: op.Q.Width, scale: op.Scale,
		dropout: op.Dropout,
	}
	w := kernel.PanelWidth[T](o.c.ctx)
	s.panel = max(w, leastPanel)
	s.direct = w == s.panel
	s.rowD, s.rowS = kernel.LayWidth[T](s.width), kernel.LayWidth[T](s.keys)
	return s
}

// packed is the size of a packed panel of k rows.
func (s *attentionShape[T]) packed(k int) int { return s.c.ctx.PackedLen(k, s.panel) }

func (s *attentionShape[T]) panels() int { return (s.rows + s.panel - 1) / s.panel }

// querySpan is panel i of the queries.
func (s *attentionShape[T]) querySpan(i int) span {
	return span{i * s.panel, min((i+1)*s.panel, s.rows)}
}

// chunk is the keys from lo on that go through the cache at once, without those behind the last query, and how much of
// them the queries see.
func (s *attentionShape[T]) chunk(b int, q span, lo int) (span, view) {
	k := span{lo, min(lo+keyChunk, s.keys)}
	if s.causal && s.runs() {
		k.hi = min(k.hi, q.hi)
	}
	if k.len() <= 0 {
		return k, hidden
	}
	return k, s.look(b, q, k)
}

// pad clears a panel whose queries do not fill it.
func (s *attentionShape[T]) pad(x []T, q span) {
	if q.len() < s.panel {
		s.v.Fill(x, 0)
	}
}

// drop drops from a panel of queries q and keys k of a head.
func (s *attentionShape[T]) drop(x []T, b, head int, q, k span) {
	if s.dropout.on() {
		dropPanel(&s.dropout, &s.mask, x, s.panel, b, head, q, k)
	}
}

// hide gives v to what the mask hides of a panel of queries q and keys k.
func (s *attentionShape[T]) hide(x []T, b int, q, k span, v T) {
	if s.runs() { // each key is hidden from the queries before it
		for j := max(k.lo, q.lo+1); j < k.hi; j++ {
			s.v.Fill(x[(j-k.lo)*s.panel:][:min(q.len(), j-q.lo)], v)
		}
		return
	}
	for j := k.lo; j < k.hi; j++ {
		row := x[(j-k.lo)*s.panel:][:q.len()]
		for i := range row {
			if !s.sees(b, q.lo+i, j) {
				row[i] = v
			}
		}
	}
}

// operand is a panel as the right side of a product: as it lies, or packed into spare.
func (s *attentionShape[T]) operand(x []T, spare *kernel.PackedB) kernel.PackedB {
	k := len(x) / s.panel
	if s.direct {
		p := packedIn(x)
		p.K, p.N = k, s.panel
		return p
	}
	s.c.ctx.PackB(spare, dense(x, s.panel), k, s.panel)
	return *spare
}

func (s *attentionShape[T]) multiply(worker int, b kernel.Block) { s.c.ctx.Block(worker, &b) }

func infinity[T kernel.Float]() T { return T(math.Inf(1)) }

// endless is +Inf for the log-sum-exp of a query that sees no key, so that its probabilities are 0, and else x.
func endless[T kernel.Float](x T) T {
	if x == -infinity[T]() {
		return infinity[T]()
	}
	return x
}

// cutter hands out consecutive parts of a run.
type cutter[T kernel.Float] []T

func (c *cutter[T]) cut(n int) []T {
	part := (*c)[:n:n]
	*c = (*c)[n:]
	return part
}

// resized is s with n elements; it grows once.
func resized[E any](s []E, n int) []E {
	if cap(s) < n {
		return make([]E, n)
	}
	return s[:n]
}

// packedIn is an empty packed matrix with memory.
func packedIn[T kernel.Float](mem []T) kernel.PackedB {
	if x, ok := any(mem).([]float64); ok {
		return kernel.PackedB{F64: x}
	}
	x, _ := any(mem).([]float32)
	return kernel.PackedB{F32: x}
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
