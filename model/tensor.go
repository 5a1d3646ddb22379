package model

import (
	"fmt"
	"strings"

	"carve/unit"
)

// Tensor is one parameter of a model as Hugging Face stores it.
type Tensor struct {
	Name  string
	Shape []int // as stored: [out in] for a matrix, [in out] for GPT-2's
	Kind  Kind
	Layer int // -1 outside of blocks
}

// Elements returns the number of elements of t.
func (t Tensor) Elements() unit.Count {
	n := unit.Count(1)
	for _, size := range t.Shape {
		n *= unit.Count(size)
	}
	return n
}

// Tensors lists every parameter under its Hugging Face name, in the order of the forward pass, a tied
// head left out; blocks of multi-token prediction follow the main ones. The sum of their elements is
// Parameters and PredictorParameters: two ways to count the same, held equal by a test.
func (c Config) Tensors() []Tensor {
	l := lister{c: c, layer: -1}
	if c.Architecture == GPT2 {
		l.gpt2()
		return l.list
	}
	l.add("model.embed_tokens.weight", Embedding, c.Vocab, c.Hidden)
	for layer := range c.Layers {
		l.block(layer)
	}
	l.norm("model.norm", c.Hidden)
	if !c.TieEmbeddings {
		l.add("lm_head.weight", Head, c.Vocab, c.Hidden)
	}
	for i := range c.MTP {
		l.predictor(c.Layers + i)
	}
	return l.list
}

// lister collects tensors of one layer after the other.
type lister struct {
	c      Config
	list   []Tensor
	layer  int
	prefix string
}

// add appends one tensor.
func (l *lister) add(name string, kind Kind, shape ...int) {
	l.list = append(l.list, Tensor{l.prefix + name, shape, kind, l.layer})
}

// linear appends a map and, where it has one, its bias.
func (l *lister) linear(name string, kind Kind, out, in int) {
	l.add(name+".weight", kind, out, in)
	l.bias(name, kind, out)
}

// bias appends the bias of a map, if it has one.
func (l *lister) bias(name string, kind Kind, out int) {
	has := l.c.Bias.QKV
	switch {
	case kind != AttentionMap:
		has = l.c.Bias.MLP
	case strings.HasSuffix(name, "attn.o_proj") || strings.HasSuffix(name, "attn.c_proj"):
		has = l.c.Bias.Output
	}
	if has {
		l.add(name+".bias", kind, out)
	}
}

// norm appends the parameters of a norm.
func (l *lister) norm(name string, width int) {
	switch l.c.Norm {
	case LayerNorm:
		l.add(name+".weight", Normal, width)
		l.add(name+".bias", Normal, width)
	case RMSNorm, OffsetRMSNorm:
		l.add(name+".weight", Normal, width)
	case PlainLayerNorm:
	}
}

// block appends one block.
func (l *lister) block(layer int) {
	l.layer, l.prefix = layer, fmt.Sprintf("model.layers.%d.", layer)
	if l.c.NormPlacement != PostNorm {
		l.norm("input_layernorm", l.c.Hidden)
	}
	if l.c.Attention == LatentKV {
		l.latent()
	} else {
		l.grouped()
	}
	l.norm("post_attention_layernorm", l.c.Hidden)
	if l.c.NormPlacement == SandwichNorm {
		l.norm("pre_feedforward_layernorm", l.c.Hidden)
	}
	if l.c.HasExperts(layer) {
		l.experts()
	} else {
		l.feedForward("mlp.", MLP, l.c.FFN, [3]string{"gate_proj", "up_proj", "down_proj"})
	}
	if l.c.NormPlacement != PreNorm {
		l.norm("post_feedforward_layernorm", l.c.Hidden)
	}
	l.layer, l.prefix = -1, ""
}

// grouped appends attention with grouped heads.
func (l *lister) grouped() {
	c := l.c
	l.linear("self_attn.q_proj", AttentionMap, c.QuerySize(), c.Hidden)
	l.linear("self_attn.k_proj", AttentionMap, c.KVSize(), c.Hidden)
	l.linear("self_attn.v_proj", AttentionMap, c.KVSize(), c.Hidden)
	switch c.QKNorm {
	case HeadQKNorm:
		l.norm("self_attn.q_norm", c.HeadDim)
		l.norm("self_attn.k_norm", c.HeadDim)
	case FullQKNorm:
		l.norm("self_attn.q_norm", c.QuerySize())
		l.norm("self_attn.k_norm", c.KVSize())
	case NoQKNorm:
	}
	l.linear("self_attn.o_proj", AttentionMap, c.Hidden, c.QuerySize())
}

// latent appends multi-head latent attention.
func (l *lister) latent() {
	c, a := l.c, l.c.Latent
	if a.QueryRank > 0 {
		l.add("self_attn.q_a_proj.weight", AttentionMap, a.QueryRank, c.Hidden)
		l.norm("self_attn.q_a_layernorm", a.QueryRank)
		l.add("self_attn.q_b_proj.weight", AttentionMap, c.QuerySize(), a.QueryRank)
	} else {
		l.add("self_attn.q_proj.weight", AttentionMap, c.QuerySize(), c.Hidden)
	}
	l.add("self_attn.kv_a_proj_with_mqa.weight", AttentionMap, a.KVRank+a.RopeDim, c.Hidden)
	l.norm("self_attn.kv_a_layernorm", a.KVRank)
	l.add("self_attn.kv_b_proj.weight", AttentionMap, c.Heads*(a.NopeDim+a.ValueDim), a.KVRank)
	l.add("self_attn.o_proj.weight", AttentionMap, c.Hidden, c.Heads*a.ValueDim)
}

// feedForward appends a feed-forward; names are those of gate, up and down.
func (l *lister) feedForward(path string, kind Kind, width int, names [3]string) {
	c := l.c
	if c.Activation.Gated() {
		l.linear(path+names[0], kind, width, c.Hidden)
	}
	l.linear(path+names[1], kind, width, c.Hidden)
	l.linear(path+names[2], kind, c.Hidden, width)
}

// experts appends the router, the experts and what they share.
func (l *lister) experts() {
	e, names, path := l.c.Experts, [3]string{"gate_proj", "up_proj", "down_proj"}, "mlp."
	if l.c.Architecture == Mixtral {
		names, path = [3]string{"w1", "w3", "w2"}, "block_sparse_moe."
	}
	l.add(path+"gate.weight", Router, e.Count, l.c.Hidden)
	if e.Balance == BiasBalance {
		l.add(path+"gate.e_score_correction_bias", Router, e.Count)
	}
	for i := range e.Count {
		l.feedForward(fmt.Sprintf("%sexperts.%d.", path, i), Expert, e.FFN, names)
	}
	if e.SharedFFN == 0 {
		return
	}
	shared := "shared_experts."
	if l.c.Architecture == Qwen2MoE {
		shared = "shared_expert."
	}
	l.feedForward(path+shared, SharedExpert, e.SharedFFN, names)
	if e.SharedGate {
		l.add(path+"shared_expert_gate.weight", SharedExpert, 1, l.c.Hidden)
	}
}

// predictor appends a block of multi-token prediction, without the embedding and head that it shares.
func (l *lister) predictor(layer int) {
	l.block(layer)
	l.layer, l.prefix = layer, fmt.Sprintf("model.layers.%d.", layer)
	l.norm("enorm", l.c.Hidden)
	l.norm("hnorm", l.c.Hidden)
	l.add("eh_proj.weight", Predictor, l.c.Hidden, 2*l.c.Hidden)
	l.norm("shared_head.norm", l.c.Hidden)
	l.layer, l.prefix = -1, ""
}

// gpt2 appends all of a GPT-2, whose matrices are stored [in out] and whose query, key and value are one.
func (l *lister) gpt2() {
	c := l.c
	l.add("transformer.wte.weight", Embedding, c.Vocab, c.Hidden)
	if c.Position == Learned {
		l.add("transformer.wpe.weight", Positional, c.Context, c.Hidden)
	}
	for layer := range c.Layers {
		l.layer, l.prefix = layer, fmt.Sprintf("transformer.h.%d.", layer)
		l.norm("ln_1", c.Hidden)
		l.conv("attn.c_attn", AttentionMap, c.Hidden, c.QuerySize()+2*c.KVSize())
		l.conv("attn.c_proj", AttentionMap, c.QuerySize(), c.Hidden)
		l.norm("ln_2", c.Hidden)
		l.conv("mlp.c_fc", MLP, c.Hidden, c.FFN)
		l.conv("mlp.c_proj", MLP, c.FFN, c.Hidden)
	}
	l.layer, l.prefix = -1, ""
	l.norm("transformer.ln_f", c.Hidden)
	if !c.TieEmbeddings {
		l.add("lm_head.weight", Head, c.Vocab, c.Hidden)
	}
}

// conv appends a map stored [in out], as GPT-2's, and its bias.
func (l *lister) conv(name string, kind Kind, in, out int) {
	l.add(name+".weight", kind, in, out)
	l.bias(name, kind, out)
}
