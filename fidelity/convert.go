package fidelity

import (
	"fmt"
	"math"
	"strings"

	"carve/cluster"
	"carve/cost"
	"carve/model"
	"carve/price"
	"carve/unit"
)

// maxNumber bounds what a file may state, far beyond any run, so that products do not overflow; more counts as not stated.
const maxNumber = 1 << 20

// number is a stated number as a size, or what it is when nobody states it.
func number(x *float64, otherwise int) int {
	if x == nil || !(*x >= 0 && *x <= maxNumber) {
		return otherwise
	}
	return int(math.Round(*x))
}

// text is a stated text in lower case, or nothing.
func text(s *string) string {
	if s == nil {
		return ""
	}
	return strings.ToLower(*s)
}

// Job is what a run computes and how it is split; the error says what is missing.
func (r *Run) Job() (price.Job, error) {
	for _, s := range []struct {
		name string
		x    *float64
	}{
		{"model.layers", r.Model.Layers},
		{"model.hidden", r.Model.Hidden},
		{"model.heads", r.Model.Heads},
		{"model.vocab", r.Model.Vocab},
		{"layout.gbs", r.Layout.Batch},
		{"layout.seq", r.Layout.Sequence},
		{"cluster.gpus", r.Cluster.GPUs},
	} {
		if number(s.x, 0) < 1 {
			return price.Job{}, fmt.Errorf("fidelity: %s: %s is not stated", r.ID, s.name)
		}
	}
	c, err := r.model()
	if err != nil {
		return price.Job{}, err
	}
	j := price.Job{Model: c, Sequence: number(r.Layout.Sequence, 0), GlobalBatch: number(r.Layout.Batch, 0)}
	j.Format = r.format()
	j.Unfused = r.unfused()
	j.Layout, err = r.layout()
	return j, err
}

// model is the run's model.
func (r *Run) model() (model.Config, error) {
	m := &r.Model
	c := model.New(model.Llama)
	c.Layers, c.Hidden, c.Heads, c.Vocab = number(m.Layers, 0), number(m.Hidden, 0), number(m.Heads, 0), number(m.Vocab, 0)
	c.KVHeads = max(1, number(m.KVHeads, c.Heads))
	c.HeadDim = number(m.HeadDim, c.Hidden/c.Heads)
	c.FFN = number(m.FFN, 0)
	c.Context = max(1, number(r.Layout.Sequence, 1))
	c.MTP = number(m.MTP, 0)
	c.TieEmbeddings = m.Tied != nil && *m.Tied
	if m.Gated != nil && !*m.Gated {
		c.Activation, c.Norm = model.GELU, model.LayerNorm
	}
	if m.Latent != nil {
		c.Attention = model.LatentKV
		c.Latent = model.Latent{QueryRank: int(m.Latent.Query), KVRank: int(m.Latent.KV), NopeDim: int(m.Latent.Nope), RopeDim: int(m.Latent.Rope), ValueDim: int(m.Latent.Value)}
		c.KVHeads, c.HeadDim = c.Heads, c.Latent.NopeDim+c.Latent.RopeDim
	}
	if e := number(m.Experts, 0); e > 0 {
		c.Experts = model.Experts{
			Count: e, PerToken: max(1, number(m.TopK, 1)), FFN: number(m.ExpertFFN, c.FFN), SharedFFN: number(m.SharedFFN, 0),
			FirstDense: number(m.DenseLayers, 0), Every: 1,
		}
	}
	if c.FFN == 0 && c.Experts.Count == 0 {
		return c, fmt.Errorf("fidelity: %s: model.ffn is not stated", r.ID)
	}
	return c, nil
}

// format is the format of the run's products.
func (r *Run) format() price.Format {
	p := text(r.Layout.Precision)
	switch {
	case strings.Contains(p, "fp4"):
		return price.FP4
	case strings.Contains(p, "fp8"):
		return price.FP8
	case p == "fp32":
		return price.FP32
	}
	return price.BF16
}

// unfused tells whether the run's attention keeps its scores: sources from before block-wise kernels, or that say so.
func (r *Run) unfused() bool {
	if k := text(r.Layout.Kernel); k != "" {
		return strings.Contains(k, "unfused") || strings.Contains(k, "fused softmax")
	}
	switch r.Source.Key {
	case "sc21", "korthikanti", "bloom", "mtnlg", "fsdp", "opt":
		return true
	}
	return false
}

// layout is how the run was split.
func (r *Run) layout() (price.Layout, error) {
	s := &r.Layout
	l := price.Layout{
		TP: max(1, number(s.TP, 1)), PP: max(1, number(s.PP, 1)), CP: max(1, number(s.CP, 1)), EP: max(1, number(s.EP, 1)),
		Virtual: max(1, number(s.VPP, 1)), Zero: number(s.Zero, 0), Shard: number(s.Shard, 0), MicroBatch: max(1, number(s.MicroBatch, 1)),
	}
	l.ExpertTP = max(1, number(s.ETP, l.TP))
	gpus := number(r.Cluster.GPUs, 1)
	data := max(1, gpus/(l.TP*l.PP*l.CP))
	if l.EP > data { // experts over ranks that the dense layers split by tensor (folding)
		l.ExpertTP = max(1, l.ExpertTP*data/l.EP)
		l.EP = data
	}
	l.DP = max(1, data/l.EP)
	l.SequenceParallel = s.SP != nil && *s.SP && l.TP > 1
	if s.FSDP != nil && *s.FSDP {
		l.Zero = 3
	}
	if s.MicroBatch == nil {
		return l, fmt.Errorf("fidelity: %s: layout.mbs is not stated", r.ID)
	}
	l.Schedule = schedule(text(s.Schedule), l)
	l.Recompute = recompute(text(s.Recompute))
	return l, nil
}

func schedule(name string, l price.Layout) price.Schedule {
	switch {
	case strings.HasPrefix(name, "zbv"):
		return price.VShape
	case strings.HasPrefix(name, "zb"):
		return price.ZeroBubble
	case strings.Contains(name, "dualpipe"):
		return price.DualPipe
	case l.Virtual > 1:
		return price.Interleaved
	}
	return price.OneForwardOneBackward
}

func recompute(name string) price.Recompute {
	switch {
	case strings.HasPrefix(name, "full"), strings.HasPrefix(name, "yes"), strings.HasPrefix(name, "custom"), strings.HasPrefix(name, "qkv_proj"):
		return price.FullBlock
	case strings.Contains(name, "per-op"), strings.Contains(name, "minimal"), strings.Contains(name, "every other"), name == "selective":
		return price.Partly
	case strings.HasPrefix(name, "selective"):
		return price.Attention
	}
	return price.KeepAll
}

// Profile is the name of the run's framework profile.
func (r *Run) Profile() string {
	name := strings.ToLower(r.Source.Key + " " + r.Source.Title)
	switch {
	case strings.HasPrefix(r.Cluster.GPU, "TPU"):
		return "jax"
	case strings.Contains(name, "nanotron"), strings.Contains(name, "ultra-scale"):
		return "nanotron"
	case strings.Contains(name, "mpt"), strings.Contains(name, "foundry"), strings.Contains(name, "composer"):
		return "composer"
	case strings.Contains(name, "bloom"), strings.Contains(name, "deepspeed"):
		return "deepspeed"
	case r.Layout.FSDP != nil && *r.Layout.FSDP:
		return "fsdp"
	case strings.Contains(name, "simumax"):
		return "megatron-plain"
	}
	return "megatron"
}

// Machine is the cluster that the run used, from the preset of its device.
func (r *Run) Machine() (cost.Machine, error) {
	name, shared := "", 0
	for _, preset := range cluster.Presets() {
		c, err := cluster.Preset(preset, 1)
		if err != nil {
			return cost.Machine{}, err
		}
		if n := common(c.Device.Name, r.Cluster.GPU); n > shared {
			name, shared = preset, n
		}
	}
	if shared < 4 {
		return cost.Machine{}, fmt.Errorf("fidelity: %s: no preset has a device like %q", r.ID, r.Cluster.GPU)
	}
	c, err := cluster.Preset(name, 1)
	if err != nil {
		return cost.Machine{}, err
	}
	gpus := number(r.Cluster.GPUs, c.Node)
	if nodes := (gpus + c.Node - 1) / c.Node; nodes > 1 {
		if c, err = cluster.Preset(name, nodes); err != nil {
			return cost.Machine{}, fmt.Errorf("fidelity: %s: %w", r.ID, err)
		}
	}
	if m := number(r.Cluster.Memory, 0); m > 0 {
		c.Device.Memory = unit.Bytes(m) * unit.GiB
	}
	if card := r.Cluster.Card; card != nil && *card > 0 && len(c.Levels) > 1 {
		c.Levels[len(c.Levels)-1].Bandwidth = unit.BytesPerSecond(*card / 8 * 1e9)
	}
	return cost.New(c)
}

// common is the length of the beginning that two names share.
func common(a, b string) (n int) {
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
