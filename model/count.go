package model

import "carve/unit"

// Kind says what a parameter or an operation belongs to.
type Kind uint8

// The kinds.
const (
	Embedding    Kind = iota // of tokens
	Positional               // learned positions
	AttentionMap             // the projections of attention, and their biases
	Scores                   // QKᵀ and the weighted sum of values; no parameters
	MLP                      // dense feed-forward
	Expert                   // routed experts
	SharedExpert             // shared experts and their gate
	Router                   // the router and its balancing bias
	Normal                   // norms
	Head                     // output projection, where not tied
	Predictor                // the joining projection of a multi-token prediction block
)

// KindCount is the number of kinds.
const KindCount = 11

// String names the kind for a table.
func (k Kind) String() string {
	names := [KindCount]string{
		"embedding", "position", "attention", "scores", "mlp", "expert", "shared expert", "router", "norm", "head", "predictor",
	}
	if int(k) >= len(names) {
		return "unknown"
	}
	return names[k]
}

// Kinds returns all kinds in order.
func Kinds() []Kind {
	all := make([]Kind, KindCount)
	for i := range all {
		all[i] = Kind(i)
	}
	return all
}

// Tally holds a quantity of each Kind.
type Tally[T unit.Count | unit.FLOPs] [KindCount]T

// Counts are numbers of parameters.
type Counts = Tally[unit.Count]

// Total sums over the kinds.
func (t Tally[T]) Total() (sum T) {
	for _, x := range t {
		sum += x
	}
	return sum
}

// Plus adds kind by kind.
func (t Tally[T]) Plus(other Tally[T]) Tally[T] {
	for k := range t {
		t[k] += other[k]
	}
	return t
}

// Times multiplies every kind.
func (t Tally[T]) Times(factor T) Tally[T] {
	for k := range t {
		t[k] *= factor
	}
	return t
}

// Parameters counts the model: embedding, Layers blocks, final norm and head, each parameter once. The
// blocks of multi-token prediction are apart, in PredictorParameters, as publications count them.
func (c Config) Parameters() Counts {
	total := c.EdgeParameters()
	for layer := range c.Layers {
		total = total.Plus(c.LayerParameters(layer))
	}
	return total
}

// ActiveParameters counts the parameters that one token passes: like Parameters, with k experts of E.
func (c Config) ActiveParameters() Counts {
	total := c.Parameters()
	if c.Experts.Count > 0 {
		total[Expert] = total[Expert] / unit.Count(c.Experts.Count) * unit.Count(c.Experts.PerToken)
	}
	return total
}

// EdgeParameters counts what stands before the first block and after the last: embedding, learned
// positions, final norm and untied head.
func (c Config) EdgeParameters() (n Counts) {
	n[Embedding] = product(c.Vocab, c.Hidden)
	if c.Position == Learned {
		n[Positional] = product(c.Context, c.Hidden)
	}
	n[Normal] = c.normSize(c.Hidden)
	if !c.TieEmbeddings {
		n[Head] = product(c.Vocab, c.Hidden)
	}
	return n
}

// LayerParameters counts one block, 0 <= layer < Layers.
func (c Config) LayerParameters(layer int) (n Counts) {
	n[AttentionMap], n[Normal] = c.attentionParameters()
	n[Normal] += unit.Count(c.NormsPerLayer()) * c.normSize(c.Hidden)
	if !c.HasExperts(layer) {
		n[MLP] = c.feedForward(c.FFN)
		return n
	}
	e := c.Experts
	n[Expert] = unit.Count(e.Count) * c.feedForward(e.FFN)
	n[Router] = product(e.Count, c.Hidden)
	if e.Balance == BiasBalance {
		n[Router] += unit.Count(e.Count)
	}
	if e.SharedFFN > 0 {
		n[SharedExpert] = c.feedForward(e.SharedFFN)
		if e.SharedGate {
			n[SharedExpert] += unit.Count(c.Hidden)
		}
	}
	return n
}

// PredictorParameters counts the blocks of multi-token prediction: each has two norms and a projection
// from 2·H that join the hidden state with the next token's embedding, a block, and a norm. Embedding
// and head are the model's own.
func (c Config) PredictorParameters() Counts {
	if c.MTP == 0 {
		return Counts{}
	}
	n := c.LayerParameters(c.Layers)
	n[Predictor] = product(2*c.Hidden, c.Hidden)
	n[Normal] += 3 * c.normSize(c.Hidden)
	return n.Times(unit.Count(c.MTP))
}

// NormsPerLayer returns how many norms of width H a block has.
func (c Config) NormsPerLayer() int {
	if c.NormPlacement == SandwichNorm {
		return 4
	}
	return 2
}

// normSize counts the parameters of a norm of the given width.
func (c Config) normSize(width int) unit.Count {
	switch c.Norm {
	case LayerNorm:
		return 2 * unit.Count(width)
	case PlainLayerNorm:
		return 0
	case RMSNorm, OffsetRMSNorm:
		return unit.Count(width)
	}
	return 0
}

// feedForward counts a feed-forward of the given width.
func (c Config) feedForward(width int) unit.Count {
	n := 2 * product(c.Hidden, width)
	if c.Activation.Gated() {
		n += product(c.Hidden, width)
	}
	if c.Bias.MLP {
		n += unit.Count(c.Hidden + width)
		if c.Activation.Gated() {
			n += unit.Count(width)
		}
	}
	return n
}

// attentionParameters counts the projections of attention and the norms inside it.
func (c Config) attentionParameters() (maps, norms unit.Count) {
	maps = c.attentionWeights()
	if c.Bias.QKV {
		maps += unit.Count(c.QuerySize() + 2*c.KVSize())
	}
	if c.Bias.Output {
		maps += unit.Count(c.Hidden)
	}
	switch c.QKNorm {
	case HeadQKNorm:
		norms = 2 * c.normSize(c.HeadDim)
	case FullQKNorm:
		norms = c.normSize(c.QuerySize()) + c.normSize(c.KVSize())
	case NoQKNorm:
	}
	if c.Attention == LatentKV {
		norms += c.normSize(c.Latent.KVRank) + c.normSize(c.Latent.QueryRank)
	}
	return maps, norms
}

// attentionWeights counts the matrices of attention.
func (c Config) attentionWeights() unit.Count {
	if c.Attention == Grouped {
		return 2*product(c.Hidden, c.QuerySize()) + 2*product(c.Hidden, c.KVSize())
	}
	l := c.Latent
	n := product(c.Hidden, l.KVRank+l.RopeDim) +
		product(l.KVRank, c.Heads*(l.NopeDim+l.ValueDim)) +
		product(c.Heads*l.ValueDim, c.Hidden)
	if l.QueryRank == 0 {
		return n + product(c.Hidden, c.QuerySize())
	}
	return n + product(c.Hidden, l.QueryRank) + product(l.QueryRank, c.QuerySize())
}

// product multiplies two sizes.
func product(a, b int) unit.Count { return unit.Count(a) * unit.Count(b) }
