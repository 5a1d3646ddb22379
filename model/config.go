package model

import "math"

// Config describes a decoder-only Transformer. It is a plain value, comparable with ==.
type Config struct {
	Architecture Architecture

	Layers  int // L
	Hidden  int // H
	Heads   int // A, query heads
	KVHeads int // K, key-value heads; A for latent attention
	HeadDim int // D, of queries and keys; n + r for latent attention
	FFN     int // F, width of the dense feed-forward; 0 where every layer has experts
	Vocab   int // V
	Context int // positions it was made for

	Norm          Norm
	NormPlacement NormPlacement
	NormEpsilon   float64
	QKNorm        QKNorm
	Activation    Activation
	Position      Position
	Rope          Rope // for Rotary
	Attention     Attention
	Latent        Latent // for LatentKV
	Window        Window
	Bias          Bias
	Experts       Experts

	MTP           int  // further blocks that each predict one more token ahead
	TieEmbeddings bool // the head is the embedding

	EmbeddingScale   float64 // embeddings are multiplied by it; 0 means 1
	QueryScale       float64 // scores are divided by its root; 0 means D
	AttentionSoftcap float64 // scores become c·tanh(s/c); 0 means they do not
	LogitSoftcap     float64 // the same for logits
	ClipQKV          float64 // queries, keys and values are clamped to ±c; 0 means they are not
	Dropout          Dropout
	InitStd          float64 // standard deviation of initial weights
}

// Rope holds what rotary position needs.
type Rope struct {
	Theta      float64 // base of the wavelengths
	LocalTheta float64 // base in layers with a window; 0 means Theta
	Fraction   float64 // part of the head that is rotated; 1 is all of it

	Scaling         Scaling
	Factor          float64 // how much longer the context became
	OriginalContext int     // positions before scaling, for Llama3Scaling and YarnScaling
	LowFrequency    float64 // for Llama3Scaling
	HighFrequency   float64 // for Llama3Scaling
	BetaFast        float64 // for YarnScaling
	BetaSlow        float64 // for YarnScaling
	MScale          float64 // for YarnScaling; 0 means not given
	MScaleAllDim    float64 // for YarnScaling; 0 means not given
	AttentionFactor float64 // for YarnScaling; 0 means derived from the others
}

// Latent holds the sizes of multi-head latent attention. The zero value is unused.
type Latent struct {
	QueryRank int // q; 0 means queries are not compressed
	KVRank    int // c
	NopeDim   int // n, head size without position
	RopeDim   int // r, head size with rotary position, shared by all heads for keys
	ValueDim  int // v
}

// Window limits attention to the last Size positions in some layers. The zero value limits none.
type Window struct {
	Size      int // 0 means no window
	From      int // the first layers, this many, see everything
	FullEvery int // of the layers each n-th sees everything; 0 means none does
}

// Covers tells whether attention in a layer is limited.
func (w Window) Covers(layer int) bool {
	return w.Size > 0 && layer >= w.From && (w.FullEvery == 0 || (layer+1)%w.FullEvery != 0)
}

// Bias says which linear maps add a vector.
type Bias struct {
	QKV    bool
	Output bool // of attention
	MLP    bool
}

// Dropout holds the probabilities with which activations are zeroed in training.
type Dropout struct {
	Embedding float64
	Attention float64
	Residual  float64
}

// Experts describes a mixture of experts. The zero value has none.
type Experts struct {
	Count    int // E, routed experts
	PerToken int // k
	FFN      int // width of one routed expert

	SharedFFN  int  // width of all shared experts together; 0 means none
	SharedGate bool // the shared experts' output is gated by a sigmoid of one logit (Qwen2-MoE)

	FirstDense int // the first layers, this many, keep a dense feed-forward
	Every      int // of the layers each n-th has experts; 1 means all

	Score           Score
	Normalise       bool    // gates of the chosen experts are made to sum to 1
	Scale           float64 // gates are multiplied by it; 0 means 1
	Groups          int     // experts lie in this many groups; 0 or 1 means no limit by group
	GroupsPerToken  int     // a token's experts come from at most this many groups
	Balance         Balance
	LossCoefficient float64 // of the auxiliary loss
}

// HasExperts tells whether a layer has experts in place of the dense feed-forward. Layers from Layers on
// are those of multi-token prediction; they are like the last one.
func (c Config) HasExperts(layer int) bool {
	e := c.Experts
	if layer >= c.Layers {
		layer = c.Layers - 1
	}
	return e.Count > 0 && layer >= e.FirstDense && (layer+1)%max(e.Every, 1) == 0
}

// QuerySize returns the width of all query heads, A·D.
func (c Config) QuerySize() int { return c.Heads * c.HeadDim }

// KVSize returns the width of all key heads, K·D; values of grouped attention are as wide.
func (c Config) KVSize() int { return c.KVHeads * c.HeadDim }

// ValueDim returns the head size of values: D, or v for latent attention.
func (c Config) ValueDim() int {
	if c.Attention == LatentKV {
		return c.Latent.ValueDim
	}
	return c.HeadDim
}

// CachedPerLayer returns how many numbers one token leaves in the key-value cache of one layer: 2·K·D, or
// c + r for latent attention.
func (c Config) CachedPerLayer() int {
	if c.Attention == LatentKV {
		return c.Latent.KVRank + c.Latent.RopeDim
	}
	return 2 * c.KVSize()
}

// finish fills the sizes that follow from others when a description leaves them out.
func (c *Config) finish() {
	if c.Attention == LatentKV {
		c.KVHeads = c.Heads
		c.HeadDim = c.Latent.NopeDim + c.Latent.RopeDim
	}
	if c.KVHeads == 0 {
		c.KVHeads = c.Heads
	}
	if c.HeadDim == 0 && c.Heads > 0 && c.Hidden%c.Heads == 0 {
		c.HeadDim = c.Hidden / c.Heads
	}
	switch c.Architecture {
	case GPT2:
		if c.FFN == 0 {
			c.FFN = 4 * c.Hidden
		}
	case Gemma, Gemma2, Gemma3:
		c.EmbeddingScale = math.Sqrt(float64(c.Hidden))
	default:
	}
	if c.Experts.Count > 0 {
		c.Experts.Every = max(c.Experts.Every, 1)
		if c.Experts.Scale == 0 {
			c.Experts.Scale = 1
		}
	}
	c.Rope.finish(c.Context)
}

// finish fills what a scaling leaves out, as transformers does.
func (r *Rope) finish(context int) {
	if r.Scaling != YarnScaling {
		return
	}
	if r.BetaFast == 0 {
		r.BetaFast = 32
	}
	if r.BetaSlow == 0 {
		r.BetaSlow = 1
	}
	if r.OriginalContext == 0 {
		r.OriginalContext = context
	}
}
