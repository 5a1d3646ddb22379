package plan

import (
	"carve/cluster"
	"carve/mesh"
	"carve/model"
	"carve/unit"
)

// Version is the version of the file format.
const Version = 1

// Plan says what to compute and how it is carved up.
type Plan struct {
	Model      Model
	Workload   Workload
	Cluster    Cluster
	Layout     Layout
	MicroBatch int // B, sequences
	Precision  Precision
	Recompute  Recompute
	Offload    Offload
	Optimizer  Optimizer
	Checkpoint Checkpoint
	Logging    Logging
	Engine     Engine
	Seed       uint64
}

// Model is what is trained, with where its description came from.
type Model struct {
	Origin ModelOrigin
	Name   string // of the preset, or path of the config.json; empty when inline
	Config model.Config
}

// Workload is what is learned from, and how much of it.
type Workload struct {
	Sequence    int // S, tokens
	GlobalBatch int // sequences per step, over all ranks
	Tokens      unit.Count
	Steps       int // in place of Tokens; one of the two is zero
	Data        []Source
	Packing     Packing
	Tokenizer   Tokenizer
	Validation  Validation
}

// Source is one file or directory of samples. Without any, the source text of Go itself is read.
type Source struct {
	Path   string
	Weight float64 // share of samples, relative to the other sources
	Kind   DataKind
}

// Tokenizer says how text becomes tokens.
type Tokenizer struct {
	Kind  TokenizerKind
	Vocab int    // of a BPE that is trained on the data
	Path  string // of a tokenizer.json
}

// Validation says what is held back from training, and how often it is looked at.
type Validation struct {
	Fraction float64 // of the samples
	Interval int     // steps; 0 means at the end only
	Batches  int     // global batches per look
}

// Cluster is where the plan runs.
type Cluster struct {
	Preset  string // empty when from a file
	Nodes   int    // of a preset
	File    string // path; empty when a preset
	Machine cluster.Cluster
}

// Known tells whether figures of the cluster are at hand. They are not for this-machine before it was
// measured; running needs none, pricing does.
func (c Cluster) Known() bool { return c.Machine.Node > 0 }

// Layout says how the model and the batch are split.
type Layout struct {
	Degrees          mesh.Degrees // each at least 1
	Order            mesh.Order   // fastest-varying rank digit first
	Tensor           Tensor
	SequenceParallel bool // activations between tensor-parallel regions are split over TP; no effect at TP 1 or with Gathered
	Zero             Zero
	Pipeline         Pipeline
	Context          Context
	Experts          Experts
}

// Tensor says how layers split over TP communicate.
type Tensor struct {
	Kind   TensorKind
	Chunks int // parts of a product that are sent while others are computed; 1 means all at once
}

// Zero says how the state of data-parallel replicas is sharded, and how gradients are reduced.
type Zero struct {
	Stage     Stage
	Hybrid    int        // ranks to shard over, replicating across; 0 means all
	Bucket    unit.Bytes // gradients per collective
	Prefetch  int        // units gathered ahead, at stage 3
	Reshard   bool       // at stage 3, units are freed after the forward pass and gathered again
	Ownership Ownership
	Reduce    Reduce
}

// Pipeline says how the layers are split into stages and in which order micro-batches pass them.
type Pipeline struct {
	Schedule Schedule
	Virtual  int // chunks per pipeline rank, for Interleaved
	Stages   Stages
}

// Stages says how many layers each chunk has.
type Stages struct {
	Kind   StagesKind
	Layers []int // per chunk in model order, when Listed
}

// Context says how attention sees a sequence that is split over CP.
type Context struct {
	Kind    ContextKind
	Balance ContextBalance
}

// Experts says how tokens reach their experts.
type Experts struct {
	Dispatch Dispatch
	Balance  Balance
	Capacity float64 // tokens per expert relative to an even share, for Dropping
	Tensor   int     // ranks of the tensor axis that share each expert: 1 or TP
	Rate     float64 // how much a bias that balances moves in a step; 0 means as suits the scores
	Overlap  bool    // under 1F1B, forwards run beside backwards of other micro-batches, so that dispatch hides; DualPipe does so anyway
}

// Recompute says which activations are thrown away in the forward pass and computed again.
type Recompute struct {
	Kind  RecomputeKind
	Every int // layers, for Periodic
}

// Optimizer says how parameters are updated.
type Optimizer struct {
	Name         OptimizerName
	LearningRate float64
	MinRatio     float64 // of the learning rate, where the schedule ends
	Schedule     RateSchedule
	Warmup       int     // steps
	Decay        float64 // part of all steps, at the end, for WarmupStableDecay
	Beta1        float64
	Beta2        float64
	Epsilon      float64
	Momentum     float64 // of Muon and SGD
	WeightDecay  float64
	Clip         float64 // bound of the global gradient norm; 0 means none
}

// Checkpoint says when state is made durable.
type Checkpoint struct {
	Every int // steps; 0 means at the end only
	Keep  int // newest that are kept
}

// Logging says how often a step is reported.
type Logging struct {
	Interval int // steps
}

// Mesh returns the grid of ranks. The error is that of mesh.New; a valid plan has none.
func (l Layout) Mesh() (mesh.Mesh, error) { return mesh.New(l.Degrees, l.Order) }

// World returns the number of ranks.
func (l Layout) World() int { return l.Degrees.World() }

// DataParallel returns the number of ranks that the samples are split over, DP·EP.
func (l Layout) DataParallel() int { return l.Degrees.Over(mesh.Samples) }

// MicroBatches returns M, the micro-batches of one step on each data-parallel rank.
func (p Plan) MicroBatches() int {
	return p.Workload.GlobalBatch / max(p.MicroBatch*p.Layout.DataParallel(), 1)
}

// StepTokens returns the tokens of one optimizer step over all ranks.
func (p Plan) StepTokens() unit.Count {
	return unit.Count(p.Workload.GlobalBatch) * unit.Count(p.Workload.Sequence)
}

// Steps returns the number of optimizer steps: as given, or enough for the tokens.
func (p Plan) Steps() int {
	if p.Workload.Steps > 0 {
		return p.Workload.Steps
	}
	perStep := max(p.StepTokens(), 1)
	return int((p.Workload.Tokens + perStep - 1) / perStep)
}

// TotalTokens returns the tokens of the whole run: those of Steps whole steps.
func (p Plan) TotalTokens() unit.Count { return unit.Count(p.Steps()) * p.StepTokens() }
