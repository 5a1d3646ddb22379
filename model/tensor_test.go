package model_test

import (
	"strings"
	"testing"

	"carve/model"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// enumerated counts by listing tensors: the dumb twin of Parameters and PredictorParameters.
func enumerated(c model.Config) (sum model.Counts) {
	for _, tensor := range c.Tensors() {
		sum[tensor.Kind] += tensor.Elements()
	}
	return sum
}

func TestCountsMatchTensors(t *testing.T) {
	for _, name := range model.Presets() {
		c := preset(t, name)
		want := c.Parameters().Plus(c.PredictorParameters())
		if diff := cmp.Diff(want, enumerated(c)); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestCountsMatchTensorsOfAnyModel changes presets in ways that no published model has.
func TestCountsMatchTensorsOfAnyModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := model.Preset(rapid.SampledFrom(model.Presets()).Draw(t, "preset"))
		if err != nil {
			t.Fatal(err)
		}
		c.Layers = rapid.IntRange(1, 4).Draw(t, "layers")
		c.Experts.Count = min(c.Experts.Count, 4)
		c.TieEmbeddings = rapid.Bool().Draw(t, "tied")
		c.Norm = model.Norm(rapid.IntRange(0, 3).Draw(t, "norm"))
		if c.Attention == model.Grouped {
			c.Bias = model.Bias{QKV: rapid.Bool().Draw(t, "qkv"), Output: rapid.Bool().Draw(t, "out"), MLP: c.Bias.MLP}
		}
		if c.Architecture != model.GPT2 {
			c.NormPlacement = model.NormPlacement(rapid.IntRange(0, 2).Draw(t, "placement"))
			c.MTP = rapid.IntRange(0, 2).Draw(t, "mtp")
		}
		if diff := cmp.Diff(c.Parameters().Plus(c.PredictorParameters()), enumerated(c)); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestTensorNames checks one layer of each naming as a person reads it.
func TestTensorNames(t *testing.T) {
	cases := []struct {
		preset, prefix string
		want           string
	}{
		{"qwen3-0.6b", "model.layers.0.", "input_layernorm.weight self_attn.q_proj.weight self_attn.k_proj.weight self_attn.v_proj.weight " +
			"self_attn.q_norm.weight self_attn.k_norm.weight self_attn.o_proj.weight post_attention_layernorm.weight " +
			"mlp.gate_proj.weight mlp.up_proj.weight mlp.down_proj.weight"},
		{"gpt2", "transformer.h.11.", "ln_1.weight ln_1.bias attn.c_attn.weight attn.c_attn.bias attn.c_proj.weight attn.c_proj.bias " +
			"ln_2.weight ln_2.bias mlp.c_fc.weight mlp.c_fc.bias mlp.c_proj.weight mlp.c_proj.bias"},
		{"mixtral-8x7b", "model.layers.3.block_sparse_moe.experts.7.", "w1.weight w3.weight w2.weight"},
		{"deepseek-v3", "model.layers.61.self_attn.", "q_a_proj.weight q_a_layernorm.weight q_b_proj.weight kv_a_proj_with_mqa.weight " +
			"kv_a_layernorm.weight kv_b_proj.weight o_proj.weight"},
		{"qwen1.5-moe-a2.7b", "model.layers.0.mlp.shared_expert", ".gate_proj.weight .up_proj.weight .down_proj.weight _gate.weight"},
		{"gemma-2-2b", "model.layers.0.p", "ost_attention_layernorm.weight re_feedforward_layernorm.weight ost_feedforward_layernorm.weight"},
		{"llama-3.1-8b", "lm_head", ".weight"},
		{"llama-3.2-1b", "lm_head", ""},
	}
	for _, c := range cases {
		var names []string
		for _, tensor := range preset(t, c.preset).Tensors() {
			if rest, ok := strings.CutPrefix(tensor.Name, c.prefix); ok {
				names = append(names, rest)
			}
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s has\n%s\nwant\n%s", c.preset, got, c.want)
		}
	}
}
