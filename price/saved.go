package price

// save says what a block keeps for its backward, in bytes on the rank for a micro-batch, and what it works with. After Korthikanti
// et al. 2022, equations 1 to 4, with two bytes an element; block-wise attention keeps a number a row and head
// instead of scores.
func (p *pricer) save(b *block, index int) {
	c, l := &p.job.Model, p.job.Layout
	h, tp, s := float64(c.Hidden), float64(l.TP), float64(p.job.Sequence)
	heads := float64(c.Heads) / tp
	query, value := heads*float64(c.HeadDim), heads*float64(c.ValueDim())
	keys := 2 * max(float64(c.KVSize())/tp, float64(c.HeadDim))
	if c.KVHeads == c.Heads {
		keys = query + value
	}
	attention := 2*(query+keys+value) + 4*heads
	scores := 0.0
	if p.job.Unfused {
		scores = 5 * heads * s
	}
	inputs := 4 * h // of two norms
	normed := 4 * h // inputs of the maps
	masks := 0.0
	if c.Dropout.Residual > 0 {
		masks = 2 * h
	}
	inner := p.savedFeedForward(index)
	all := p.profile.Kept * (p.local*(inputs+normed+masks) + p.rows*(attention+scores) + inner)
	switch l.Recompute {
	case KeepAll:
		b.saved = all
	case Attention:
		b.saved = all - p.rows*scores
	case Partly:
		b.saved = 0.5*all + p.local*inputs/2
	case FullBlock:
		b.saved = p.local * 2 * h
	}
	b.working = all
}

// savedFeedForward is what the second branch keeps.
func (p *pricer) savedFeedForward(index int) float64 {
	c, l := &p.job.Model, p.job.Layout
	wide := 2 * p.widths()
	if !c.HasExperts(index) {
		return p.rows * wide * float64(c.FFN) / float64(l.TP)
	}
	rows := p.expertRows()
	kept := rows * (4*float64(c.Hidden) + wide*float64(c.Experts.FFN)/float64(l.ExpertTP))
	return kept + p.rows*wide*float64(c.Experts.SharedFFN)/float64(l.TP) + 4*p.local*float64(c.Experts.Count)
}
