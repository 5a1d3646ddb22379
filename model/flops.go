package model

import "carve/unit"

// Mask is which scores count as work.
type Mask uint8

// The masks.
const (
	Causal Mask = iota // a token attends to itself and those before: what a block-wise kernel computes
	Full               // every score, also those masked: the convention of Megatron's papers
)

// Work is floating-point operations.
type Work = Tally[unit.FLOPs]

// ForwardFLOPs returns the operations of a forward pass per token of a sequence of S positions, averaged
// over the positions.
func (c Config) ForwardFLOPs(sequence int, mask Mask) Work {
	total := c.HeadFLOPs()
	for layer := range c.Layers {
		total = total.Plus(c.LayerFLOPs(layer, sequence, mask))
	}
	for i := range c.MTP {
		total = total.Plus(c.LayerFLOPs(c.Layers+i, sequence, mask)).Plus(c.HeadFLOPs())
		total[Predictor] += 2 * unit.FLOPs(product(2*c.Hidden, c.Hidden))
	}
	return total
}

// TrainingFLOPs returns the operations of a training step per token: a forward pass and a backward pass of
// twice its work. Recomputation is not counted, so this over time and peak gives MFU, not HFU.
func (c Config) TrainingFLOPs(sequence int, mask Mask) Work {
	return c.ForwardFLOPs(sequence, mask).Times(3)
}

// HeadFLOPs returns the operations of the output projection per token, tied or not.
func (c Config) HeadFLOPs() (w Work) {
	w[Head] = 2 * unit.FLOPs(product(c.Vocab, c.Hidden))
	return w
}

// LayerFLOPs returns the operations of one block's forward pass per token of a sequence of S positions.
func (c Config) LayerFLOPs(layer, sequence int, mask Mask) (w Work) {
	w[AttentionMap] = 2 * unit.FLOPs(c.attentionWeights())
	perKey := 2 * unit.FLOPs(c.Heads) * unit.FLOPs(c.HeadDim+c.ValueDim())
	w[Scores] = perKey * unit.FLOPs(c.MeanKeys(layer, sequence, mask))
	if !c.HasExperts(layer) {
		w[MLP] = c.feedForwardFLOPs(c.FFN)
		return w
	}
	e := c.Experts
	w[Expert] = unit.FLOPs(e.PerToken) * c.feedForwardFLOPs(e.FFN)
	w[Router] = 2 * unit.FLOPs(product(e.Count, c.Hidden))
	if e.SharedFFN > 0 {
		w[SharedExpert] = c.feedForwardFLOPs(e.SharedFFN)
		if e.SharedGate {
			w[SharedExpert] += 2 * unit.FLOPs(c.Hidden)
		}
	}
	return w
}

// feedForwardFLOPs returns the operations of a feed-forward of the given width per token.
func (c Config) feedForwardFLOPs(width int) unit.FLOPs {
	matrices := 2
	if c.Activation.Gated() {
		matrices = 3
	}
	return 2 * unit.FLOPs(matrices) * unit.FLOPs(product(c.Hidden, width))
}

// MeanKeys returns the mean number of positions that a token of a sequence of S positions attends to in a
// layer: S for a full mask, (S+1)/2 for a causal one, less where a window limits it.
func (c Config) MeanKeys(layer, sequence int, mask Mask) float64 {
	s, w := float64(sequence), float64(sequence)
	if c.Window.Covers(layer) {
		w = min(w, float64(c.Window.Size))
	}
	if mask == Full {
		return w
	}
	return w - w*(w-1)/(2*s) // the first w tokens see 1, 2, … w positions, the others w
}
