package price

import (
	"carve/collective"
	"carve/cost"
	"carve/mesh"
	"carve/model"
	"carve/unit"
)

// block is what a layer costs on a rank for a micro-batch.
type block struct {
	forward, backward unit.Seconds // computing, recomputation within
	tp, ep, cp        unit.Seconds // exposed, of both passes
	parameters        float64      // on the rank, of the dense part
	experts           float64      // on the rank, of the routed experts
	saved             float64      // bytes kept for the backward
	working           float64      // bytes kept while one block is computed again, or computes
}

// pricer prices one job on one machine.
type pricer struct {
	job     *Job
	machine *cost.Machine
	profile *Profile
	peak    unit.FLOPsPerSecond // of products
	rows    float64             // T
	local   float64             // rows of what the tensor axis does not split otherwise
	tp, dp  cost.Group
	cp, ep  cost.Group
	shard   cost.Group // that state is sharded over
	experts cost.Group // that share the same experts' gradients
	hop     unit.Seconds
}

// newPricer places the axes on the links, in the default order: what talks most inside.
func newPricer(j *Job, m *cost.Machine, f *Profile) (*pricer, error) {
	l := j.Layout
	grid, err := mesh.New(mesh.Degrees{mesh.TP: l.TP, mesh.CP: l.CP, mesh.EP: l.EP, mesh.DP: l.DP, mesh.PP: l.PP}, mesh.DefaultOrder())
	if err != nil {
		return nil, err
	}
	machine := *m
	machine.Congestion = f.Congestion
	m = &machine
	p := &pricer{job: j, machine: m, profile: f, rows: j.rows(), peak: peak(m, j.Format)}
	p.local = p.rows
	if l.SequenceParallel {
		p.local /= float64(l.TP)
	}
	p.tp, p.dp = m.GroupOf(grid, mesh.Of(mesh.TP)), m.GroupOf(grid, mesh.DenseData)
	p.cp, p.ep = m.GroupOf(grid, mesh.Of(mesh.CP)), m.GroupOf(grid, mesh.Of(mesh.EP))
	p.experts = m.GroupOf(grid, mesh.ExpertData)
	p.shard = p.dp
	if l.Shard > 0 && l.Shard < p.dp.Size() {
		if grid, err = mesh.New(mesh.Degrees{mesh.TP: l.TP, mesh.DP: l.Shard}, mesh.DefaultOrder()); err != nil {
			return nil, err
		}
		p.shard = m.GroupOf(grid, mesh.Of(mesh.DP))
	}
	if l.PP > 1 {
		p.hop = m.Message(0, l.World()/l.PP, p.local*float64(j.Model.Hidden)*2)
	}
	return p, nil
}

// peak is the data sheet's rate of a format; what it lacks is computed in the next wider one.
func peak(m *cost.Machine, f Format) unit.FLOPsPerSecond {
	p := m.Cluster.Device.Peak
	bf16 := p.BF16
	if bf16 == 0 {
		bf16 = p.FP32
	}
	switch {
	case f == FP4 && p.FP4 > 0:
		return p.FP4
	case (f == FP8 || f == FP4) && p.FP8 > 0:
		return p.FP8
	case f == FP32 && p.FP32 > 0:
		return p.FP32
	case f == FP32:
		return bf16 / 2
	}
	return bf16
}

// products adds the products of a map of rows x in to out: one forward, and two backward.
func (p *pricer) products(b *block, rows, out, in float64) { p.grouped(b, 1, rows, out, in) }

// grouped adds the products of several maps of the same size.
func (p *pricer) grouped(b *block, count, rows, out, in float64) {
	if rows <= 0 || out <= 0 || in <= 0 {
		return
	}
	moved := unit.Bytes(2 * count * (rows*in + in*out + rows*out))
	k := unit.Seconds(p.profile.Kernel)
	b.forward += k * p.machine.Grouped(count, cost.Product{M: rows, N: out, K: in, Peak: p.peak}, moved)
	b.backward += k * p.machine.Grouped(count, cost.Product{M: rows, N: in, K: out, Peak: p.peak}, moved)
	b.backward += k * p.machine.Grouped(count, cost.Product{M: in, N: out, K: rows, Peak: p.peak}, moved)
}

// attention adds the core: scores and weighted sum, half of them under a causal mask.
func (p *pricer) attention(b *block, layer int) (core block) {
	c, l := &p.job.Model, p.job.Layout
	heads := float64(c.Heads) / float64(l.TP)
	width := float64(c.HeadDim + c.ValueDim())
	keys := c.MeanKeys(layer, p.job.Sequence, model.Causal)
	moved := unit.Bytes(2 * p.rows * width * (heads + float64(c.KVHeads)/float64(l.TP)))
	half := peak(p.machine, BF16)
	if !p.job.Unfused {
		f := unit.FLOPs(2 * p.rows * heads * width * keys)
		core.forward = p.machine.Attention(f, p.machine.Constants.Attention, half, moved)
		core.backward = p.machine.Attention(f*5/2, p.machine.Constants.AttentionBackward, half, 2*moved)
		core.forward *= unit.Seconds(p.profile.Attention)
		core.backward *= unit.Seconds(p.profile.Attention)
	} else { // every score, by batched products, and softmax, mask and dropout through memory
		s := float64(p.job.Sequence)
		batch := p.rows / s * heads
		q := cost.Product{M: s, N: s, K: float64(c.HeadDim), Peak: half}
		scores := unit.Bytes(2 * p.rows * heads * s)
		core.forward = 2*p.machine.Grouped(batch, q, scores) + p.machine.Memory(4*scores)
		core.backward = 4*p.machine.Grouped(batch, q, scores) + p.machine.Memory(6*scores)
	}
	b.forward += core.forward
	b.backward += core.backward
	return core
}

// layer prices one block, with or without experts.
func (p *pricer) layer(index int) block {
	var b block
	c, l, f := &p.job.Model, p.job.Layout, p.profile
	h, tp := float64(c.Hidden), float64(l.TP)
	p.projections(&b)
	core := p.attention(&b, index)
	inner := float64(c.QuerySize()+2*c.KVSize()) / tp
	elementwise := 10*h*p.local + 4*inner*p.rows // bytes: two norms, two residuals; rotary and layout of heads
	if c.HasExperts(index) {
		elementwise += p.expertLayer(&b)
	} else {
		p.feedForward(&b, p.rows, float64(c.FFN)/tp)
		elementwise += 2 * p.rows * float64(c.FFN) / tp * p.widths()
	}
	memory := unit.Seconds(f.Fusion) * p.machine.Memory(unit.Bytes(2*elementwise))
	b.forward += memory
	b.backward += 2 * memory
	b.parameters = p.denseParameters(index)
	b.experts = float64(c.LayerParameters(index)[model.Expert]) / float64(l.EP*l.ExpertTP)
	p.communicate(&b, core)
	p.save(&b, index)
	p.recompute(&b, core)
	host := unit.Seconds(f.Host)
	if l.TP > 1 {
		host += unit.Seconds(f.HostTP)
	}
	b.forward, b.backward = max(b.forward, host), max(b.backward, 2*host)
	return b
}

// widths is how many arrays of the feed-forward's width an activation reads and writes.
func (p *pricer) widths() float64 {
	if p.job.Model.Activation.Gated() {
		return 3
	}
	return 2
}

// projections adds the maps of attention.
func (p *pricer) projections(b *block) {
	c := &p.job.Model
	h, tp := float64(c.Hidden), float64(p.job.Layout.TP)
	if c.Attention == model.Grouped {
		p.products(b, p.rows, (float64(c.QuerySize())+2*max(float64(c.KVSize()), float64(c.HeadDim)*tp))/tp, h)
		p.products(b, p.rows, h, float64(c.QuerySize())/tp)
		return
	}
	a, heads := c.Latent, float64(c.Heads)/tp
	if a.QueryRank > 0 {
		p.products(b, p.rows, float64(a.QueryRank), h)
		p.products(b, p.rows, heads*float64(c.HeadDim), float64(a.QueryRank))
	} else {
		p.products(b, p.rows, heads*float64(c.HeadDim), h)
	}
	p.products(b, p.rows, float64(a.KVRank+a.RopeDim), h)
	p.products(b, p.rows, heads*float64(a.NopeDim+a.ValueDim), float64(a.KVRank))
	p.products(b, p.rows, h, heads*float64(a.ValueDim))
}

// feedForward adds the two or three products of a width on the rank.
func (p *pricer) feedForward(b *block, rows, width float64) {
	h, up := float64(p.job.Model.Hidden), 1.0
	if p.job.Model.Activation.Gated() {
		up = 2
	}
	p.products(b, rows, up*width, h)
	p.products(b, rows, h, width)
}

// expertLayer adds router, experts, shared experts and their exchange; it returns the bytes of memory-bound work.
func (p *pricer) expertLayer(b *block) float64 {
	c, l := &p.job.Model, p.job.Layout
	e, h := c.Experts, float64(c.Hidden)
	rows := p.expertRows()
	own := float64(e.Count) / float64(l.EP)
	width, up := float64(e.FFN)/float64(l.ExpertTP), 1.0
	if c.Activation.Gated() {
		up = 2
	}
	p.grouped(b, own, rows/own, up*width, h)
	p.grouped(b, own, rows/own, h, width)
	p.products(b, p.local, float64(e.Count), h)
	if e.SharedFFN > 0 {
		p.feedForward(b, p.rows, float64(e.SharedFFN)/float64(l.TP))
	}
	exchange := 2 * p.ep.Collective(collective.AllToAll, rows*h*2)
	b.ep = 2 * exchange * unit.Seconds(1-p.profile.HiddenEP)
	return 8*rows*h + 2*rows*width*p.widths() // sorted in and out, and gated
}

// expertRows is the rows that a rank's experts get, on average.
func (p *pricer) expertRows() float64 {
	l := p.job.Layout
	return p.rows * float64(p.job.Model.Experts.PerToken) * float64(l.ExpertTP) / float64(l.TP)
}

// communicate adds the exposed collectives of the tensor and context axes.
func (p *pricer) communicate(b *block, core block) {
	c, l := &p.job.Model, p.job.Layout
	bytes := p.rows * float64(c.Hidden) * 2
	if l.TP > 1 {
		gather, scatter := p.tp.Collective(collective.AllGather, bytes), p.tp.Collective(collective.ReduceScatter, bytes)
		all := 4 * p.tp.Collective(collective.AllReduce, bytes)
		if l.SequenceParallel { // and the inputs are gathered once more for the gradients of weights
			all = 4*(gather+scatter) + 2*gather*unit.Seconds(1-p.profile.HiddenTP)
		}
		b.tp = all * unit.Seconds(1-p.profile.HiddenTP)
	}
	if l.CP > 1 {
		keys := p.rows * float64(l.CP) * 2 * max(float64(c.KVSize())/float64(l.TP), float64(c.HeadDim)) * 2
		ring := p.cp.Collective(collective.AllGather, keys)
		b.cp = max(0, ring-core.forward) + max(0, 2*ring-core.backward)
	}
}

// denseParameters is the parameters of a block on the rank without routed experts.
func (p *pricer) denseParameters(index int) float64 {
	n := p.job.Model.LayerParameters(index)
	tp := float64(p.job.Layout.TP)
	return float64(n[model.AttentionMap]+n[model.MLP]+n[model.SharedExpert])/tp + float64(n[model.Normal]+n[model.Router])
}

// recompute adds what is computed again.
func (p *pricer) recompute(b *block, core block) {
	switch p.job.Layout.Recompute {
	case KeepAll:
	case Attention:
		b.backward += core.forward
	case Partly:
		b.backward += b.forward / 2
	case FullBlock:
		b.backward += b.forward
		b.tp += b.tp / 2
		b.ep += b.ep / 2
	}
}
