package model

import (
	"errors"
	"fmt"

	"carve/internal/document"
)

// Bounds of sizes: far beyond any model, and low enough that no product of sizes overflows.
const (
	maxLayers     = 1 << 12
	maxHidden     = 1 << 18
	maxHeads      = 1 << 12
	maxFFN        = 1 << 22
	maxVocab      = 1 << 24
	maxContext    = 1 << 28
	maxExperts    = 1 << 14
	maxParameters = 1e15
)

// Validate returns every reason why c is not a model, joined, or nil.
func (c Config) Validate() error {
	var faults []error
	for _, fault := range c.faults() {
		faults = append(faults, errors.New("model: "+fault))
	}
	return errors.Join(faults...)
}

// faults returns every reason why c is not a model.
func (c Config) faults() []string {
	v := validator{}
	v.size("layers", c.Layers, 1, maxLayers)
	v.size("hidden", c.Hidden, 1, maxHidden)
	v.size("heads", c.Heads, 1, maxHeads)
	v.size("kv_heads", c.KVHeads, 1, maxHeads)
	if c.HeadDim == 0 && c.Heads > 0 && c.Hidden%c.Heads != 0 {
		v.fault("hidden %d is not a multiple of %d heads; use %d or %d, or set head_dim",
			c.Hidden, c.Heads, max(c.Hidden/c.Heads, 1)*c.Heads, (c.Hidden/c.Heads+1)*c.Heads)
	} else {
		v.size("head_dim", c.HeadDim, 1, maxHidden)
	}
	v.size("vocab", c.Vocab, 1, maxVocab)
	v.size("context", c.Context, 1, maxContext)
	v.size("mtp", c.MTP, 0, maxLayers)
	v.size("window size", c.Window.Size, 0, maxContext)
	v.size("window from", c.Window.From, 0, maxContext)
	v.size("window full_every", c.Window.FullEvery, 0, maxContext)
	v.numbers(c)
	v.rope(c)
	v.latent(c)
	v.experts(c)
	if len(v.faults) == 0 { // what follows multiplies sizes
		v.together(c)
	}
	return v.faults
}

// validator collects faults.
type validator struct{ faults []string }

// fault records one fault.
func (v *validator) fault(format string, args ...any) {
	v.faults = append(v.faults, fmt.Sprintf(format, args...))
}

// size checks that a whole number lies in a range.
func (v *validator) size(name string, value, low, high int) {
	if value < low || value > high {
		v.fault("%s is %d; use %d to %d", name, value, low, high)
	}
}

// number checks that a number lies in a range; NaN does not.
func (v *validator) number(name string, value, low, high float64) {
	if !(value >= low && value <= high) {
		text := document.FormatFloat
		v.fault("%s is %s; use %s to %s", name, text(value), text(low), text(high))
	}
}

// numbers checks the scalars that are not sizes.
func (v *validator) numbers(c Config) {
	v.number("norm_eps", c.NormEpsilon, 0, 1)
	v.number("init_std", c.InitStd, 0, 1e3)
	v.number("embedding_scale", c.EmbeddingScale, 0, 1e6)
	v.number("query_scale", c.QueryScale, 0, 1e6)
	v.number("attention_softcap", c.AttentionSoftcap, 0, 1e6)
	v.number("logit_softcap", c.LogitSoftcap, 0, 1e6)
	v.number("clip_qkv", c.ClipQKV, 0, 1e6)
	v.number("dropout of embeddings", c.Dropout.Embedding, 0, 0.99)
	v.number("dropout of attention", c.Dropout.Attention, 0, 0.99)
	v.number("dropout of residuals", c.Dropout.Residual, 0, 0.99)
}

// rope checks rotary position.
func (v *validator) rope(c Config) {
	if c.Position != Rotary {
		return
	}
	r := c.Rope
	v.number("rope_theta", r.Theta, 1, 1e12)
	v.number("rope local theta", r.LocalTheta, 0, 1e12)
	v.number("rope fraction", r.Fraction, 0.01, 1)
	if rotated := c.rotated(); rotated%2 != 0 || rotated == 0 {
		v.fault("rotary position turns pairs, and %d of a head's %d dims is not an even number above 0", rotated, c.HeadDim)
	}
	if r.Scaling == NoScaling {
		return
	}
	v.number("rope scaling factor", r.Factor, 1, 1e6)
	if r.Scaling == LinearScaling {
		return
	}
	v.size("rope scaling original context", r.OriginalContext, 1, maxContext)
	if r.Scaling == Llama3Scaling {
		v.number("rope scaling low frequency", r.LowFrequency, 1e-3, 1e6)
		v.number("rope scaling high frequency", r.HighFrequency, 1e-3, 1e6)
		if r.HighFrequency <= r.LowFrequency {
			v.fault("rope scaling high frequency %v is not above low frequency %v", r.HighFrequency, r.LowFrequency)
		}
		return
	}
	v.number("rope scaling beta_fast", r.BetaFast, 0, 1e6)
	v.number("rope scaling beta_slow", r.BetaSlow, 0, 1e6)
	v.number("rope scaling mscale", r.MScale, 0, 1e6)
	v.number("rope scaling mscale_all_dim", r.MScaleAllDim, 0, 1e6)
	v.number("rope scaling attention_factor", r.AttentionFactor, 0, 1e6)
}

// rotated returns how many dims of a head are rotated.
func (c Config) rotated() int {
	if c.Attention == LatentKV {
		return c.Latent.RopeDim
	}
	return int(float64(c.HeadDim) * c.Rope.Fraction)
}

// latent checks the sizes of latent attention, or that a grouped one fits together.
func (v *validator) latent(c Config) {
	if c.Attention == Grouped {
		if c.KVHeads > 0 && c.Heads%c.KVHeads != 0 {
			v.fault("%d kv_heads do not divide %d heads; use %s", c.KVHeads, c.Heads, divisors(c.Heads))
		}
		return
	}
	l := c.Latent
	v.size("latent query_rank", l.QueryRank, 0, maxHidden)
	v.size("latent kv_rank", l.KVRank, 1, maxHidden)
	v.size("latent nope_dim", l.NopeDim, 1, maxHidden)
	v.size("latent rope_dim", l.RopeDim, 1, maxHidden)
	v.size("latent value_dim", l.ValueDim, 1, maxHidden)
	if c.KVHeads != c.Heads || c.HeadDim != l.NopeDim+l.RopeDim {
		v.fault("latent attention has as many kv_heads as heads and a head_dim of nope_dim + rope_dim, not %d and %d", c.KVHeads, c.HeadDim)
	}
}

// experts checks the mixture of experts.
func (v *validator) experts(c Config) {
	e := c.Experts
	v.size("experts count", e.Count, 0, maxExperts)
	if e.Count == 0 {
		v.size("ffn", c.FFN, 1, maxFFN)
		return
	}
	v.size("ffn", c.FFN, 0, maxFFN)
	v.size("experts per_token", e.PerToken, 1, max(e.Count, 1))
	v.size("experts ffn", e.FFN, 1, maxFFN)
	v.size("experts shared_ffn", e.SharedFFN, 0, maxFFN)
	v.size("experts first_dense", e.FirstDense, 0, maxLayers)
	v.size("experts every", e.Every, 1, maxLayers)
	v.size("experts groups", e.Groups, 0, max(e.Count, 1))
	v.size("experts groups_per_token", e.GroupsPerToken, 0, max(e.Groups, 0))
	v.number("experts scale", e.Scale, 0, 1e6)
	v.number("experts loss_coefficient", e.LossCoefficient, 0, 1e6)
	if e.Groups > 1 && e.Count%e.Groups != 0 {
		v.fault("%d groups do not divide %d experts; use %s", e.Groups, e.Count, divisors(e.Count))
	}
	if e.Groups > 1 && e.GroupsPerToken == 0 {
		v.fault("experts groups_per_token is 0 with %d groups; use 1 to %d", e.Groups, e.Groups)
	}
	if e.Groups > 1 && e.PerToken > e.GroupsPerToken*(e.Count/e.Groups) {
		v.fault("%d experts per token do not fit %d groups of %d", e.PerToken, e.GroupsPerToken, e.Count/e.Groups)
	}
}

// together checks what needs every size to be sane.
func (v *validator) together(c Config) {
	dense := 0
	for layer := range c.Layers {
		if !c.HasExperts(layer) {
			dense++
		}
	}
	if dense > 0 && c.FFN == 0 {
		v.fault("ffn is 0 but %d of %d layers have no experts; use 1 or more", dense, c.Layers)
	}
	expert := 3 * float64(c.Hidden) * float64(c.Experts.FFN) * float64(c.Experts.Count)
	other := 4*float64(c.Hidden)*float64(c.QuerySize()+c.FFN+c.Experts.SharedFFN+c.Latent.KVRank) +
		float64(c.QuerySize()+c.Heads*c.Latent.ValueDim)*float64(c.Latent.QueryRank+c.Latent.KVRank)
	if total := float64(c.Layers+c.MTP) * (expert + other); total > maxParameters {
		v.fault("about %.1e parameters are more than %.0e; use smaller sizes", total, float64(maxParameters))
	}
}

// divisors lists the divisors of a positive n as a sentence does.
func divisors(n int) string {
	out := ""
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			switch {
			case out == "":
				out = fmt.Sprint(d)
			case d == n:
				out += fmt.Sprintf(" or %d", d)
			default:
				out += fmt.Sprintf(", %d", d)
			}
		}
	}
	return out
}
