package nn

import "carve/tensor"

// gather collects every rank's block at once, while this rank's own is used.
func (p *blocks) gather() {
	mine, all := p.block(p.r.DType), p.everyBlock()
	p.pack(mine)
	work := p.r.Groups.Context.AllGatherStart(all, mine)
	p.attend(mine, 0)
	Must(work.Wait())
	for step := 1; step < p.l.sequences.degree; step++ {
		kv := p.blockOf(all, p.owner(step))
		p.attend(kv, step)
		kv.Free()
	}
	mine.Free()
	all.Free()
}

// gatherBackward collects the blocks once more, and sums every rank's terms of their gradients.
func (p *blocks) gatherBackward(g *tensor.AttentionBackward, dqkv *tensor.Tensor) {
	mine, all, terms := p.block(p.r.DType), p.everyBlock(), p.everyBlock()
	p.pack(mine)
	work := p.r.Groups.Context.AllGatherStart(all, mine)
	for step := range p.l.sequences.degree {
		owner := p.owner(step)
		kv, term := mine, p.blockOf(terms, owner)
		if step == 1 {
			Must(work.Wait())
		}
		if step > 0 {
			kv = p.blockOf(all, owner)
		}
		if !p.attendBackward(g, term, kv, step) {
			p.r.Dev.Fill(term, 0)
		}
		term.Free()
		if step > 0 {
			kv.Free()
		}
	}
	all.Free()
	Must(p.r.Groups.Context.ReduceScatter(mine, terms, tensor.Sum))
	terms.Free()
	p.unpack(dqkv, mine)
	mine.Free()
}

// everyBlock makes room for the blocks of all ranks of the context axis, and blockOf is a view of one.
func (p *blocks) everyBlock() *tensor.Tensor {
	return p.r.communication(p.r.DType, p.l.sequences.degree*p.s.out.Rows(), 2*p.l.keyHeads*p.l.width)
}

func (p *blocks) blockOf(all *tensor.Tensor, owner int) *tensor.Tensor {
	rows := p.s.out.Rows()
	return all.RowRange(owner*rows, (owner+1)*rows)
}
