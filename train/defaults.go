package train

import (
	"carve/mesh"
	"carve/model"
	"carve/plan"
	"carve/unit"
)

// DefaultTime is how long a run takes that is told neither a time nor a number of steps. Preparing the text for the
// first time, and writing a sample at the end, come on top.
const DefaultTime unit.Seconds = 88

// The default run, in one place: a small Llama that learns Go's own source. In the few hundred steps that fit its time,
// Muon reaches a validation loss that AdamW needs several times the steps for, and a head of its own learns faster than
// one tied to the embedding. The rate is the best of a few tried on 300,000 tokens.
const (
	defaultVocab    = 4096
	defaultHidden   = 256
	defaultLayers   = 4
	defaultHeads    = 4
	defaultFFN      = 704
	defaultSequence = 256
	defaultBatch    = 8 // sequences of a step, about: the ranks share them
	defaultRate     = 6e-3
	defaultMinRatio = 0.01
	defaultDecay    = 0.01
	defaultWarmup   = 10
)

// DefaultPlan is the plan of a run that is told nothing, on a machine with so many cores: a rank a core.
func DefaultPlan(cores int) plan.Plan {
	p := plan.Default()
	p.Model = plan.Model{Origin: plan.Inline, Config: defaultModel()}
	p.Workload.Sequence = defaultSequence
	p.Workload.Tokenizer = plan.Tokenizer{Kind: plan.TrainedBPE, Vocab: defaultVocab}
	p.Workload.Validation = plan.Validation{Fraction: 0.05, Interval: 1, Batches: 8}
	p.Layout.Zero.Stage = plan.Replicated
	p.Layout.Zero.Bucket = 4 * unit.MiB
	p.Precision = plan.FP32
	p.Optimizer.Name, p.Optimizer.Schedule = plan.Muon, plan.Linear
	p.Optimizer.LearningRate, p.Optimizer.MinRatio = defaultRate, defaultMinRatio
	p.Optimizer.Warmup, p.Optimizer.WeightDecay = defaultWarmup, defaultDecay
	p.Checkpoint = plan.Checkpoint{Every: 1, Keep: 2}
	p.Logging.Interval = 1
	return WithSteps(WithRanks(p, cores), 400)
}

// defaultModel is a Llama of about 5 million parameters.
func defaultModel() model.Config {
	c := model.New(model.Llama)
	c.Layers, c.Hidden, c.FFN, c.Vocab, c.Context = defaultLayers, defaultHidden, defaultFFN, defaultVocab, defaultSequence
	c.Heads, c.KVHeads, c.HeadDim = defaultHeads, defaultHeads, defaultHidden/defaultHeads
	c.NormEpsilon, c.Rope.Theta, c.InitStd = 1e-5, 10_000, 0.02
	c.TieEmbeddings = false
	return c
}

// WithRanks is the default plan over so many data-parallel ranks: each has the same whole number of sequences, and all
// together about the default batch, or one each.
func WithRanks(p plan.Plan, ranks int) plan.Plan {
	each := max(1, (defaultBatch+ranks/2)/ranks)
	p.Layout.Degrees[mesh.DP] = ranks
	p.Workload.GlobalBatch = each * ranks
	p.MicroBatch = each
	return p
}
