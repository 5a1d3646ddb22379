package verify

import (
	"carve/mesh"
	"carve/model"
	"carve/parallel"
	"carve/plan"
)

// assemble makes the plan of one choice per aspect, by number.
func assemble(aspects []aspect, choices []int) plan.Plan {
	p := plan.Default()
	p.Workload.Tokens, p.Workload.Steps = 0, Steps
	p.Model.Origin = plan.Inline
	for _, a := range mesh.All {
		p.Layout.Degrees[a] = 1
	}
	p.Layout.Pipeline.Virtual = 1
	for i, a := range aspects {
		a.choices[choices[i]].set(&p)
	}
	sizes(&p)
	return p
}

// sizes gives a plan of the matrix the small sizes that its layout can split.
func sizes(p *plan.Plan) {
	c, l := &p.Model.Config, &p.Layout
	d := l.Degrees
	tp := d[mesh.TP]
	l.Zero.Bucket, l.Zero.Prefetch = smallBucket, 1
	if l.Chunks() == 1 {
		l.Pipeline = plan.Pipeline{Schedule: plan.OneForwardOneBackward, Virtual: 1}
	}
	c.Hidden, c.HeadDim, c.FFN, c.Vocab, c.InitStd = smallHidden, smallHead, smallFFN*tp, smallVocab, smallStd
	sizeHeads(p)
	sizeExperts(p)
	sizeStages(p)
	step := 1
	if cp := d[mesh.CP]; cp > 1 {
		step = cp
		if l.Context.Balance == plan.Zigzag {
			step = 2 * cp
		}
	}
	if l.SequenceParallel {
		step *= tp
	}
	p.Workload.Sequence = (smallSpan + step - 1) / step * step
	c.Context = 2 * p.Workload.Sequence
	p.Workload.GlobalBatch = p.MicroBatch * l.DataParallel() * sizeMicros(*p)
}

// sizeHeads makes enough heads for the ranks that split them; with four tensor ranks and grouped heads, two ranks share one.
func sizeHeads(p *plan.Plan) {
	c, l := &p.Model.Config, p.Layout
	ratio, ranks := c.Heads/c.KVHeads, l.Degrees[mesh.TP]
	if l.Context.Kind == plan.AllToAll {
		ranks *= l.Degrees[mesh.CP]
	}
	switch {
	case c.KVHeads == 1:
		c.Heads = ratio * ranks
		return
	case ratio > 1 && ranks == 4 && l.Degrees[mesh.CP] == 1:
		c.KVHeads = 2
	default:
		c.KVHeads = max(ranks, 2)
		if c.KVHeads%ranks != 0 {
			c.KVHeads = 2 * ranks
		}
	}
	c.Heads = ratio * c.KVHeads
}

// sizeExperts makes four experts on every expert rank; a bias goes with groups, and a loss with a dense first layer.
func sizeExperts(p *plan.Plan) {
	e, l := &p.Model.Config.Experts, &p.Layout
	if l.Experts.Tensor > 1 { // the grid does not know the degree yet
		l.Experts.Tensor = l.Degrees[mesh.TP]
	}
	if e.Count == 0 {
		l.Experts.Tensor, l.Experts.Overlap, *e = 1, false, model.Experts{}
		return
	}
	ep := l.Degrees[mesh.EP]
	e.Count, e.FFN = 4*ep, smallExpert*max(l.Experts.Tensor, 1)
	if e.SharedFFN > 0 {
		e.SharedFFN = (smallExpert + 1) * l.Degrees[mesh.TP]
	}
	switch l.Experts.Balance {
	case plan.BiasBalance:
		e.Score, e.Balance = model.SigmoidScore, model.BiasBalance
		e.Groups, e.GroupsPerToken = 2*ep, min(ep, 2)
	case plan.LossBalance:
		e.FirstDense = 1
	case plan.ModelBalance, plan.NoBalance:
	}
}

// sizeStages makes the layers that the chunks need: one each, one more for balanced stages, and for listed ones two
// in the first and none in the last, where only the head is.
func sizeStages(p *plan.Plan) {
	c, chunks := &p.Model.Config, p.Layout.Chunks()
	c.Layers = max(chunks, 2)
	stages := &p.Layout.Pipeline.Stages
	switch stages.Kind {
	case plan.Even:
		c.Layers = chunks * ((2 + chunks - 1) / chunks)
	case plan.Balanced:
		if chunks > 1 {
			c.Layers++
		}
	case plan.Listed:
		stages.Layers = make([]int, chunks)
		for i := range stages.Layers {
			stages.Layers[i] = 1
		}
		stages.Layers[0], stages.Layers[chunks-1] = 2, 0
		c.Layers = chunks
	}
}

// sizeMicros is the number of micro-batches: one, or with accumulation some that the schedule takes. The plan's global batch is 1
// where it asks for one.
func sizeMicros(p plan.Plan) int {
	if p.Workload.GlobalBatch == 1 {
		return 1
	}
	return micros(p.Layout, 8)
}

// legal tells whether a plan of the matrix can be run.
func legal(p plan.Plan) bool {
	return p.Layout.World() <= mostMatrixRanks && p.Validate() == nil && parallel.Check(p) == nil
}
