package model_test

import (
	"fmt"
	"math"
	"testing"

	"carve/model"
	"carve/unit"
)

// Where a published count was found.
const (
	hub    = "total of the safetensors files, as Hugging Face's model_info gives it"
	keras  = "params of the preset in KerasHub"
	loaded = "elements of the loaded model, tied heads once, as projects that load it report"
)

// published are exact parameter counts of the weights in a repository, each with where it was found. Hugging Face's total of
// some models counts a tied head twice (Qwen3-0.6B: 751,632,384) or the scales of fp8 and the prediction module as well
// (DeepSeek-V3: 684,531,386,000; see TestDeepseekV3Parts); for those the count is of the loaded model. Mixtral 8x22B is the
// one with a vocabulary of 32,000.
var published = []struct {
	preset     string
	want       unit.Count
	repository string
	source     string
}{
	{"llama-2-7b", 6_738_415_616, "meta-llama/Llama-2-7b-hf", loaded},
	{"llama-2-13b", 13_015_864_320, "meta-llama/Llama-2-13b-hf", loaded},
	{"llama-2-70b", 68_976_648_192, "meta-llama/Llama-2-70b-hf", loaded},
	{"llama-3-8b", 8_030_261_248, "meta-llama/Meta-Llama-3-8B", hub},
	{"llama-3.1-8b", 8_030_261_248, "meta-llama/Llama-3.1-8B", hub},
	{"llama-3.1-70b", 70_553_706_496, "meta-llama/Llama-3.1-70B", hub},
	{"llama-3.1-405b", 405_853_388_800, "meta-llama/Llama-3.1-405B", hub},
	{"llama-3.2-1b", 1_235_814_400, "meta-llama/Llama-3.2-1B", loaded},
	{"llama-3.2-3b", 3_212_749_824, "meta-llama/Llama-3.2-3B", hub},
	{"llama-3.3-70b", 70_553_706_496, "meta-llama/Llama-3.3-70B-Instruct", hub},
	{"tinyllama-1.1b", 1_100_048_384, "TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T", hub},
	{"mistral-7b", 7_241_732_096, "mistralai/Mistral-7B-v0.1", loaded},
	{"mixtral-8x7b", 46_702_792_704, "mistralai/Mixtral-8x7B-Instruct-v0.1", hub},
	{"mixtral-8x22b", 140_620_634_112, "mistral-community/Mixtral-8x22B-v0.1", hub},
	{"qwen2.5-0.5b", 494_032_768, "Qwen/Qwen2.5-0.5B", loaded},
	{"qwen2.5-1.5b", 1_543_714_304, "Qwen/Qwen2.5-1.5B", hub},
	{"qwen2.5-3b", 3_085_938_688, "Qwen/Qwen2.5-3B", keras},
	{"qwen2.5-7b", 7_615_616_512, "Qwen/Qwen2.5-7B", hub},
	{"qwen2.5-14b", 14_770_033_664, "Qwen/Qwen2.5-14B", loaded},
	{"qwen2.5-32b", 32_763_876_352, "Qwen/Qwen2.5-32B", hub},
	{"qwen2.5-72b", 72_706_203_648, "Qwen/Qwen2.5-72B", keras},
	{"qwen3-0.6b", 596_049_920, "Qwen/Qwen3-0.6B", loaded},
	{"qwen3-1.7b", 1_720_574_976, "Qwen/Qwen3-1.7B", keras},
	{"qwen3-4b", 4_022_468_096, "Qwen/Qwen3-4B", hub},
	{"qwen3-8b", 8_190_735_360, "Qwen/Qwen3-8B", hub},
	{"qwen3-14b", 14_768_307_200, "Qwen/Qwen3-14B", keras},
	{"qwen3-32b", 32_762_123_264, "Qwen/Qwen3-32B", hub},
	{"qwen3-30b-a3b", 30_532_122_624, "Qwen/Qwen3-30B-A3B", hub},
	{"qwen3-235b-a22b", 235_093_634_560, "Qwen/Qwen3-235B-A22B", hub},
	{"qwen1.5-moe-a2.7b", 14_315_784_192, "Qwen/Qwen1.5-MoE-A2.7B", hub},
	{"deepseek-v2", 235_741_434_880, "deepseek-ai/DeepSeek-V2", hub},
	{"deepseek-v2-lite", 15_706_484_224, "deepseek-ai/DeepSeek-V2-Lite", hub},
	{"deepseek-v3", 671_026_419_200, "deepseek-ai/DeepSeek-V3", loaded},
	{"gemma-2b", 2_506_172_416, "google/gemma-2b", keras},
	{"gemma-7b", 8_537_680_896, "google/gemma-7b", keras},
	{"gemma-2-2b", 2_614_341_888, "google/gemma-2-2b", hub},
	{"gemma-2-9b", 9_241_705_984, "google/gemma-2-9b", hub},
	{"gemma-2-27b", 27_227_128_320, "google/gemma-2-27b", keras},
	{"gemma-3-1b", 999_885_952, "google/gemma-3-1b-it", hub},
	{"gpt2", 124_439_808, "openai-community/gpt2", keras},
	{"gpt2-medium", 354_823_168, "openai-community/gpt2-medium", keras},
	{"gpt2-large", 774_030_080, "openai-community/gpt2-large", keras},
	{"gpt2-xl", 1_557_611_200, "openai-community/gpt2-xl", keras},
	{"olmo-1b", 1_176_764_416, "allenai/OLMo-1B", loaded},
	{"olmo-7b", 6_888_095_744, "allenai/OLMo-7B", loaded},
	{"olmo-2-7b", 7_298_617_344, "allenai/OLMo-2-1124-7B", hub},
	{"olmo-2-13b", 13_716_198_400, "allenai/OLMo-2-1124-13B", hub},
	{"olmoe-1b-7b", 6_919_161_856, "allenai/OLMoE-1B-7B-0924", hub},
}

func TestPublishedParameters(t *testing.T) {
	for _, c := range published {
		if got := preset(t, c.preset).Parameters().Total(); got != c.want {
			t.Errorf("%s has %d parameters, want the %d of %s (%s)", c.preset, got, c.want, c.repository, c.source)
		}
	}
}

// preset returns a preset that must exist.
func preset(t *testing.T, name string) model.Config {
	t.Helper()
	c, err := model.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestDeepseekV3Parts checks the parts that the weights' description states: 671B, a prediction module of
// 11.5B of its own beside a 0.9B embedding and a 0.9B head, and 684,489,845,504 numbers in the files,
// which hold that embedding and head twice: model_info's 3,918,786,560 of bf16, 680,571,043,840 of fp8 and the 59·256 of fp32 that
// are no scales but biases of the router. Published as activated: 37B.
func TestDeepseekV3Parts(t *testing.T) {
	c := preset(t, "deepseek-v3")
	main, module := c.Parameters(), c.PredictorParameters()
	files := main.Total() + module.Total() + main[model.Embedding] + main[model.Head]
	if files != 684_489_845_504 {
		t.Errorf("the files hold %d numbers, want 684,489,845,504", files)
	}
	near(t, "module", float64(module.Total()), 11.5e9, 0.01)
	near(t, "embedding", float64(main[model.Embedding]), 0.9e9, 0.03)
	near(t, "activated", float64(c.ActiveParameters().Total()), 37e9, 0.02)
}

// TestActivatedParameters checks what the models' names and reports say is activated per token.
func TestActivatedParameters(t *testing.T) {
	cases := []struct {
		preset string
		want   float64
	}{
		{"mixtral-8x7b", 12.9e9},  // Mixtral of Experts, section 1 says 13B, its table 12.9B
		{"mixtral-8x22b", 39e9},   // its announcement: 39B of 141B
		{"qwen3-30b-a3b", 3.3e9},  // model card
		{"qwen3-235b-a22b", 22e9}, // model card
		{"deepseek-v2", 21e9},     // DeepSeek-V2, abstract
		{"olmoe-1b-7b", 1.3e9},    // OLMoE, section 2
		{"kimi-k2", 32e9},         // model card; 1T in all
	}
	for _, c := range cases {
		near(t, c.preset, float64(preset(t, c.preset).ActiveParameters().Total()), c.want, 0.03)
	}
	near(t, "kimi-k2 in all", float64(preset(t, "kimi-k2").Parameters().Total()), 1.04e12, 0.02)
}

// near fails unless got is within a relative tolerance of want: figures published in two digits.
func near(t *testing.T, what string, got, want, tolerance float64) {
	t.Helper()
	if math.Abs(got/want-1) > tolerance {
		t.Errorf("%s is %.4g, want %.4g within %.0f %%", what, got, want, 100*tolerance)
	}
}

// TestMegatronShapes checks table 1 of Narayanan et al. 2021 (billions of parameters, one decimal but for
// the first row: 1.7) and its equation 2: P = 12·L·H²·(1 + 13/(12·H) + (V+S)/(12·L·H)). The paper leaves
// out the final norm's 2·H.
func TestMegatronShapes(t *testing.T) {
	for _, billions := range []string{"1.7", "3.6", "7.5", "18.4", "39.1", "76.1", "145.6", "310.1", "529.6", "1008"} {
		c := preset(t, "megatron-"+billions+"b")
		total := c.Parameters().Total()
		text := fmt.Sprintf("%.1f", float64(total)/1e9)
		if text != billions && text != billions+".0" {
			t.Errorf("megatron-%sb has %s billion parameters", billions, text)
		}
		L, H := unit.Count(c.Layers), unit.Count(c.Hidden)
		want := 12*L*H*H + 13*L*H + unit.Count(c.Vocab+c.Context)*H
		if total-2*H != want {
			t.Errorf("megatron-%sb has %d parameters, equation 2 gives %d", billions, total-2*H, want)
		}
	}
}

// TestMegatronFLOPs checks equation 3 of Narayanan et al. 2021 for training without recomputation:
// 72·B·S·L·H²·(1 + S/(6·H) + V/(12·L·H))·(3/4 of the 96 with recomputation), under its full mask.
func TestMegatronFLOPs(t *testing.T) {
	const S = 2048
	for _, name := range []string{"megatron-1.7b", "megatron-145.6b", "megatron-1008b"} {
		c := preset(t, name)
		L, H, V := float64(c.Layers), float64(c.Hidden), float64(c.Vocab)
		want := 72 * L * H * H * (1 + S/(6*H) + V/(12*L*H))
		got := float64(c.TrainingFLOPs(S, model.Full).Total())
		if math.Abs(got/want-1) > 1e-12 { // the same sum in another order
			t.Errorf("%s trains with %v FLOPs per token, equation 3 gives %v", name, got, want)
		}
	}
}

// TestDenseFLOPs checks the rule 6·P + 6·L·S·A·D per trained token (Chowdhery et al. 2022, appendix B,
// halves the second term for a causal mask) with P the matrix parameters.
func TestDenseFLOPs(t *testing.T) {
	const S = 8192
	c := preset(t, "llama-3.1-8b")
	p := c.Parameters()
	matrices := float64(p[model.AttentionMap] + p[model.MLP] + p[model.Head])
	scores := 12 * float64(c.Layers) * S * float64(c.QuerySize())
	want := 6*matrices + scores
	if got := float64(c.TrainingFLOPs(S, model.Full).Total()); got != want {
		t.Errorf("full mask: %v FLOPs per token, want %v", got, want)
	}
	want = 6*matrices + scores*(S+1)/(2*S)
	if got := float64(c.TrainingFLOPs(S, model.Causal).Total()); got != want {
		t.Errorf("causal mask: %v FLOPs per token, want %v", got, want)
	}
}

// TestExpertFLOPs checks that a token pays for k experts, shared ones and the router.
func TestExpertFLOPs(t *testing.T) {
	c := preset(t, "deepseek-v3")
	w := c.LayerFLOPs(10, 4096, model.Causal)
	H, F := 7168.0, 2048.0
	for kind, want := range map[model.Kind]float64{
		model.Expert:       8 * 6 * H * F,
		model.SharedExpert: 6 * H * F,
		model.Router:       2 * H * 256,
		model.MLP:          0,
		model.Scores:       2 * 128 * (192 + 128) * 4097 / 2,
	} {
		if float64(w[kind]) != want {
			t.Errorf("%s costs %v, want %v", kind, w[kind], want)
		}
	}
	if dense := c.LayerFLOPs(0, 4096, model.Causal); dense[model.MLP] == 0 || dense[model.Expert] != 0 {
		t.Errorf("the first layer is not dense: %v", dense)
	}
}

// TestMeanKeys holds the closed form against counting positions.
func TestMeanKeys(t *testing.T) {
	c := preset(t, "gemma-2-2b") // window 4096, every second layer full
	c.Window.Size = 5
	for layer := range 2 {
		for S := 1; S < 12; S++ {
			sum := 0
			for i := range S {
				keys := i + 1
				if layer == 0 {
					keys = min(keys, 5)
				}
				sum += keys
			}
			if got, want := c.MeanKeys(layer, S, model.Causal), float64(sum)/float64(S); math.Abs(got-want) > 1e-12 {
				t.Errorf("layer %d, S %d: %v keys, want %v", layer, S, got, want)
			}
		}
	}
	if got := c.MeanKeys(1, 100, model.Full); got != 100 {
		t.Errorf("full mask: %v keys, want 100", got)
	}
	if got := c.MeanKeys(0, 100, model.Full); got != 5 {
		t.Errorf("full mask in a window of 5: %v keys", got)
	}
}

// TestCache checks published cache sizes per token and layer: DeepSeek-V2, table 1, gives 576 = 9·64
// for latent attention; Llama-3.1-8B has 2·8·128.
func TestCache(t *testing.T) {
	if got := preset(t, "deepseek-v2").CachedPerLayer(); got != 576 {
		t.Errorf("deepseek-v2 caches %d numbers, want 576", got)
	}
	if got := preset(t, "llama-3.1-8b").CachedPerLayer(); got != 2048 {
		t.Errorf("llama-3.1-8b caches %d numbers, want 2048", got)
	}
}
