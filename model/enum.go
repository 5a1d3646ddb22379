package model

import "carve/internal/document"

// Norm is how activations are normalised.
type Norm uint8

// The norms. Their names in a plan are "rms", "layer", "plain-layer" and "offset-rms".
const (
	RMSNorm        Norm = iota // x/rms(x)·w
	LayerNorm                  // (x-mean)/std·w + b
	PlainLayerNorm             // (x-mean)/std, no parameters (OLMo)
	OffsetRMSNorm              // x/rms(x)·(1+w), w starts at zero (Gemma)
)

func normNames() []string { return []string{"rms", "layer", "plain-layer", "offset-rms"} }

// String returns the name in a plan.
func (n Norm) String() string { return document.Name(n, normNames()) }

// NormPlacement is where a block normalises.
type NormPlacement uint8

// The placements. Their names in a plan are "pre", "post" and "sandwich".
const (
	PreNorm      NormPlacement = iota // x + f(norm(x))
	PostNorm                          // x + norm(f(x)) (OLMo 2)
	SandwichNorm                      // x + norm(f(norm(x))) (Gemma 2 and 3)
)

func placementNames() []string { return []string{"pre", "post", "sandwich"} }

// String returns the name in a plan.
func (p NormPlacement) String() string { return document.Name(p, placementNames()) }

// QKNorm is whether queries and keys are normalised before position is applied.
type QKNorm uint8

// The kinds. Their names in a plan are "none", "head" and "full".
const (
	NoQKNorm   QKNorm = iota
	HeadQKNorm        // one weight of D for all heads (Qwen3, Gemma 3)
	FullQKNorm        // over all heads at once, weights of A·D and K·D (OLMo 2)
)

func qkNormNames() []string { return []string{"none", "head", "full"} }

// String returns the name in a plan.
func (q QKNorm) String() string { return document.Name(q, qkNormNames()) }

// Activation is the non-linearity of the feed-forward.
type Activation uint8

// The activations. Their names in a plan are "swiglu", "geglu", "gelu", "gelu-tanh" and "relu".
const (
	SwiGLU   Activation = iota // silu(gate)·up
	GeGLU                      // gelu-tanh(gate)·up
	GELU                       // exact, by the error function
	GELUTanh                   // tanh approximation (GPT-2)
	ReLU
)

func activationNames() []string { return []string{"swiglu", "geglu", "gelu", "gelu-tanh", "relu"} }

// String returns the name in a plan.
func (a Activation) String() string { return document.Name(a, activationNames()) }

// Gated tells whether the feed-forward has a gate beside its up projection: three matrices, not two.
func (a Activation) Gated() bool { return a == SwiGLU || a == GeGLU }

// Position is how a token knows where it stands.
type Position uint8

// The positions. Their names in a plan are "rope", "learned" and "none".
const (
	Rotary  Position = iota // queries and keys are rotated
	Learned                 // a vector per position is added to the embedding
	NoPosition
)

func positionNames() []string { return []string{"rope", "learned", "none"} }

// String returns the name in a plan.
func (p Position) String() string { return document.Name(p, positionNames()) }

// Scaling is how rotary frequencies change for contexts longer than those trained on.
type Scaling uint8

// The scalings. Their names in a plan are "none", "linear", "llama3" and "yarn".
const (
	NoScaling     Scaling = iota
	LinearScaling         // every frequency divided by the factor
	Llama3Scaling         // low frequencies divided, high kept, blended between
	YarnScaling           // blended by wavelength, and attention rescaled
)

func scalingNames() []string { return []string{"none", "linear", "llama3", "yarn"} }

// String returns the name in a plan.
func (s Scaling) String() string { return document.Name(s, scalingNames()) }

// Attention is how keys and values are made.
type Attention uint8

// The kinds. Their names in a plan are "grouped" and "latent".
const (
	Grouped  Attention = iota // K key-value heads shared by A query heads; K = A is multi-head, K = 1 multi-query
	LatentKV                  // keys and values from a compressed latent (multi-head latent attention)
)

func attentionNames() []string { return []string{"grouped", "latent"} }

// String returns the name in a plan.
func (a Attention) String() string { return document.Name(a, attentionNames()) }

// Score is how the router turns logits into gates.
type Score uint8

// The scores. Their names in a plan are "softmax" and "sigmoid".
const (
	SoftmaxScore Score = iota
	SigmoidScore
)

func scoreNames() []string { return []string{"softmax", "sigmoid"} }

// String returns the name in a plan.
func (s Score) String() string { return document.Name(s, scoreNames()) }

// Balance is what the model itself carries to keep experts evenly loaded.
type Balance uint8

// The kinds. Their names in a plan are "none", "loss" and "bias".
const (
	NoBalance   Balance = iota
	LossBalance         // an auxiliary loss
	BiasBalance         // a bias per expert, added when choosing but not when weighing (DeepSeek-V3)
)

func balanceNames() []string { return []string{"none", "loss", "bias"} }

// String returns the name in a plan.
func (b Balance) String() string { return document.Name(b, balanceNames()) }
