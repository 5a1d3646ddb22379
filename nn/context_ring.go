package nn

import (
	"carve/comm"
	"carve/mesh"
	"carve/tensor"
)

// blocks is attention of this rank's queries to the keys and values of the context axis, block by block: block j is
// what rank j has, keys and values side by side in [B·S/CP 2·K·D]. Results are merged in a fixed order, this rank's block first
// and then backwards around the axis, so that runs repeat bit for bit. The first block is always visible, because
// every token sees itself.
type blocks struct {
	l    *Attention
	r    *Rank
	s    *attentionSaved
	qk   *tensor.Tensor // as of Attention.rotated
	docs *tensor.Tensor // as of sequences.documents
}

func (l *Attention) blocks(r *Rank, s *attentionSaved, qk *tensor.Tensor) blocks {
	l.sequences.ready(r, s.batch)
	return blocks{l: l, r: r, s: s, qk: qk, docs: l.sequences.documents(r, s.batch, byRank)}
}

func (p *blocks) free() { p.docs.Free() }

// owner is whose block comes after so many steps around the axis.
func (p *blocks) owner(step int) int {
	q := p.l.sequences
	return (q.at - step + q.degree) % q.degree
}

// keys and values are the runs of heads of a block.
func (p *blocks) keys(kv *tensor.Tensor) tensor.Columns { return heads(kv, 0, p.l.keyHeads, p.l.width) }

func (p *blocks) values(kv *tensor.Tensor) tensor.Columns {
	return heads(kv, p.l.keyHeads*p.l.width, p.l.keyHeads, p.l.width)
}

// block makes an empty block.
func (p *blocks) block(d tensor.DType) *tensor.Tensor {
	return p.r.communication(d, p.s.out.Rows(), 2*p.l.keyHeads*p.l.width)
}

// pack copies this rank's keys and values to a block.
func (p *blocks) pack(kv *tensor.Tensor) {
	p.r.Dev.CopyColumns(p.keys(kv), p.l.key(p.qk))
	p.r.Dev.CopyColumns(p.values(kv), p.l.value(p.s.qkv))
}

// operation is attention to one block. Its masks are views, which release frees. Positions rise within a rank, so that
// among its own rows the mask is that of row numbers, which the device does faster; and contiguous keys that are visible at
// all are so for every query.
func (p *blocks) operation(kv *tensor.Tensor, owner int) tensor.Attention {
	q := p.l.sequences
	op := p.l.operation(p.s, p.qk)
	op.K, op.V = p.keys(kv), p.values(kv)
	op.Causal = owner == q.at || q.balance == mesh.Zigzag
	if owner != q.at || op.Dropout.Rate > 0 { // which needs to know the places
		op.QueryPos, op.KeyPos = share(q.positions, q.degree, q.at), share(q.positions, q.degree, owner)
	}
	if p.docs != nil {
		op.QueryDoc, op.KeyDoc = share(p.docs, q.degree, q.at), share(p.docs, q.degree, owner)
	}
	return op
}

// share is a view of the i-th of n equal parts.
func share(t *tensor.Tensor, n, i int) *tensor.Tensor {
	size := t.Len() / n
	return t.Slice(i*size, (i+1)*size)
}

func release(op *tensor.Attention) {
	op.QueryPos.Free()
	op.KeyPos.Free()
	op.QueryDoc.Free()
	op.KeyDoc.Free()
}

// attend merges what the queries find in the block of the given step.
func (p *blocks) attend(kv *tensor.Tensor, step int) {
	owner := p.owner(step)
	if !p.l.sequences.visible(p.s.batch, owner) {
		return
	}
	op := p.operation(kv, owner)
	op.Merge = step > 0
	p.r.Dev.Attention(op)
	release(&op)
}

// attendBackward computes the terms of the gradients of a block's keys and values that come from this rank's queries, and
// adds to the queries' gradient. It reports false, and leaves everything, where no query sees the block.
func (p *blocks) attendBackward(g *tensor.AttentionBackward, term, kv *tensor.Tensor, step int) bool {
	owner := p.owner(step)
	if !p.l.sequences.visible(p.s.batch, owner) {
		return false
	}
	g.Forward = p.operation(kv, owner)
	g.DK, g.DV = p.keys(term), p.values(term)
	g.Accumulate = step > 0
	if g.Accumulate {
		p.r.Dev.Fill(term, 0)
	}
	p.r.Dev.AttentionBackward(*g)
	release(&g.Forward)
	return true
}

// shift is a transfer by one place around the context axis: a tensor goes to the next rank while one comes from the
// previous.
type shift struct{ send, recv comm.Work }

func (p *blocks) shift(out, in *tensor.Tensor) shift {
	g, q := p.r.Groups.Context, p.l.sequences
	return shift{
		send: g.SendStart(out, (q.at+1)%q.degree),
		recv: g.RecvStart(in, (q.at-1+q.degree)%q.degree),
	}
}

func (t shift) wait() {
	Must(t.send.Wait())
	Must(t.recv.Wait())
}

// ring passes the blocks around the axis; the next one is under way while the current one is used.
func (p *blocks) ring() {
	here, next := p.block(p.r.DType), p.block(p.r.DType)
	p.pack(here)
	last := p.l.sequences.degree - 1
	for step := range last {
		move := p.shift(here, next)
		p.attend(here, step)
		move.wait()
		here, next = next, here
	}
	p.attend(here, last)
	here.Free()
	next.Free()
}

// ringBackward passes the blocks around once more, and behind each block the sum of its gradients so far, which comes home
// after one step more than the block went. Both transfers are under way while the next block is used. Sums are
// in full precision.
func (p *blocks) ringBackward(g *tensor.AttentionBackward, dqkv *tensor.Tensor) {
	here, next, term := p.block(p.r.DType), p.block(p.r.DType), p.block(p.r.DType)
	sum, behind := p.block(wide(p.r.DType)), p.block(wide(p.r.DType))
	p.pack(here)
	var move, moveSum shift
	last := p.l.sequences.degree - 1
	for step := range last + 1 {
		if step < last {
			move = p.shift(here, next)
		}
		seen := p.attendBackward(g, term, here, step)
		if step == 0 {
			p.r.Dev.Copy(sum, term)
		} else {
			moveSum.wait()
			sum, behind = behind, sum
			if seen {
				p.r.Dev.Add(sum, term)
			}
		}
		moveSum = p.shift(sum, behind)
		if step < last {
			move.wait()
			here, next = next, here
		}
	}
	moveSum.wait()
	p.r.Dev.Copy(term, behind)
	p.unpack(dqkv, term)
	for _, t := range [...]*tensor.Tensor{here, next, term, sum, behind} {
		t.Free()
	}
}

// unpack copies the gradients of this rank's keys and values to their columns.
func (p *blocks) unpack(dqkv, block *tensor.Tensor) {
	p.r.Dev.CopyColumns(p.l.key(dqkv), p.keys(block))
	p.r.Dev.CopyColumns(p.l.value(dqkv), p.values(block))
}
