package model

import (
	"slices"

	"carve/internal/document"
)

// draft is a Config together with what config.json says in another form.
type draft struct {
	Config
	shared     int      // number of shared experts
	useWindow  bool     // Qwen: the window is in force
	layerTypes []string // one per layer: full_attention or sliding_attention
	dense      []int    // Qwen: layers without experts
	topk       string   // DeepSeek: how experts are chosen
}

// draftOf returns the draft that settles to c.
func draftOf(c Config) draft {
	d := draft{Config: c, useWindow: c.Window.Size > 0}
	if c.Experts.FFN > 0 {
		d.shared = c.Experts.SharedFFN / c.Experts.FFN
	}
	if c.Window.Size > 0 {
		for layer := range c.Layers {
			d.layerTypes = append(d.layerTypes, c.Window.layerType(layer))
		}
	}
	d.topk = "greedy"
	if c.Experts.Groups > 1 {
		d.topk = "group_limited_greedy"
	}
	if c.Experts.Balance == BiasBalance {
		d.topk = "noaux_tc"
	}
	return d
}

// What transformers calls layers without and with a window.
const (
	fullLayer    = "full_attention"
	slidingLayer = "sliding_attention"
)

// layerType returns what transformers calls a layer.
func (w Window) layerType(layer int) string {
	if w.Covers(layer) {
		return slidingLayer
	}
	return fullLayer
}

// settle returns the Config of a draft that was read from n.
func (d *draft) settle(r *document.Reader, n *document.Node) Config {
	if d.Layers > maxLayers || d.Layers < 0 {
		return d.Config // Validate says so; nothing below may loop over it
	}
	d.settleWindow(r, n)
	d.settleExperts(r, n)
	d.finish()
	return d.Config
}

// settleWindow finds the pattern of windowed layers.
func (d *draft) settleWindow(r *document.Reader, n *document.Node) {
	switch d.Architecture {
	case Qwen2, Qwen3, Qwen2MoE, Qwen3MoE:
		if !d.useWindow {
			d.Window = Window{}
		}
	default:
	}
	if d.layerTypes == nil {
		return
	}
	window, ok := d.Window.matching(d.layerTypes)
	if !ok || len(d.layerTypes) != d.Layers {
		r.Fault(n.Get("layer_types"), "layer_types: want %d entries full_attention or sliding_attention in a regular pattern", d.Layers)
		return
	}
	d.Window = window
}

// matching returns the window, of the same size, that covers just the layers listed as sliding.
func (w Window) matching(types []string) (Window, bool) {
	first := slices.Index(types, slidingLayer)
	if first < 0 {
		return Window{}, !slices.ContainsFunc(types, func(t string) bool { return t != fullLayer })
	}
	candidates := []Window{w, {Size: w.Size}, {Size: w.Size, From: first}}
	if gap := slices.Index(types[first:], fullLayer); gap >= 0 {
		every := first + gap + 1
		candidates = append(candidates, Window{Size: w.Size, FullEvery: every}, Window{Size: w.Size, From: first, FullEvery: every})
	}
	for _, candidate := range candidates {
		if w.Size > 0 && candidate.fits(types) {
			return candidate, true
		}
	}
	return Window{}, false
}

// fits tells whether w covers just the layers listed as sliding.
func (w Window) fits(types []string) bool {
	for layer, kind := range types {
		if w.layerType(layer) != kind {
			return false
		}
	}
	return true
}

// settleExperts derives what config.json says of experts in other words.
func (d *draft) settleExperts(r *document.Reader, n *document.Node) {
	e := &d.Experts
	switch d.Architecture {
	case DeepseekV2, DeepseekV3:
		e.SharedFFN = d.shared * e.FFN
		d.settleChoice(r, n)
	case Qwen2MoE, Qwen3MoE:
		e.FirstDense = len(d.dense)
		for i, layer := range d.dense {
			if layer != i {
				r.Fault(n.Get("mlp_only_layers"), "mlp_only_layers: only the first layers, in order, may be dense")
				return
			}
		}
	case Mixtral, OLMoE:
		d.FFN = 0
	case Llama, Mistral, Qwen2, Qwen3, Gemma, Gemma2, Gemma3, GPT2, OLMo, OLMo2:
	}
}

// settleChoice turns DeepSeek's way of choosing experts into groups and balance.
func (d *draft) settleChoice(r *document.Reader, n *document.Node) {
	switch d.topk {
	case "greedy":
		d.Experts.Groups, d.Experts.GroupsPerToken = 0, 0
	case "group_limited_greedy":
	case "noaux_tc":
		d.Experts.Balance, d.Experts.LossCoefficient = BiasBalance, 0
	default:
		r.Fault(n.Get("topk_method"), "topk_method: unknown value; use greedy, group_limited_greedy or noaux_tc")
	}
}
