package plan

import "carve/internal/document"

// ModelOrigin is how a plan names its model.
type ModelOrigin uint8

// The origins.
const (
	FromPreset ModelOrigin = iota
	FromFile               // a config.json
	Inline                 // a mapping in the plan
)

// Precision is the number format of parameters, activations and gradients.
type Precision uint8

// The precisions: "bf16", "fp32" and "fp64".
const (
	BF16 Precision = iota // with fp32 accumulation, master weights and optimizer state
	FP32
	FP64 // for proofs
)

func precisionNames() []string { return []string{"bf16", "fp32", "fp64"} }

// String returns the name in the file.
func (p Precision) String() string { return document.Name(p, precisionNames()) }

// TensorKind is how layers split their features over TP.
type TensorKind uint8

// The kinds: "megatron" and "gathered".
const (
	Megatron TensorKind = iota // features stay on their rank from one layer of a branch to the next
	Gathered                   // every layer gathers its features, the baseline to compare with
)

func tensorNames() []string { return []string{"megatron", "gathered"} }

// String returns the name in the file.
func (k TensorKind) String() string { return document.Name(k, tensorNames()) }

// Stage is how much of the data-parallel state is sharded.
type Stage uint8

// The stages of ZeRO: 0 to 3.
const (
	Replicated      Stage = iota // everything on every rank
	ShardOptimizer               // optimizer state
	ShardGradients               // and gradients
	ShardParameters              // and parameters
)

func zeroStageNames() []string { return []string{"0", "1", "2", "3"} }

// String returns the number in the file.
func (s Stage) String() string { return document.Name(s, zeroStageNames()) }

// Ownership is the unit in which state is dealt out to ranks.
type Ownership uint8

// The kinds: "flat" and "tensor".
const (
	Flat        Ownership = iota // ranges of the flat buffer, even to the element
	WholeTensor                  // whole tensors, as Muon needs
)

func ownershipNames() []string { return []string{"flat", "tensor"} }

// String returns the name in the file.
func (o Ownership) String() string { return document.Name(o, ownershipNames()) }

// Reduce is when gradients are reduced over the data-parallel ranks.
type Reduce uint8

// The kinds: "overlap", "naive" and "server".
const (
	Overlap Reduce = iota // bucket by bucket during the backward pass
	Naive                 // all at once after it, to compare with
	Server                // by one rank that owns the parameters, the historical baseline
)

func reduceNames() []string { return []string{"overlap", "naive", "server"} }

// String returns the name in the file.
func (r Reduce) String() string { return document.Name(r, reduceNames()) }

// Schedule is the order of forward and backward passes in a pipeline.
type Schedule uint8

// The schedules: "afab", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe" and "dualpipe-v".
const (
	AllForwardAllBackward Schedule = iota // GPipe
	OneForwardOneBackward
	Interleaved  // 1F1B over several chunks per rank
	ZeroBubbleH1 // weight gradients fill the bubble, memory of 1F1B
	ZeroBubbleV  // two chunks per rank in V shape
	DualPipe     // both directions at once, two copies of the parameters
	DualPipeV    // its V-shaped half, one copy
)

func scheduleNames() []string {
	return []string{"afab", "1f1b", "interleaved", "zb-h1", "zb-v", "dualpipe", "dualpipe-v"}
}

// String returns the name in the file.
func (s Schedule) String() string { return document.Name(s, scheduleNames()) }

// StagesKind is how layers are dealt out to chunks.
type StagesKind uint8

// The kinds: "balanced", "even" and a list of numbers of layers.
const (
	Balanced StagesKind = iota // by operations, the head counted
	Even                       // the same number of layers everywhere
	Listed
)

func stagesNames() []string { return []string{"balanced", "even"} }

// ContextKind is how keys and values of other context ranks are reached.
type ContextKind uint8

// The kinds: "ring", "all-gather" and "all-to-all".
const (
	Ring      ContextKind = iota
	AllGather             // all keys and values at once
	AllToAll              // heads for positions (Ulysses)
)

func contextNames() []string { return []string{"ring", "all-gather", "all-to-all"} }

// String returns the name in the file.
func (c ContextKind) String() string { return document.Name(c, contextNames()) }

// ContextBalance is which positions a context rank has.
type ContextBalance uint8

// The kinds: "zigzag" and "contiguous".
const (
	Zigzag     ContextBalance = iota // a piece from each end, so that causal work is even
	Contiguous                       // one piece
)

func contextBalanceNames() []string { return []string{"zigzag", "contiguous"} }

// String returns the name in the file.
func (c ContextBalance) String() string { return document.Name(c, contextBalanceNames()) }

// Dispatch is what happens to tokens that an expert has no room for.
type Dispatch uint8

// The kinds: "dropless" and "dropping".
const (
	Dropless Dispatch = iota // experts take what comes
	Dropping                 // beyond the capacity, tokens pass by
)

func dispatchNames() []string { return []string{"dropless", "dropping"} }

// String returns the name in the file.
func (d Dispatch) String() string { return document.Name(d, dispatchNames()) }

// Balance is what keeps experts evenly loaded in this run.
type Balance uint8

// The kinds: "model", "none", "loss" and "bias".
const (
	ModelBalance Balance = iota // as the model's description says
	NoBalance
	LossBalance
	BiasBalance
)

func balanceNames() []string { return []string{"model", "none", "loss", "bias"} }

// String returns the name in the file.
func (b Balance) String() string { return document.Name(b, balanceNames()) }

// RecomputeKind is which activations are computed again in the backward pass.
type RecomputeKind uint8

// The kinds: "none", "selective", "full" and a mapping with every.
const (
	KeepAll   RecomputeKind = iota
	Selective               // those that are large and cheap: attention's inside, activations of the feed-forward
	FullBlock               // everything but the inputs of blocks
	Periodic                // of every n-th block everything but the input
)

func recomputeNames() []string { return []string{"none", "selective", "full"} }

// Offload is what is moved to host memory while it is not needed.
type Offload uint8

// The kinds: "none" and "activations".
const (
	NoOffload Offload = iota
	OffloadActivations
)

func offloadNames() []string { return []string{"none", "activations"} }

// String returns the name in the file.
func (o Offload) String() string { return document.Name(o, offloadNames()) }

// OptimizerName is the rule of the update.
type OptimizerName uint8

// The optimizers: "adamw", "muon" and "sgd".
const (
	AdamW OptimizerName = iota
	Muon                // for matrices of blocks; AdamW for the rest
	SGD
)

func optimizerNames() []string { return []string{"adamw", "muon", "sgd"} }

// String returns the name in the file.
func (o OptimizerName) String() string { return document.Name(o, optimizerNames()) }

// RateSchedule is how the learning rate moves after the warm-up.
type RateSchedule uint8

// The schedules: "cosine", "linear", "constant" and "wsd".
const (
	Cosine RateSchedule = iota
	Linear
	Constant
	WarmupStableDecay // constant, then linear in the last part
)

func rateScheduleNames() []string { return []string{"cosine", "linear", "constant", "wsd"} }

// String returns the name in the file.
func (r RateSchedule) String() string { return document.Name(r, rateScheduleNames()) }

// Engine is what carries messages between ranks.
type Engine uint8

// The engines: "local" and "mpi".
const (
	Local Engine = iota // ranks are goroutines of one process
	MPI                 // ranks are processes under mpirun
)

func engineNames() []string { return []string{"local", "mpi"} }

// String returns the name in the file.
func (e Engine) String() string { return document.Name(e, engineNames()) }

// Packing is what becomes of the seams between documents within a sample.
type Packing uint8

// The kinds: "none" and "documents".
const (
	NoPacking  Packing = iota // text runs on: attention and positions go across, and every token has a target
	ByDocument                // attention stays within a document, positions begin anew, its last token has no target
)

func packingNames() []string { return []string{"none", "documents"} }

// String returns the name in the file.
func (p Packing) String() string { return document.Name(p, packingNames()) }

// DataKind is the format of a source of samples.
type DataKind uint8

// The kinds: "auto", "text", "jsonl", "parquet" and "shards".
const (
	AutoData DataKind = iota // by the names and contents of the files
	Text
	JSONL
	Parquet
	Shards // tokens, as nanoGPT, llm.c and Megatron write them
)

func dataKindNames() []string { return []string{"auto", "text", "jsonl", "parquet", "shards"} }

// String returns the name in the file.
func (d DataKind) String() string { return document.Name(d, dataKindNames()) }

// TokenizerKind is what a tokenizer is made of.
type TokenizerKind uint8

// The kinds: "byte", a mapping with bpe, or a path.
const (
	ByteTokenizer TokenizerKind = iota
	TrainedBPE                  // trained on the data
	FromTokenizerFile
)
