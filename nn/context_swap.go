package nn

import (
	"carve/mesh"
	"carve/tensor"
)

// swap is attention with heads exchanged for positions (DeepSpeed-Ulysses, Jacobs et al., arXiv 2309.14509): between two
// all-to-alls a rank has all positions of A/CP query heads and of the key-value heads that they read. Rows of a
// sequence then lie rank by rank, [B CP S/CP]: in the order of sequences.positions. With fewer key-value heads than ranks,
// neighbours get copies of one, and their gradients of it are added where the head came from.
type swap struct {
	l          *Attention
	r          *Rank
	s          *attentionSaved
	docs       *tensor.Tensor // int32 [B CP S/CP], or nil
	head, keys int            // a rank's query heads, and key-value heads
	copies     int            // of each key-value head
}

func (l *Attention) swap(r *Rank, s *attentionSaved) swap {
	q := l.sequences
	q.ready(r, s.batch)
	x := swap{l: l, r: r, s: s, docs: q.documents(r, s.batch, bySequence)}
	x.head, x.keys, x.copies = l.heads/q.degree, l.keyHeads/q.degree, 1
	if x.keys == 0 {
		x.keys, x.copies = 1, q.degree/l.keyHeads
	}
	return x
}

func (x *swap) free() { x.docs.Free() }

// columns is the features of query, key and value that a rank has between the all-to-alls.
func (x *swap) columns() int { return (x.head + 2*x.keys) * x.l.width }

// query, key and value are the runs of heads in a tensor of these columns.
func (x *swap) query(t *tensor.Tensor) tensor.Columns { return heads(t, 0, x.head, x.l.width) }

func (x *swap) key(t *tensor.Tensor) tensor.Columns {
	return heads(t, x.head*x.l.width, x.keys, x.l.width)
}

func (x *swap) value(t *tensor.Tensor) tensor.Columns {
	return heads(t, (x.head+x.keys)*x.l.width, x.keys, x.l.width)
}

// firstKey is the first key-value head that rank j reads.
func (x *swap) firstKey(j int) int { return j * x.keys / x.copies }

// some is n heads from head i on of a run.
func some(c tensor.Columns, i, n int) tensor.Columns {
	return heads(c.T, c.Start+i*c.Width, n, c.Width)
}

// exchange sends row (b, j, i) of t [B·CP·S/CP, n] to rank j and returns what came: row (b, j, i) from rank j. It takes over t.
func (x *swap) exchange(t *tensor.Tensor, c tensor.Category) *tensor.Tensor {
	got := x.r.Arena.New(c, t.DType(), t.Rows(), t.Cols())
	n := x.s.batch.sequence() * x.l.sequences.degree
	for lo := 0; lo < t.Rows(); lo += n {
		dst, src := got.RowRange(lo, lo+n), t.RowRange(lo, lo+n)
		Must(x.r.Groups.Context.AllToAll(dst, src))
		dst.Free()
		src.Free()
	}
	t.Free()
	return got
}

// rows calls f for every sequence and rank j, with the sequence's rows of a tensor [B·S/CP, n] and the rows for or from j of an
// exchanged one.
func (x *swap) rows(local, exchanged *tensor.Tensor, f func(local, exchanged *tensor.Tensor, j int)) {
	n, degree := x.s.batch.sequence(), x.l.sequences.degree
	for block := range exchanged.Rows() / n {
		b := block / degree
		from, to := local.RowRange(b*n, (b+1)*n), exchanged.RowRange(block*n, (block+1)*n)
		f(from, to, block%degree)
		from.Free()
		to.Free()
	}
}

// send makes room for what goes to every rank: rows [B CP S/CP] of so many columns.
func (x *swap) send(columns int) *tensor.Tensor {
	return x.r.communication(x.r.DType, x.s.batch.rows()*x.l.sequences.degree, columns)
}

// forward computes s.out and s.lse, and keeps what it attended to in s.swapped.
func (x *swap) forward(qk *tensor.Tensor) {
	l, dev := x.l, x.r.Dev
	send := x.send(x.columns())
	x.rows(qk, send, func(from, to *tensor.Tensor, j int) {
		dev.CopyColumns(x.query(to), some(l.query(from), j*x.head, x.head))
		dev.CopyColumns(x.key(to), some(l.key(from), x.firstKey(j), x.keys))
	})
	x.rows(x.s.qkv, send, func(from, to *tensor.Tensor, j int) {
		dev.CopyColumns(x.value(to), some(l.value(from), x.firstKey(j), x.keys))
	})
	x.s.swapped = x.exchange(send, tensor.Activation)
	out := x.send(x.head * l.width)
	dev.Attention(x.operation(x.query(out)))
	out = x.exchange(out, tensor.Communication)
	x.rows(x.s.out, out, func(to, from *tensor.Tensor, j int) {
		dev.CopyColumns(some(l.query(to), j*x.head, x.head), x.query(from))
	})
	out.Free()
}

// operation is attention of all positions of this rank's heads.
func (x *swap) operation(out tensor.Columns) tensor.Attention {
	op := x.l.operation(x.s, x.s.swapped)
	op.Out, op.Q, op.K, op.V = out, x.query(x.s.swapped), x.key(x.s.swapped), x.value(x.s.swapped)
	if q := x.l.sequences; q.balance != mesh.Contiguous { // the rows of which lie in order
		op.QueryPos, op.KeyPos = q.positions, q.positions
	}
	op.QueryDoc, op.KeyDoc = x.docs, x.docs
	op.Dropout.Head += x.l.sequences.at * x.head
	return op
}

// backward computes dqkv from the gradient of s.out.
func (x *swap) backward(dout, dqkv, delta *tensor.Tensor) {
	l, dev, n := x.l, x.r.Dev, x.head*x.l.width
	send := x.send(2 * n)
	x.rows(x.s.out, send, func(from, to *tensor.Tensor, j int) {
		dev.CopyColumns(x.query(to), some(l.query(from), j*x.head, x.head))
	})
	x.rows(dout, send, func(from, to *tensor.Tensor, j int) {
		dev.CopyColumns(heads(to, n, x.head, l.width), some(l.query(from), j*x.head, x.head))
	})
	both := x.exchange(send, tensor.Communication) // result and its gradient
	grad := x.send(x.columns())
	dev.AttentionBackward(tensor.AttentionBackward{
		Forward: x.operation(x.query(both)), DOut: heads(both, n, x.head, l.width),
		DQ: x.query(grad), DK: x.key(grad), DV: x.value(grad), Delta: delta,
	})
	both.Free()
	grad = x.exchange(grad, tensor.Communication)
	x.rows(dqkv, grad, func(to, from *tensor.Tensor, j int) {
		dev.CopyColumns(some(l.query(to), j*x.head, x.head), x.query(from))
	})
	if x.copies == 1 {
		x.rows(dqkv, grad, func(to, from *tensor.Tensor, j int) {
			dev.CopyColumns(some(l.key(to), x.firstKey(j), x.keys), x.key(from))
			dev.CopyColumns(some(l.value(to), x.firstKey(j), x.keys), x.value(from))
		})
	} else {
		x.addCopies(dqkv, grad)
	}
	grad.Free()
}

// addCopies sums what the ranks with copies of a key-value head give to its gradient, in their order and in full precision.
func (x *swap) addCopies(dqkv, grad *tensor.Tensor) {
	l, dev, n := x.l, x.r.Dev, x.s.batch.sequence()
	term := x.r.activation(n, 2*l.width) // key and value side by side
	sum := x.r.statistics(n, 2*l.width)
	x.rows(dqkv, grad, func(to, from *tensor.Tensor, j int) {
		dev.CopyColumns(heads(term, 0, 2, l.width), heads(from, x.head*l.width, 2, l.width))
		if j%x.copies == 0 {
			dev.Copy(sum, term)
		} else {
			dev.Add(sum, term)
		}
		if j%x.copies == x.copies-1 {
			dev.Copy(term, sum)
			dev.CopyColumns(some(l.key(to), x.firstKey(j), 1), heads(term, 0, 1, l.width))
			dev.CopyColumns(some(l.value(to), x.firstKey(j), 1), heads(term, l.width, 1, l.width))
		}
	})
	term.Free()
	sum.Free()
}
