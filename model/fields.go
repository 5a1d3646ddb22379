package model

import (
	"carve/internal/document"
)

// field is an entry of a table of keys.
func field(key string, c document.Codec) document.Field { return document.Field{Key: key, Codec: c} }

// fields returns the keys of the family's config.json, bound to d, in the order in which they are written.
func (f family) fields(d *draft) []document.Field {
	if f.common.Architecture == GPT2 {
		return gpt2Fields(d)
	}
	list := []document.Field{
		field("hidden_size", document.Int(&d.Hidden)),
		field("num_hidden_layers", document.Int(&d.Layers)),
		field("num_attention_heads", document.Int(&d.Heads)),
		field("vocab_size", document.Int(&d.Vocab)),
		field("max_position_embeddings", document.Int(&d.Context)),
		field("initializer_range", document.Float(&d.InitStd)),
		field("tie_word_embeddings", document.Flag(&d.TieEmbeddings)),
		field("attention_dropout", document.Float(&d.Dropout.Attention)),
		field("rope_theta", document.Float(&d.Rope.Theta)),
	}
	list = append(list, ropeFields(d)...)
	list = append(list, normFields(d)...)
	list = append(list, activationFields(d)...)
	list = append(list, attentionFields(d)...)
	list = append(list, windowFields(d)...)
	return append(list, expertFields(d)...)
}

// gpt2Fields are the keys of GPT-2, which share no name with the others.
func gpt2Fields(d *draft) []document.Field {
	return []document.Field{
		field("n_embd", document.Int(&d.Hidden)),
		field("n_layer", document.Int(&d.Layers)),
		field("n_head", document.Int(&d.Heads)),
		field("n_inner", document.Nullable(document.AtLeast(1, &d.FFN))),
		field("n_positions", document.Int(&d.Context)),
		field("vocab_size", document.Int(&d.Vocab)),
		field("layer_norm_epsilon", document.Float(&d.NormEpsilon)),
		field("activation_function", document.Choice(&d.Activation,
			document.Option[Activation]{Name: "gelu_new", Value: GELUTanh},
			document.Option[Activation]{Name: "gelu_pytorch_tanh", Value: GELUTanh},
			document.Option[Activation]{Name: "gelu", Value: GELU},
			document.Option[Activation]{Name: "relu", Value: ReLU})),
		field("tie_word_embeddings", document.Flag(&d.TieEmbeddings)),
		field("initializer_range", document.Float(&d.InitStd)),
		field("embd_pdrop", document.Float(&d.Dropout.Embedding)),
		field("attn_pdrop", document.Float(&d.Dropout.Attention)),
		field("resid_pdrop", document.Float(&d.Dropout.Residual)),
		field("scale_attn_weights", only("true")),
		field("scale_attn_by_inverse_layer_idx", only("false")),
		field("add_cross_attention", only("false")),
	}
}

// normFields are the keys of norms.
func normFields(d *draft) []document.Field {
	switch d.Architecture {
	case OLMo: // its epsilon is fixed in code
		return []document.Field{field("clip_qkv", nullable(&d.ClipQKV))}
	case OLMoE:
		return []document.Field{
			field("rms_norm_eps", document.Float(&d.NormEpsilon)),
			field("clip_qkv", nullable(&d.ClipQKV)),
		}
	default:
		return []document.Field{field("rms_norm_eps", document.Float(&d.NormEpsilon))}
	}
}

// activationFields are the keys of the feed-forward.
func activationFields(d *draft) []document.Field {
	width := &d.FFN
	if d.Architecture == Mixtral || d.Architecture == OLMoE {
		width = &d.Experts.FFN
	}
	list := []document.Field{field("intermediate_size", document.Int(width))}
	switch d.Architecture {
	case Gemma, Gemma2, Gemma3:
		act := document.Choice(&d.Activation,
			document.Option[Activation]{Name: "gelu_pytorch_tanh", Value: GeGLU},
			document.Option[Activation]{Name: "gelu", Value: GeGLU}) // Gemma's first files say gelu and mean tanh
		silent := act
		silent.Encode = func() *document.Node { return nil }
		return append(list, field("hidden_activation", document.Nullable(act)), field("hidden_act", document.Nullable(silent)))
	case Llama:
		list = append(list, field("mlp_bias", document.Flag(&d.Bias.MLP)))
	default:
	}
	return append(list, field("hidden_act", document.Choice(&d.Activation, document.Option[Activation]{Name: "silu", Value: SwiGLU})))
}

// attentionFields are the keys of attention.
func attentionFields(d *draft) []document.Field {
	grouped := []document.Field{
		field("num_key_value_heads", document.Nullable(document.AtLeast(1, &d.KVHeads))),
		field("head_dim", document.Nullable(document.AtLeast(1, &d.HeadDim))),
	}
	switch d.Architecture {
	case DeepseekV2, DeepseekV3:
		return append(latentFields(d), field("attention_bias", only("false")))
	case Llama, Qwen3, Qwen3MoE, OLMo, OLMo2, OLMoE:
		return append(grouped, field("attention_bias", biases(&d.Bias)))
	case Qwen2, Qwen2MoE: // biases on queries, keys and values alone, unless qkv_bias says otherwise
		return append(grouped, field("qkv_bias", document.Flag(&d.Bias.QKV)))
	case Gemma2:
		return append(grouped,
			field("attention_bias", biases(&d.Bias)),
			field("query_pre_attn_scalar", document.Float(&d.QueryScale)),
			field("attn_logit_softcapping", nullable(&d.AttentionSoftcap)),
			field("final_logit_softcapping", nullable(&d.LogitSoftcap)))
	case Gemma3:
		return append(grouped,
			field("attention_bias", biases(&d.Bias)),
			field("query_pre_attn_scalar", document.Float(&d.QueryScale)),
			field("attn_logit_softcapping", nullable(&d.AttentionSoftcap)),
			field("final_logit_softcapping", nullable(&d.LogitSoftcap)),
			field("rope_local_base_freq", document.Float(&d.Rope.LocalTheta)))
	case Gemma:
		return append(grouped, field("attention_bias", biases(&d.Bias)))
	case Mistral, Mixtral, GPT2:
	}
	return grouped
}

// latentFields are the keys of multi-head latent attention.
func latentFields(d *draft) []document.Field {
	return []document.Field{
		field("q_lora_rank", orZero(&d.Latent.QueryRank)),
		field("kv_lora_rank", document.Int(&d.Latent.KVRank)),
		field("qk_nope_head_dim", document.Int(&d.Latent.NopeDim)),
		field("qk_rope_head_dim", document.Int(&d.Latent.RopeDim)),
		field("v_head_dim", document.Int(&d.Latent.ValueDim)),
		field("num_key_value_heads", derived()),
		field("head_dim", derived()),
		field("qk_head_dim", derived()),
	}
}

// windowFields are the keys of sliding windows.
func windowFields(d *draft) []document.Field {
	on := func() bool { return d.Window.Size > 0 }
	size := field("sliding_window", document.When(on, document.Nullable(document.Int(&d.Window.Size))))
	types := field("layer_types", document.When(on, document.Nullable(document.Slice(&d.layerTypes, document.Text))))
	switch d.Architecture {
	case Mistral, Mixtral:
		return []document.Field{size}
	case Qwen2, Qwen3, Qwen2MoE, Qwen3MoE:
		return []document.Field{
			field("use_sliding_window", document.Flag(&d.useWindow)),
			size,
			field("max_window_layers", document.When(on, document.Int(&d.Window.From))),
			types,
		}
	case Gemma2:
		return []document.Field{size, types}
	case Gemma3:
		return []document.Field{size, field("sliding_window_pattern", document.When(on, document.Int(&d.Window.FullEvery))), types}
	case Llama, DeepseekV2, DeepseekV3, Gemma, GPT2, OLMo, OLMo2, OLMoE:
	}
	return nil
}

// expertFields are the keys of experts.
func expertFields(d *draft) []document.Field {
	e := &d.Experts
	perToken := field("num_experts_per_tok", document.Int(&e.PerToken))
	loss := field("router_aux_loss_coef", document.Float(&e.LossCoefficient))
	normalise := field("norm_topk_prob", document.Flag(&e.Normalise))
	switch d.Architecture {
	case Mixtral:
		return []document.Field{field("num_local_experts", document.Int(&e.Count)), perToken, loss}
	case OLMoE:
		return []document.Field{field("num_experts", document.Int(&e.Count)), perToken, normalise, loss}
	case Qwen2MoE, Qwen3MoE:
		list := []document.Field{
			field("num_experts", document.Int(&e.Count)), perToken, normalise, loss,
			field("moe_intermediate_size", document.Int(&e.FFN)),
			field("decoder_sparse_step", document.Int(&e.Every)),
			field("mlp_only_layers", firstLayers(&d.dense, &e.FirstDense)),
		}
		if d.Architecture == Qwen2MoE {
			list = append(list, field("shared_expert_intermediate_size", document.Int(&e.SharedFFN)))
		}
		return list
	case DeepseekV2, DeepseekV3:
		return append(deepseekFields(d), perToken, normalise)
	case Llama, Mistral, Qwen2, Qwen3, Gemma, Gemma2, Gemma3, GPT2, OLMo, OLMo2:
	}
	return nil
}

// deepseekFields are the keys of DeepSeek's experts.
func deepseekFields(d *draft) []document.Field {
	e := &d.Experts
	list := []document.Field{
		field("n_routed_experts", orZero(&e.Count)),
		field("n_shared_experts", orZero(&d.shared)),
		field("moe_intermediate_size", document.Int(&e.FFN)),
		field("first_k_dense_replace", document.Int(&e.FirstDense)),
		field("moe_layer_freq", only("1")),
		field("n_group", orZero(&e.Groups)),
		field("topk_group", orZero(&e.GroupsPerToken)),
		field("topk_method", document.Text(&d.topk)),
		field("routed_scaling_factor", document.Float(&e.Scale)),
		field("scoring_func", document.Enum(&e.Score, scoreNames()...)),
		field("aux_loss_alpha", document.Float(&e.LossCoefficient)),
	}
	if d.Architecture == DeepseekV3 {
		list = append(list, field("num_nextn_predict_layers", document.Int(&d.MTP)))
	}
	return list
}
