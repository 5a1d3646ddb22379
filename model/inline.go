package model

import (
	"strings"

	"carve/internal/document"
)

// Inline is the codec of a model written as a mapping in a plan:
//
//	{architecture: llama, layers: 8, hidden: 256, heads: 8, kv_heads: 4, ffn: 688, vocab: 4096, context: 512}
//
// The architecture gives every other value its default; a value that equals it is not written, sizes
// aside. Sizes that do not fit each other are faults.
func Inline(c *Config) document.Codec {
	return document.Codec{
		Decode: func(r *document.Reader, n *document.Node) { decodeInline(r, n, c) },
		Encode: func() *document.Node { return document.Map(inlineFields(c)...).Encode() },
	}
}

// decodeInline reads the architecture first, for the defaults, and then the rest.
func decodeInline(r *document.Reader, n *document.Node, c *Config) {
	var a Architecture
	if n.Kind == document.Mapping {
		if at := n.Get("architecture"); at != nil {
			r.In("architecture", func() { document.Enum(&a, architectureNames()...).Decode(r, at) })
		} else {
			r.Fault(n, "architecture is missing; use %s", document.Either(architectureNames()))
		}
		if r.Failed() {
			return
		}
	}
	*c = New(a)
	document.Map(inlineFields(c)...).Decode(r, n)
	for _, key := range []string{"layers", "hidden", "heads", "vocab"} {
		if n.Kind == document.Mapping && n.Get(key) == nil {
			r.Fault(n, "%s is missing", key)
		}
	}
	if r.Failed() {
		return
	}
	c.finish()
	for _, fault := range c.faults() {
		key, _, _ := strings.Cut(fault, " ") // most begin with the key
		if at := n.Get(key); at != nil {
			r.Fault(at, "%s", fault)
		} else {
			r.Fault(n, "%s", fault)
		}
	}
}

// inlineFields are the keys of an inline model: sizes, always written, then what differs from the default.
func inlineFields(c *Config) []document.Field {
	d := New(c.Architecture)
	differs := func(key string, different bool, codec document.Codec) document.Field {
		return field(key, document.When(func() bool { return different }, codec))
	}
	latent := c.Attention == LatentKV
	return append([]document.Field{
		field("architecture", document.Enum(&c.Architecture, architectureNames()...)),
		field("layers", document.AtLeast(1, &c.Layers)),
		field("hidden", document.AtLeast(1, &c.Hidden)),
		field("heads", document.AtLeast(1, &c.Heads)),
		differs("kv_heads", !latent, document.AtLeast(1, &c.KVHeads)),
		differs("head_dim", !latent, document.AtLeast(1, &c.HeadDim)),
		differs("ffn", c.FFN != 0, document.AtLeast(1, &c.FFN)),
		field("vocab", document.AtLeast(1, &c.Vocab)),
		field("context", document.AtLeast(1, &c.Context)),
		field("tie_embeddings", document.Flag(&c.TieEmbeddings)),
		differs("norm", c.Norm != d.Norm, document.Enum(&c.Norm, normNames()...)),
		differs("norm_placement", c.NormPlacement != d.NormPlacement, document.Enum(&c.NormPlacement, placementNames()...)),
		field("norm_eps", document.Float(&c.NormEpsilon)),
		differs("qk_norm", c.QKNorm != d.QKNorm, document.Enum(&c.QKNorm, qkNormNames()...)),
		differs("activation", c.Activation != d.Activation, document.Enum(&c.Activation, activationNames()...)),
		differs("position", c.Position != d.Position, document.Enum(&c.Position, positionNames()...)),
		differs("rope_theta", c.Position == Rotary, document.Float(&c.Rope.Theta)),
		differs("rope_local_theta", c.Rope.LocalTheta != d.Rope.LocalTheta, document.Float(&c.Rope.LocalTheta)),
		differs("rope_fraction", c.Rope.Fraction != d.Rope.Fraction, document.Float(&c.Rope.Fraction)),
		differs("rope_scaling", c.Rope.Scaling != NoScaling, inlineScaling(&c.Rope)),
		differs("attention", c.Attention != d.Attention, document.Enum(&c.Attention, attentionNames()...)),
		differs("latent", latent, inlineLatent(&c.Latent)),
		differs("window", c.Window != d.Window, inlineWindow(&c.Window)),
		differs("bias", c.Bias != d.Bias, inlineBias(&c.Bias)),
		differs("experts", c.Experts != d.Experts, inlineExperts(&c.Experts)),
	}, inlineScalars(c, d, differs)...)
}

// inlineScalars are the keys of rarely changed numbers.
func inlineScalars(c *Config, d Config, differs func(string, bool, document.Codec) document.Field) []document.Field {
	return []document.Field{
		differs("mtp", c.MTP != d.MTP, document.Int(&c.MTP)),
		differs("embedding_scale", c.EmbeddingScale != d.EmbeddingScale, document.Float(&c.EmbeddingScale)),
		differs("query_scale", c.QueryScale != d.QueryScale, document.Float(&c.QueryScale)),
		differs("attention_softcap", c.AttentionSoftcap != d.AttentionSoftcap, document.Float(&c.AttentionSoftcap)),
		differs("logit_softcap", c.LogitSoftcap != d.LogitSoftcap, document.Float(&c.LogitSoftcap)),
		differs("clip_qkv", c.ClipQKV != d.ClipQKV, document.Float(&c.ClipQKV)),
		differs("dropout", c.Dropout != d.Dropout, inlineDropout(&c.Dropout)),
		differs("init_std", c.InitStd != d.InitStd, document.Float(&c.InitStd)),
	}
}

// inlineScaling binds the keys of a scaling of rotary position.
func inlineScaling(r *Rope) document.Codec {
	return document.Map(
		field("kind", document.Enum(&r.Scaling, scalingNames()...)),
		field("factor", document.Float(&r.Factor)),
		field("original_context", nonzero(&r.OriginalContext, document.Int)),
		field("low_frequency", nonzero(&r.LowFrequency, document.Float)),
		field("high_frequency", nonzero(&r.HighFrequency, document.Float)),
		field("beta_fast", nonzero(&r.BetaFast, document.Float)),
		field("beta_slow", nonzero(&r.BetaSlow, document.Float)),
		field("mscale", nonzero(&r.MScale, document.Float)),
		field("mscale_all_dim", nonzero(&r.MScaleAllDim, document.Float)),
		field("attention_factor", nonzero(&r.AttentionFactor, document.Float)),
	)
}

// nonzero is a codec that writes nothing for zero.
func nonzero[T comparable](p *T, of func(*T) document.Codec) document.Codec {
	var zero T
	return document.When(func() bool { return *p != zero }, of(p))
}

// inlineLatent binds the keys of latent attention.
func inlineLatent(l *Latent) document.Codec {
	return document.Map(
		field("query_rank", document.Int(&l.QueryRank)),
		field("kv_rank", document.Int(&l.KVRank)),
		field("nope_dim", document.Int(&l.NopeDim)),
		field("rope_dim", document.Int(&l.RopeDim)),
		field("value_dim", document.Int(&l.ValueDim)),
	)
}

// inlineWindow binds the keys of a sliding window.
func inlineWindow(w *Window) document.Codec {
	return document.Map(
		field("size", document.Int(&w.Size)),
		field("from", document.Int(&w.From)),
		field("full_every", document.Int(&w.FullEvery)),
	)
}

// inlineBias binds the keys of biases.
func inlineBias(b *Bias) document.Codec {
	return document.Map(
		field("qkv", document.Flag(&b.QKV)),
		field("output", document.Flag(&b.Output)),
		field("mlp", document.Flag(&b.MLP)),
	)
}

// inlineDropout binds the keys of dropout.
func inlineDropout(d *Dropout) document.Codec {
	return document.Map(
		field("embedding", document.Float(&d.Embedding)),
		field("attention", document.Float(&d.Attention)),
		field("residual", document.Float(&d.Residual)),
	)
}

// inlineExperts binds the keys of experts.
func inlineExperts(e *Experts) document.Codec {
	return document.Map(
		field("count", document.Int(&e.Count)),
		field("per_token", document.Int(&e.PerToken)),
		field("ffn", document.Int(&e.FFN)),
		field("shared_ffn", document.Int(&e.SharedFFN)),
		field("shared_gate", document.Flag(&e.SharedGate)),
		field("first_dense", document.Int(&e.FirstDense)),
		field("every", document.Int(&e.Every)),
		field("score", document.Enum(&e.Score, scoreNames()...)),
		field("normalise", document.Flag(&e.Normalise)),
		field("scale", document.Float(&e.Scale)),
		field("groups", document.Int(&e.Groups)),
		field("groups_per_token", document.Int(&e.GroupsPerToken)),
		field("balance", document.Enum(&e.Balance, balanceNames()...)),
		field("loss_coefficient", document.Float(&e.LossCoefficient)),
	)
}
