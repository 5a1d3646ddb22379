package model

import (
	"carve/internal/document"
)

// Architecture is a family of models: what its config.json calls itself, how it names tensors, and what
// its members have in common.
type Architecture uint8

// The architectures, by the model_type of their config.json.
const (
	Llama Architecture = iota
	Mistral
	Mixtral
	Qwen2
	Qwen3
	Qwen2MoE
	Qwen3MoE
	DeepseekV2
	DeepseekV3
	Gemma
	Gemma2
	Gemma3
	GPT2
	OLMo
	OLMo2
	OLMoE
)

// family is what an architecture is in files.
type family struct {
	name     string   // model_type, and the name in a plan
	class    string   // entry of architectures
	common   Config   // what all members share, and defaults of what they may choose
	required []string // keys of config.json that have no default
}

// families is indexed by Architecture. Sources: the configuration classes of Hugging Face transformers.
func families() []family {
	gated := Config{
		NormEpsilon: 1e-6,
		Context:     2048,
		Rope:        Rope{Theta: 10000, Fraction: 1},
		InitStd:     0.02,
	}
	with := func(name, class string, a Architecture, change func(*Config)) family {
		c := gated
		c.Architecture = a
		change(&c)
		return family{name, class, c, requiredKeys(a)}
	}
	return []family{
		with("llama", "LlamaForCausalLM", Llama, func(*Config) {}),
		with("mistral", "MistralForCausalLM", Mistral, func(*Config) {}),
		with("mixtral", "MixtralForCausalLM", Mixtral, mixtral),
		with("qwen2", "Qwen2ForCausalLM", Qwen2, func(c *Config) { c.Bias.QKV = true }),
		with("qwen3", "Qwen3ForCausalLM", Qwen3, func(c *Config) { c.QKNorm = HeadQKNorm }),
		with("qwen2_moe", "Qwen2MoeForCausalLM", Qwen2MoE, qwen2MoE),
		with("qwen3_moe", "Qwen3MoeForCausalLM", Qwen3MoE, qwen3MoE),
		with("deepseek_v2", "DeepseekV2ForCausalLM", DeepseekV2, deepseekV2),
		with("deepseek_v3", "DeepseekV3ForCausalLM", DeepseekV3, deepseekV3),
		with("gemma", "GemmaForCausalLM", Gemma, gemma),
		with("gemma2", "Gemma2ForCausalLM", Gemma2, gemma2),
		with("gemma3_text", "Gemma3ForCausalLM", Gemma3, gemma3),
		with("gpt2", "GPT2LMHeadModel", GPT2, gpt2),
		with("olmo", "OlmoForCausalLM", OLMo, func(c *Config) { c.Norm, c.NormEpsilon = PlainLayerNorm, 1e-5 }),
		with("olmo2", "Olmo2ForCausalLM", OLMo2, olmo2),
		with("olmoe", "OlmoeForCausalLM", OLMoE, olmoe),
	}
}

// requiredKeys are the keys of config.json that say how large the model is.
func requiredKeys(a Architecture) []string {
	if a == GPT2 {
		return []string{"n_embd", "n_layer", "n_head", "vocab_size"}
	}
	keys := []string{"hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size"}
	switch a {
	case Qwen2MoE, Qwen3MoE, DeepseekV2, DeepseekV3:
		return append(keys, "moe_intermediate_size")
	default:
		return keys
	}
}

func mixtral(c *Config) {
	c.NormEpsilon, c.Rope.Theta = 1e-5, 1e6
	c.Experts = Experts{Count: 8, PerToken: 2, Every: 1, Normalise: true, Scale: 1, Balance: LossBalance, LossCoefficient: 0.001}
}

func qwen2MoE(c *Config) {
	c.Bias.QKV = true
	c.Experts = Experts{Count: 60, PerToken: 4, Every: 1, SharedGate: true, Scale: 1, Balance: LossBalance, LossCoefficient: 0.001}
}

func qwen3MoE(c *Config) {
	c.QKNorm = HeadQKNorm
	c.Experts = Experts{Count: 128, PerToken: 8, Every: 1, Normalise: true, Scale: 1, Balance: LossBalance, LossCoefficient: 0.001}
}

func deepseekV2(c *Config) {
	c.Attention = LatentKV
	c.Latent = Latent{QueryRank: 1536, KVRank: 512, NopeDim: 128, RopeDim: 64, ValueDim: 128}
	c.Experts = Experts{Every: 1, Scale: 1, Balance: LossBalance, LossCoefficient: 0.001}
}

func deepseekV3(c *Config) {
	deepseekV2(c)
	c.Experts = Experts{Every: 1, Score: SigmoidScore, Normalise: true, Scale: 2.5, Balance: BiasBalance}
}

func gemma(c *Config) {
	c.Norm, c.Activation, c.TieEmbeddings = OffsetRMSNorm, GeGLU, true
}

func gemma2(c *Config) {
	gemma(c)
	c.NormPlacement, c.Context = SandwichNorm, 8192
	c.AttentionSoftcap, c.LogitSoftcap, c.QueryScale = 50, 30, 256
	c.Window = Window{Size: 4096, FullEvery: 2}
}

func gemma3(c *Config) {
	gemma(c)
	c.NormPlacement, c.QKNorm, c.Context, c.QueryScale = SandwichNorm, HeadQKNorm, 131072, 256
	c.Rope.Theta, c.Rope.LocalTheta = 1e6, 10000
	c.Window = Window{Size: 4096, FullEvery: 6}
}

func gpt2(c *Config) {
	c.Norm, c.NormEpsilon, c.Activation, c.Position = LayerNorm, 1e-5, GELUTanh, Learned
	c.Rope = Rope{}
	c.Context, c.TieEmbeddings = 1024, true
	c.Bias = Bias{QKV: true, Output: true, MLP: true}
	c.Dropout = Dropout{0.1, 0.1, 0.1}
}

func olmo2(c *Config) {
	c.NormEpsilon, c.NormPlacement, c.QKNorm = 1e-5, PostNorm, FullQKNorm
}

func olmoe(c *Config) {
	c.NormEpsilon, c.QKNorm = 1e-5, FullQKNorm
	c.Experts = Experts{Count: 64, PerToken: 8, Every: 1, Scale: 1, Balance: LossBalance, LossCoefficient: 0.01}
}

// String returns the model_type, which is also the name in a plan.
func (a Architecture) String() string { return document.Name(a, architectureNames()) }

// architectureNames returns the model_type of every architecture.
func architectureNames() []string {
	all := families()
	names := make([]string, len(all))
	for i, f := range all {
		names[i] = f.name
	}
	return names
}

// New returns what all members of an architecture share, with no sizes. Fill in the sizes and Validate.
func New(a Architecture) Config { return families()[a].common }
