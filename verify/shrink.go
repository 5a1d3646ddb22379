package verify

import (
	"slices"

	"carve/mesh"
	"carve/model"
	"carve/plan"
	"carve/unit"
)

// Sizes of a small model. None of them is a multiple of another without need, so that a dim taken for another shows.
const (
	smallHidden = 24
	smallHead   = 4
	smallFFN    = 7 // a tensor rank's share
	smallExpert = 5
	smallVocab  = 263 // a prime just above the byte tokenizer's 256: no degree divides it
	smallSpan   = 12  // least sequence
	smallStd    = 0.25
	smallBucket = 8 * unit.KiB // some units each
)

// mostRanks is the world that Shrink stays below where it has a choice: a third rank on an axis shows more than two, but
// two on each of five axes are 32 already.
const mostRanks = 32

// Shrink is a plan of the same kind that runs on one machine: what makes it a layout stays, sizes do not.
//
// Every axis above 1 stays above 1: with 2 ranks, or with 3 or 4 where more show more and the world stays small (a ring has no order below
// 3 ranks, a pipeline no inner stage, hybrid sharding no replicas below 4). Schedule, chunks, unevenness of stages, ZeRO and
// ownership, recompute, packing, kinds of norm, position, bias and attention, tied embeddings, experts with
// their groups and balance, and the ratio of query to key-value heads (one, several, or fewer than tensor ranks) stay. The
// result of a valid plan is valid.
func Shrink(p plan.Plan) plan.Plan {
	small := p
	for generosity := most; ; generosity-- {
		small.Layout.Degrees = degrees(p, generosity)
		if generosity == least || small.Layout.World() <= mostRanks {
			break
		}
	}
	small.Cluster = plan.Default().Cluster
	shrinkLayout(&small, p)
	shrinkModel(&small, p)
	shrinkStages(&small, p)
	shrinkWorkload(&small, p)
	return small
}

// generosity is how many ranks an axis gets beyond two.
type generosity int

const (
	least generosity = iota // 2 everywhere, but where the plan would become another one
	rings                   // 3 on context and pipeline axes
	most                    // and on the data axis
)

// degrees are small degrees of the axes.
func degrees(p plan.Plan, g generosity) (d mesh.Degrees) {
	l, c := p.Layout, p.Model.Config
	for _, a := range mesh.All {
		d[a] = min(l.Degrees[a], 2)
	}
	if k := c.KVHeads; 1 < k && k < l.Degrees[mesh.TP] {
		d[mesh.TP] = 4 // two key-value heads, each on two ranks
	}
	if g >= rings {
		if l.Context.Kind != plan.AllToAll {
			d[mesh.CP] = min(l.Degrees[mesh.CP], 3)
		}
		d[mesh.PP] = min(l.Degrees[mesh.PP], 3)
		if l.Pipeline.Schedule == plan.DualPipe && l.Degrees[mesh.PP] >= 4 {
			d[mesh.PP] = 4
		}
	}
	if g >= most && l.Degrees[mesh.DP]%2 == 1 {
		d[mesh.DP] = min(l.Degrees[mesh.DP], 3)
	}
	for _, a := range []mesh.Axis{mesh.DP, mesh.EP, mesh.CP} {
		if inner(l) && d.Over(mesh.DenseData) < 4 { // else there is no room for shards and replicas
			d[a] = min(l.Degrees[a], 4)
		}
	}
	return d
}

// inner tells whether sharding is neither over all ranks nor over one.
func inner(l plan.Layout) bool {
	return l.Zero.Hybrid > 1 && l.Zero.Hybrid < l.Degrees.Over(mesh.DenseData)
}

// shrinkLayout adapts what goes with the degrees.
func shrinkLayout(s *plan.Plan, p plan.Plan) {
	z, ranks := &s.Layout.Zero, s.Layout.Degrees.Over(mesh.DenseData)
	z.Bucket, z.Prefetch = smallBucket, min(z.Prefetch, 2)
	switch {
	case inner(p.Layout):
		z.Hybrid = leastDivisor(ranks)
	case z.Hybrid > 1:
		z.Hybrid = ranks
	}
	s.Layout.Pipeline.Virtual = min(s.Layout.Pipeline.Virtual, 2)
	if s.Layout.Experts.Tensor > 1 {
		s.Layout.Experts.Tensor = s.Layout.Degrees[mesh.TP]
	}
}

// leastDivisor is the smallest divisor of n above 1; n of a prime and of 1.
func leastDivisor(n int) int {
	for d := 2; d < n; d++ {
		if n%d == 0 {
			return d
		}
	}
	return n
}

// shrinkModel makes the widths small.
func shrinkModel(s *plan.Plan, p plan.Plan) {
	c := &s.Model.Config
	tp := s.Layout.Degrees[mesh.TP]
	s.Model.Origin = plan.Inline
	c.Hidden, c.Vocab, c.InitStd = smallHidden, smallVocab, smallStd
	if c.FFN > 0 {
		c.FFN = smallFFN * tp
	}
	shrinkHeads(s, p)
	shrinkRope(c)
	shrinkExperts(c, s.Layout)
	c.MTP = min(c.MTP, 1)
	if c.Window.Size > 0 {
		c.Window = model.Window{Size: smallSpan / 2, From: min(c.Window.From, 1), FullEvery: min(c.Window.FullEvery, 2)}
	}
	if c.QueryScale > 0 {
		c.QueryScale = smallHead
	}
	if c.EmbeddingScale > 0 {
		c.EmbeddingScale = min(c.EmbeddingScale, 3)
	}
}

// shrinkHeads keeps the ratio of heads to key-value heads, and of those to the ranks that share them.
func shrinkHeads(s *plan.Plan, p plan.Plan) {
	c, was := &s.Model.Config, p.Model.Config
	tp, cp := s.Layout.Degrees[mesh.TP], 1
	if s.Layout.Context.Kind == plan.AllToAll {
		cp = s.Layout.Degrees[mesh.CP]
	}
	if c.Attention == model.LatentKV {
		c.Latent = model.Latent{QueryRank: min(c.Latent.QueryRank, 6), KVRank: 5, NopeDim: 4, RopeDim: 2, ValueDim: 3}
		c.Heads, c.HeadDim = 2*tp*cp, 6
		c.KVHeads = c.Heads
		return
	}
	c.HeadDim = smallHead
	switch share := was.KVHeads / p.Layout.Degrees[mesh.TP]; {
	case was.KVHeads == 1:
	case share == 0: // several ranks hold a head
		c.KVHeads = max(tp/2, 1)
	case share%max(cp, 1) == 0:
		c.KVHeads = tp * cp
	default:
		c.KVHeads = tp
	}
	if c.KVHeads == 1 && tp*cp == 1 && was.KVHeads > 1 {
		c.KVHeads = 2 // one head alone would be multi-query
	}
	c.Heads = c.KVHeads
	if was.Heads > was.KVHeads {
		c.Heads *= 2
	}
	for c.Heads%(tp*cp) != 0 {
		c.Heads += c.KVHeads
	}
}

// shrinkRope keeps the parts of the head that rotate, and lets a scaling begin within a short sequence.
func shrinkRope(c *model.Config) {
	if c.Position != model.Rotary {
		return
	}
	if f := c.Rope.Fraction; c.Attention == model.Grouped && f < 1 {
		c.Rope.Fraction = 0.5
	}
	if c.Rope.OriginalContext > 0 {
		c.Rope.OriginalContext = smallSpan / 2
	}
}

// shrinkExperts keeps the number of choices above one, groups, shared experts and dense layers.
func shrinkExperts(c *model.Config, l plan.Layout) {
	e := &c.Experts
	if e.Count == 0 {
		return
	}
	ep, tp := l.Degrees[mesh.EP], l.Degrees[mesh.TP]
	e.Count, e.PerToken = 4*ep, min(e.PerToken, 2)
	e.FFN = smallExpert * l.Experts.Tensor
	if e.SharedFFN > 0 {
		e.SharedFFN = (smallExpert + 1) * tp
	}
	e.FirstDense, e.Every = min(e.FirstDense, 1), min(e.Every, 2)
	if e.Groups > 1 {
		e.Groups, e.GroupsPerToken = 2*ep, min(e.GroupsPerToken, 2)
	}
}

// shrinkStages leaves the layers that the chunks need, and one more where they were uneven.
func shrinkStages(s *plan.Plan, p plan.Plan) {
	c, chunks := &s.Model.Config, s.Layout.Chunks()
	fewest := 2
	if c.Experts.Count > 0 { // a layer of each kind
		fewest = max(c.Experts.FirstDense+c.Experts.Every, 2)
	}
	stages := &s.Layout.Pipeline.Stages
	switch stages.Kind {
	case plan.Listed:
		stages.Layers = shorten(stages.Layers, chunks, fewest)
		c.Layers = 0
		for _, n := range stages.Layers {
			c.Layers += n
		}
	case plan.Even:
		c.Layers = chunks * ((fewest + chunks - 1) / chunks)
	case plan.Balanced:
		c.Layers = max(chunks, fewest)
		if chunks > 1 && p.Model.Config.Layers > p.Layout.Chunks() {
			c.Layers++
		}
	}
	if s.Recompute.Kind == plan.Periodic {
		s.Recompute.Every = min(s.Recompute.Every, max(2, c.Layers/2), c.Layers)
	}
}

// shorten is a list of small stages in the spirit of a long one: its first and last entries and some between, those
// without layers empty, those above the least of the others larger.
func shorten(list []int, chunks, fewest int) []int {
	smallest := 0
	for _, n := range list {
		if n > 0 && (smallest == 0 || n < smallest) {
			smallest = n
		}
	}
	out, sum := make([]int, chunks), 0
	for i := range out {
		from := list[0]
		if chunks > 1 {
			from = list[i*(len(list)-1)/(chunks-1)]
		}
		out[i] = min(from, 1)
		if from > smallest {
			out[i]++
		}
		sum += out[i]
	}
	if sum < fewest {
		most := slices.Index(out, slices.Max(out))
		out[most] += fewest - sum
	}
	return out
}

// shrinkWorkload leaves short sequences and few micro-batches.
func shrinkWorkload(s *plan.Plan, p plan.Plan) {
	w, l := &s.Workload, s.Layout
	step := 1 // of sequence lengths that can be split
	if cp := l.Degrees[mesh.CP]; cp > 1 {
		step = cp
		if l.Context.Balance == plan.Zigzag {
			step = 2 * cp
		}
	}
	if l.SequenceParallel {
		step *= l.Degrees[mesh.TP]
	}
	w.Sequence = (smallSpan + step - 1) / step * step
	s.Model.Config.Context = 2 * w.Sequence
	w.Data, w.Tokenizer = nil, plan.Tokenizer{}
	w.Tokens, w.Steps = 0, Steps
	s.MicroBatch = min(s.MicroBatch, 2)
	w.GlobalBatch = s.MicroBatch * l.DataParallel() * micros(l, p.MicroBatches())
}

// micros is a small number of micro-batches that the schedule takes: fewer than stages, or more, as before.
func micros(l plan.Layout, was int) int {
	pp := l.Degrees[mesh.PP]
	if pp == 1 && l.Chunks() == 1 {
		return min(was, 3)
	}
	switch l.Pipeline.Schedule {
	case plan.Interleaved:
		return pp * min((was+pp-1)/pp, 2)
	case plan.DualPipe, plan.DualPipeV:
		return 2*pp + 2
	case plan.AllForwardAllBackward, plan.OneForwardOneBackward, plan.ZeroBubbleH1, plan.ZeroBubbleV:
	}
	return min(was, 2*pp+1)
}
