package model_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carve/internal/document"
	"carve/model"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files of this package anew")

// TestReadPublished reads whole files as they are published, and finds the presets of the same names.
func TestReadPublished(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.config.json")
	if err != nil || len(paths) < 7 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := model.Read(data)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		want := preset(t, strings.TrimSuffix(filepath.Base(path), ".config.json"))
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", path, diff)
		}
	}
}

// TestReadBad checks the exact words for wrong files: testdata/NAME.bad.json and .bad.txt.
func TestReadBad(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.bad.json")
	if err != nil || len(paths) < 25 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			c, err := model.Read(data)
			if err == nil {
				t.Fatalf("is accepted as %+v", c)
			}
			golden(t, strings.TrimSuffix(path, ".json")+".txt", err.Error()+"\n")
		})
	}
}

// golden compares text with a file, or writes it under -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// TestReadVariants checks spellings beside those of the presets.
func TestReadVariants(t *testing.T) {
	const sizes = `"hidden_size": 64, "num_hidden_layers": 8, "num_attention_heads": 4, "intermediate_size": 128, "vocab_size": 512`
	cases := []struct {
		name, text string
		check      func(model.Config) bool
	}{
		{
			"heads default", `{"model_type": "llama", ` + sizes + `}`,
			func(c model.Config) bool { return c.KVHeads == 4 && c.HeadDim == 16 },
		},
		{
			"class wins over type", `{"architectures": ["Qwen3ForCausalLM"], "model_type": "llama", ` + sizes + `}`,
			func(c model.Config) bool { return c.Architecture == model.Qwen3 && c.QKNorm == model.HeadQKNorm },
		},
		{
			"biases", `{"model_type": "llama", "attention_bias": true, "mlp_bias": true, ` + sizes + `}`,
			func(c model.Config) bool { return c.Bias == model.Bias{QKV: true, Output: true, MLP: true} },
		},
		{
			"rope parameters", `{"model_type": "llama", "rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 2}, ` + sizes + `}`,
			func(c model.Config) bool {
				return c.Rope.Theta == 5e5 && c.Rope.Scaling == model.LinearScaling && c.Rope.Factor == 2
			},
		},
		{
			"both names of the type", `{"model_type": "llama", "rope_scaling": {"type": "longrope", "rope_type": "linear", "factor": 2}, ` + sizes + `}`,
			func(c model.Config) bool { return c.Rope.Scaling == model.LinearScaling },
		},
		{
			"yarn's defaults", `{"model_type": "llama", "max_position_embeddings": 99, "rope_scaling": {"rope_type": "yarn", "factor": 4}, ` + sizes + `}`,
			func(c model.Config) bool {
				return c.Rope.BetaFast == 32 && c.Rope.BetaSlow == 1 && c.Rope.OriginalContext == 99
			},
		},
		{
			"window from a layer", `{"model_type": "qwen2", "use_sliding_window": true, "sliding_window": 16, "max_window_layers": 6, ` + sizes + `}`,
			func(c model.Config) bool { return c.Window == model.Window{Size: 16, From: 6} && c.Window.Covers(6) },
		},
		{
			"window by layer types", `{"model_type": "qwen3", "use_sliding_window": true, "sliding_window": 16, "layer_types": [
			"sliding_attention", "sliding_attention", "sliding_attention", "full_attention",
			"sliding_attention", "sliding_attention", "sliding_attention", "full_attention"], ` + sizes + `}`,
			func(c model.Config) bool { return c.Window == model.Window{Size: 16, FullEvery: 4} },
		},
		{
			"all layers full", `{"model_type": "gemma2", "layer_types": ["full_attention", "full_attention", "full_attention", "full_attention",
			"full_attention", "full_attention", "full_attention", "full_attention"], ` + sizes + `}`,
			func(c model.Config) bool { return c.Window == model.Window{} },
		},
		{
			"dense first layers", `{"model_type": "qwen3_moe", "mlp_only_layers": [0, 1], "moe_intermediate_size": 32, ` + sizes + `}`,
			func(c model.Config) bool { return !c.HasExperts(1) && c.HasExperts(2) },
		},
		{
			"every second layer", `{"model_type": "qwen2_moe", "decoder_sparse_step": 2, "moe_intermediate_size": 32, ` + sizes + `}`,
			func(c model.Config) bool { return !c.HasExperts(0) && c.HasExperts(1) && c.Experts.Count == 60 },
		},
		{
			"first Gemma", `{"model_type": "gemma", "hidden_act": "gelu", "hidden_activation": null, ` + sizes + `}`,
			func(c model.Config) bool { return c.Activation == model.GeGLU && c.EmbeddingScale == 8 },
		},
		{
			"unknown but harmless", `{"model_type": "llama", "my_own_note": "hello", "is_llama_config": true, ` + sizes + `}`,
			func(c model.Config) bool { return c.Layers == 8 },
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := model.Read([]byte(c.text))
			if err != nil || !c.check(got) {
				t.Errorf("%v\n%+v", err, got)
			}
		})
	}
}

// TestInlineRoundTrips writes every preset as a mapping of a plan and reads it back.
func TestInlineRoundTrips(t *testing.T) {
	for _, name := range model.Presets() {
		want := preset(t, name)
		written := want
		n := model.Inline(&written).Encode()
		var got model.Config
		if err := document.Decode("test", n, model.Inline(&got)); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

func FuzzRead(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := model.Read(data)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.HasPrefix(line, "model: ") {
					t.Fatalf("error line without owner: %q", line)
				}
			}
			return
		}
		again, err := model.Read(model.Write(c, ""))
		if diff := cmp.Diff(c, again); err != nil || diff != "" {
			t.Fatalf("%v\n%s\n%s", err, diff, model.Write(c, ""))
		}
		if c.Layers <= 8 && c.Experts.Count <= 64 && enumerated(c) != c.Parameters().Plus(c.PredictorParameters()) {
			t.Fatalf("counts differ for %+v", c)
		}
	})
}
