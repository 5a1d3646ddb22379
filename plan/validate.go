package plan

import (
	"fmt"
	"strings"

	"carve/mesh"
	"carve/model"
	"carve/unit"
)

// Validate returns every rule that p breaks as Violations, or nil. It changes nothing.
func (p Plan) Validate() error {
	if found := p.violations(); len(found) > 0 {
		return found
	}
	return nil
}

// violations returns every rule that p breaks.
func (p Plan) violations() Violations {
	c := &checker{}
	c.ranges(p)
	c.model(p.Model.Config)
	if len(c.found) > 0 { // the other rules divide and multiply these
		return c.found
	}
	c.workload(p)
	c.tensor(p.Layout, p.Model.Config)
	c.experts(p.Layout, p.Model.Config)
	c.pipeline(p)
	c.context(p)
	c.zero(p)
	c.optimizer(p.Optimizer)
	c.devices(p)
	return c.found
}

// Bounds of sizes: far beyond any run, and low enough that products do not overflow.
const (
	maxSequence = 1 << 28
	maxBatch    = 1 << 28
	maxSteps    = 1e12
	maxTokens   = 1e18
	maxChunks   = 1 << 10
	minBucket   = unit.KiB
	maxBucket   = unit.TiB
)

// ranges checks every number by itself.
func (c *checker) ranges(p Plan) {
	w, l, o := p.Workload, p.Layout, p.Optimizer
	c.within("workload.sequence", float64(w.Sequence), 1, maxSequence)
	c.within("workload.global_batch", float64(w.GlobalBatch), 1, maxBatch)
	c.within("workload.steps", float64(w.Steps), 0, maxSteps)
	c.within("workload.tokens", float64(w.Tokens), 0, maxTokens)
	c.within("workload.validation.fraction", w.Validation.Fraction, 0, 0.5)
	c.within("workload.validation.interval", float64(w.Validation.Interval), 0, maxSteps)
	c.within("workload.validation.batches", float64(w.Validation.Batches), 1, maxBatch)
	c.within("micro_batch", float64(p.MicroBatch), 1, maxBatch)
	for _, a := range mesh.All {
		c.within("layout."+a.String(), float64(l.Degrees[a]), 1, mesh.MaxWorld)
	}
	c.within("layout.tensor.chunks", float64(l.Tensor.Chunks), 1, maxChunks)
	c.within("layout.zero.hybrid", float64(l.Zero.Hybrid), 0, mesh.MaxWorld)
	if b := l.Zero.Bucket; b < minBucket || b > maxBucket {
		c.add(RuleRange, "layout.zero.bucket", "layout.zero.bucket is %v; use %v to %v", b, minBucket, maxBucket)
	}
	c.within("layout.zero.prefetch", float64(l.Zero.Prefetch), 0, 1<<10)
	c.within("layout.pipeline.virtual", float64(l.Pipeline.Virtual), 1, 1<<10)
	c.within("layout.experts.tensor", float64(l.Experts.Tensor), 1, mesh.MaxWorld)
	c.within("layout.experts.capacity", l.Experts.Capacity, 0.01, 1e6)
	c.within("layout.experts.rate", l.Experts.Rate, 0, 1)
	c.within("optimizer.learning_rate", o.LearningRate, 0, 1e3)
	c.within("optimizer.min_ratio", o.MinRatio, 0, 1)
	c.within("optimizer.warmup", float64(o.Warmup), 0, maxSteps)
	c.within("optimizer.decay", o.Decay, 0, 1)
	c.within("optimizer.beta1", o.Beta1, 0, 0.9999999)
	c.within("optimizer.beta2", o.Beta2, 0, 0.9999999)
	c.within("optimizer.eps", o.Epsilon, 1e-30, 1)
	c.within("optimizer.momentum", o.Momentum, 0, 0.9999999)
	c.within("optimizer.weight_decay", o.WeightDecay, 0, 1e3)
	c.within("optimizer.clip", o.Clip, 0, 1e12)
	c.within("checkpoint.every", float64(p.Checkpoint.Every), 0, maxSteps)
	c.within("checkpoint.keep", float64(p.Checkpoint.Keep), 1, 1<<20)
	c.within("logging.interval", float64(p.Logging.Interval), 1, maxSteps)
}

// model passes on what is wrong with the model.
func (c *checker) model(m model.Config) {
	err := m.Validate()
	if err == nil {
		return
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		c.add(RuleModel, "model", "%s", line)
	}
}

// batchKeys are what the number of micro-batches is made of.
const batchKeys = "workload.global_batch layout.dp layout.ep micro_batch"

// workload checks batch, length, data and tokenizer.
func (c *checker) workload(p Plan) {
	w := p.Workload
	share := p.MicroBatch * p.Layout.DataParallel()
	switch data := p.Layout.DataParallel(); {
	case data > w.GlobalBatch:
		c.add(RuleBatch, batchKeys, "global batch %d leaves some of %d data-parallel ranks (data degree %d x expert degree %d) without a sequence; have fewer ranks, or use %d",
			w.GlobalBatch, data, p.Layout.Degrees[mesh.DP], p.Layout.Degrees[mesh.EP], share)
	case w.GlobalBatch%share != 0:
		c.add(RuleBatch, batchKeys, "global batch %d is not a multiple of micro-batch %d x data degree %d x expert degree %d = %d; use %s",
			w.GlobalBatch, p.MicroBatch, p.Layout.Degrees[mesh.DP], p.Layout.Degrees[mesh.EP], share, multiples(w.GlobalBatch, share))
	}
	switch {
	case w.Tokens > 0 && w.Steps > 0:
		c.add(RuleLength, "workload.steps workload.tokens", "the run's length is given as %d tokens and as %d steps; keep one", w.Tokens, w.Steps)
	case w.Tokens == 0 && w.Steps == 0:
		c.add(RuleLength, "workload", "the run has no length; give workload.tokens or workload.steps")
	}
	for i, source := range w.Data {
		if source.Path == "" || strings.ContainsRune(source.Path, 0) {
			c.add(RuleData, fmt.Sprintf("workload.data.%d.path workload.data.%d", i, i), "data source %d has no usable path; name a file or a directory", i)
		}
		if !(source.Weight > 0 && source.Weight <= 1e12) {
			c.add(RuleData, fmt.Sprintf("workload.data.%d.weight workload.data.%d", i, i), "data source %d (%s) has weight %v; use a number above 0", i, source.Path, source.Weight)
		}
	}
	if w.Tokenizer.Kind == FromTokenizerFile || !w.learnsTokens() {
		c.tokenizer(w.Tokenizer, p.Model.Config.Vocab)
	}
}

// learnsTokens tells whether the data is tokens already, as far as names tell.
func (w Workload) learnsTokens() bool {
	if len(w.Data) == 0 {
		return false
	}
	s := w.Data[0]
	return s.Kind == Shards || s.Kind == AutoData && strings.HasSuffix(s.Path, ".bin")
}

// tokenizer checks that the model has a row for every token.
func (c *checker) tokenizer(t Tokenizer, vocab int) {
	switch t.Kind {
	case ByteTokenizer:
		if vocab < byteVocab {
			c.add(RuleTokenizer, "workload.tokenizer model.vocab model", "the byte tokenizer has %d tokens and the model knows %d; use a vocab of %d or more", byteVocab, vocab, byteVocab)
		}
	case TrainedBPE:
		switch {
		case vocab < byteVocab:
			c.add(RuleTokenizer, "model.vocab model", "a trained tokenizer has at least %d tokens and the model knows %d; use a vocab of %d or more", byteVocab, vocab, byteVocab)
		case t.Vocab < byteVocab || t.Vocab > vocab:
			c.add(RuleTokenizer, "workload.tokenizer.bpe workload.tokenizer", "a trained tokenizer of %d tokens does not fit a model that knows %d; use %d to %d", t.Vocab, vocab, byteVocab, vocab)
		}
	case FromTokenizerFile:
		if t.Path == "" {
			c.add(RuleTokenizer, "workload.tokenizer", "the tokenizer has no path; name a tokenizer.json")
		}
	}
}

// tensor checks what tensor parallelism splits.
func (c *checker) tensor(l Layout, m model.Config) {
	tp := l.Degrees[mesh.TP]
	whole := func(t int) bool { return m.KVHeads%t == 0 || t%m.KVHeads == 0 }
	switch {
	case m.Heads%tp != 0:
		c.add(RuleHeads, "layout.tp", "tensor degree %d does not divide %d heads; use %s", tp, m.Heads, divisors(m.Heads, whole))
	case !whole(tp):
		c.add(RuleKVHeads, "layout.tp", "tensor degree %d neither divides %d key-value heads nor is a multiple of them; use %s", tp, m.KVHeads, divisors(m.Heads, whole))
	}
	c.width("layout.tp", tp, "feed-forward width", m.FFN)
	c.width("layout.tp", tp, "shared experts' width", m.Experts.SharedFFN)
	if tp > m.Vocab {
		c.add(RuleWidth, "layout.tp", "tensor degree %d is above a vocabulary of %d; use %d or less", tp, m.Vocab, m.Vocab)
	}
	c.gathered(l, m)
}

// gathered checks what the baseline of tensor parallelism runs.
func (c *checker) gathered(l Layout, m model.Config) {
	const keys = "layout.tensor.kind"
	tp := l.Degrees[mesh.TP]
	if l.Tensor.Kind != Gathered || tp == 1 {
		return
	}
	if tp > m.KVHeads {
		c.add(RuleTensor, keys, "kind gathered does not run over tensor degree %d with %d key-value heads; use megatron, or a tensor degree of %s", tp, m.KVHeads, divisors(m.KVHeads, anyNumber))
	}
	if m.Experts.Count > 0 {
		c.add(RuleTensor, keys, "kind gathered does not run with experts; use megatron")
	}
}

// width checks that a tensor degree, which a key gives, divides a width.
func (c *checker) width(key string, degree int, name string, width int) {
	if width%degree != 0 {
		c.add(RuleWidth, key, "tensor degree %d does not divide the %s %d; use %s", degree, name, width, divisors(width, anyNumber))
	}
}

// experts checks what expert parallelism splits.
func (c *checker) experts(l Layout, m model.Config) {
	ep, tp, inner := l.Degrees[mesh.EP], l.Degrees[mesh.TP], l.Experts.Tensor
	if m.Experts.Count == 0 {
		if ep > 1 {
			c.add(RuleExperts, "layout.ep", "expert degree %d but the model has no experts; use ep 1 and %d times the dp", ep, ep)
		}
		if inner > 1 {
			c.add(RuleExperts, "layout.experts.tensor", "experts.tensor is %d but the model has no experts; use 1", inner)
		}
		return
	}
	if m.Experts.Count%ep != 0 {
		c.add(RuleExperts, "layout.ep", "expert degree %d does not divide %d experts; use %s", ep, m.Experts.Count, divisors(m.Experts.Count, anyNumber))
	}
	if inner != 1 && tp == 1 {
		c.add(RuleExperts, "layout.experts.tensor layout.tp", "experts.tensor %d shares each expert among tensor ranks, and the tensor degree is 1; use 1", inner)
		return
	}
	if inner != 1 && inner != tp {
		c.add(RuleExperts, "layout.experts.tensor layout.tp", "experts.tensor %d is neither 1 nor tensor degree %d; use 1 (whole experts, and a share of the rows on each rank) or %d (a part of every expert)", inner, tp, tp)
		return
	}
	c.width("layout.experts.tensor", inner, "experts' width", m.Experts.FFN)
	c.overlap(l)
}

// overlap checks that the schedule has forwards beside backwards.
func (c *checker) overlap(l Layout) {
	if !l.Experts.Overlap || l.Degrees[mesh.PP] == 1 && l.Chunks() == 1 {
		return
	}
	switch l.Pipeline.Schedule {
	case OneForwardOneBackward, DualPipe, DualPipeV:
	case AllForwardAllBackward, Interleaved, ZeroBubbleH1, ZeroBubbleV:
		c.add(RuleExperts, "layout.experts.overlap", "experts.overlap runs forwards beside backwards, which schedule %v does not; use 1f1b, dualpipe or dualpipe-v", l.Pipeline.Schedule)
	}
}

// context checks what context parallelism splits.
func (c *checker) context(p Plan) {
	l, m, s, cp := p.Layout, p.Model.Config, p.Workload.Sequence, p.Layout.Degrees[mesh.CP]
	if m.Position == model.Learned && s > m.Context {
		c.add(RuleSequence, "workload.sequence", "sequence %d is longer than the model's %d learned positions; use %d or less", s, m.Context, m.Context)
	}
	parts := cp
	if l.Context.Balance == Zigzag && cp > 1 {
		parts = 2 * cp
	}
	if s%parts != 0 {
		c.add(RuleSequence, "workload.sequence layout.cp", "sequence %d does not split into %d parts for context degree %d; use %s", s, parts, cp, multiples(s, parts))
		return
	}
	c.swap(l, m)
}

// swap checks that all-to-all context parallelism gives every rank as many query heads, and whole key-value heads or whole
// copies.
func (c *checker) swap(l Layout, m model.Config) {
	cp, tp := l.Degrees[mesh.CP], l.Degrees[mesh.TP]
	if l.Context.Kind != AllToAll || cp == 1 {
		return
	}
	const keys = "layout.context.kind layout.cp"
	if m.Heads%(tp*cp) != 0 {
		c.add(RuleContext, keys, "all-to-all context parallelism splits heads, and tensor degree %d x context degree %d does not divide %d heads; use ring", tp, cp, m.Heads)
		return
	}
	if own := max(m.KVHeads/tp, 1); own%cp != 0 && cp%own != 0 {
		c.add(RuleContext, keys, "all-to-all context parallelism splits heads, and context degree %d neither divides the %d key-value heads of a tensor rank nor is a multiple of them; use ring", cp, own)
	}
}

// zero checks how state is sharded.
func (c *checker) zero(p Plan) {
	z := p.Layout.Zero
	ranks := p.Layout.Degrees.Over(mesh.DenseData)
	if z.Hybrid > 0 && ranks%z.Hybrid != 0 {
		c.add(RuleZero, "layout.zero.hybrid", "hybrid sharding over %d ranks does not divide the %d that hold the same parameters; use 0 (all) or %s", z.Hybrid, ranks, divisors(ranks, anyNumber))
	}
	if z.Stage > ShardParameters {
		c.add(RuleZero, "layout.zero.stage", "zero stage %d; use 0 to 3", z.Stage)
	}
	if p.Optimizer.Name == Muon && z.Stage > Replicated && z.Ownership != WholeTensor && ranks > 1 {
		c.add(RuleZero, "layout.zero.ownership layout.zero.stage optimizer.name", "muon needs whole matrices, and zero stage %d deals out flat ranges; use ownership: tensor", z.Stage)
	}
	if z.Reduce == Server && z.Stage != Replicated {
		c.add(RuleZero, "layout.zero.stage layout.zero.reduce", "a parameter server owns all state, and zero stage %d shards it; use stage 0", z.Stage)
	}
}

// optimizer checks rules between the optimizer's numbers.
func (c *checker) optimizer(o Optimizer) {
	if o.Schedule == WarmupStableDecay && o.Decay == 0 {
		c.add(RuleOptimizer, "optimizer.decay optimizer.schedule", "schedule wsd has no part to decay in; use a decay above 0, such as 0.2")
	}
}

// devices checks order and number of ranks, and the period of recomputation.
func (c *checker) devices(p Plan) {
	if err := p.Layout.Order.Validate(); err != nil {
		c.add(RuleOrder, "layout.order", "%s", strings.TrimPrefix(err.Error(), "mesh: "))
	} else if _, err := p.Layout.Mesh(); err != nil {
		c.add(RuleWorld, "layout", "%s", strings.TrimPrefix(err.Error(), "mesh: "))
		return
	}
	world, machine := p.Layout.World(), p.Cluster.Machine
	if p.Cluster.Known() && p.Cluster.Preset != thisMachineName && world > machine.Devices() {
		c.add(RuleWorld, "layout cluster", "the layout needs %d devices (%s) and the cluster has %d; use smaller degrees or %d nodes of %d",
			world, p.Layout.Degrees, machine.Devices(), (world+machine.Node-1)/machine.Node, machine.Node)
	}
	if every, layers := p.Recompute.Every, p.Model.Config.Layers; p.Recompute.Kind == Periodic && (every < 1 || every > layers) {
		c.add(RuleRecompute, "recompute.every recompute", "recompute every %d layers of %d; use 1 to %d", every, layers, layers)
	}
}
