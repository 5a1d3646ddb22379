package train

import (
	"carve/mesh"
	"carve/model"
	"carve/plan"
	"carve/unit"
)

// DefaultTime is how long a run takes that is told neither a time nor a number of steps. Preparing the text for the
// first time, and writing a sample at the end, come on top.
const DefaultTime unit.Seconds = 80

// The default run, in one place: a small Llama that learns Go's own source.
const (
	defaultVocab    = 4096
	defaultHidden   = 256
	defaultLayers   = 6
	defaultHeads    = 4
	defaultFFN      = 704
	defaultSequence = 256
	defaultBatch    = 8 // sequences of a step, about: the ranks share them
	defaultRate     = 3e-3
	defaultWarmup   = 30
)

// DefaultPlan is the plan of a run that is told nothing, on a machine with so many cores: a rank a core.
func DefaultPlan(cores int) plan.Plan {
	p := plan.Default()
	p.Model = plan.Model{Origin: plan.Inline, Config: defaultModel()}
	p.Workload.Sequence = defaultSequence
	p.Workload.Tokenizer = plan.Tokenizer{Kind: plan.TrainedBPE, Vocab: defaultVocab}
	p.Workload.Validation = plan.Validation{Fraction: 0.005, Interval: 1, Batches: 8}
	p.Layout.Zero.Stage = plan.Replicated
	p.Layout.Zero.Bucket = 4 * unit.MiB
	p.Precision = plan.FP32
	p.Optimizer.LearningRate, p.Optimizer.Warmup = defaultRate, defaultWarmup
	p.Checkpoint = plan.Checkpoint{Every: 1, Keep: 2}
	p.Logging.Interval = 1
	return WithSteps(WithRanks(p, cores), 400)
}

// defaultModel is a Llama of about 6 million parameters.
func defaultModel() model.Config {
	c := model.New(model.Llama)
	c.Layers, c.Hidden, c.FFN, c.Vocab, c.Context = defaultLayers, defaultHidden, defaultFFN, defaultVocab, defaultSequence
	c.Heads, c.KVHeads, c.HeadDim = defaultHeads, defaultHeads, defaultHidden/defaultHeads
	c.NormEpsilon, c.Rope.Theta, c.InitStd = 1e-5, 10_000, 0.02
	c.TieEmbeddings = true
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
