package nn

import (
	"fmt"
	"math"
	"slices"

	"carve/mesh"
	"carve/model"
	"carve/tensor"
	"carve/unit"
)

// Options say what a model description leaves open. Zero values choose defaults.
type Options struct {
	// Sequence is the longest sequence that will be given, for the tables of rotary positions; 0 means the model's
	// context.
	Sequence int
	// Head says where the head's backward runs.
	Head HeadWork
	// Logits is the most memory for logits at once; 0 means 16 MiB.
	Logits unit.Bytes
	// Recompute says what of a block, by its number, is computed again in the backward; nil means nothing.
	Recompute func(block int) Recompute
	// Chunks are the parts of the model that this rank holds; nil means all of it as one.
	Chunks []Stage
	// Bare says which ends of the model are stages of their own, without blocks.
	Bare Ends
	// Experts say how a mixture of experts runs.
	Experts ExpertOptions
	// Storage says which of the flat buffers the model has.
	Storage Storage
}

// Storage says which memory a model has of its own. The rest is lent to it unit by unit, by a [Keeper].
type Storage uint8

// The choices.
const (
	ValuesAndGradients Storage = iota
	ValuesOnly                 // gradients are lent
	NoStorage                  // all is lent
)

// Stage is a run [Lo, Hi) of the model's blocks. The one from block 0 on has the embedding as well, and the one that
// ends with the last block has the final norm and the head; unless an empty stage has ([Options.Bare]).
type Stage struct{ Lo, Hi int }

// Ends are ends of a model: a set.
type Ends uint8

// The ends.
const (
	EmbeddingEnd Ends = 1 << iota
	HeadEnd
)

// has tells whether a stage has the end that lies before or after the given block.
func (e Ends) has(end Ends, s Stage, block int) bool {
	at := s.Lo
	if end == HeadEnd {
		at = s.Hi
	}
	return at == block && (s.Lo == s.Hi || e&end == 0)
}

// Build makes this rank's part of a model: its layers and its flat buffers of values and gradients, which are not
// set; see [Model.Init]. The error lists everything in the description or the layout that carve cannot run.
func Build(r *Rank, c model.Config, o Options) (*Model, error) {
	if o.Sequence == 0 {
		o.Sequence = c.Context
	}
	if o.Logits == 0 {
		o.Logits = 16 * unit.MiB
	}
	if o.Recompute == nil {
		o.Recompute = func(int) Recompute { return KeepAll }
	}
	if o.Chunks == nil {
		o.Chunks = []Stage{{0, c.Layers}}
	}
	if err := check(r, c, o); err != nil {
		return nil, err
	}
	if err := r.Groups.joinTwins(c.KVHeads); err != nil {
		return nil, err
	}
	if r.flights == nil {
		r.flights = &flights{}
	}
	b := &builder{r: r, c: c, o: o, names: namesOf(c), model: &Model{Config: c, longest: o.Sequence}}
	b.build()
	b.allocate()
	return b.model, nil
}

// builder makes the units one after the other; offsets in the flat buffers grow in the order of declaration.
type builder struct {
	r     *Rank
	c     model.Config
	o     Options
	names names
	model *Model
	unit  *Unit
	size  int // elements declared so far

	turn      *rope       // nil for none
	table     *tokenTable // nil before it is declared
	sequences *sequences  // that the blocks share; nil where the context axis has one rank
}

func (b *builder) build() {
	if b.c.Position == model.Rotary {
		b.turn = newRope(b.r, b.c.Rope, b.c.HeadDim, b.o.Sequence)
	}
	if degree(b.r.Groups.Context) > 1 {
		b.sequences = newSequences(b.r)
	}
	b.expertLoads()
	for _, s := range b.o.Chunks {
		b.chunk(s)
	}
}

// chunk declares the units of a stage.
func (b *builder) chunk(s Stage) {
	first := len(b.model.Units)
	c := &Chunk{
		First: b.o.Bare.has(EmbeddingEnd, s, 0), Last: b.o.Bare.has(HeadEnd, s, b.c.Layers), model: b.model,
	}
	if c.First {
		b.embeddingUnits()
	}
	for i := s.Lo; i < s.Hi; i++ {
		b.begin(b.names.block(i))
		b.unit.Block, b.unit.recompute = true, b.o.Recompute(i)
		b.add(b.attention(b.names.block(i), b.turn))
		b.add(b.second(i))
	}
	if c.Last {
		b.headUnits()
	}
	c.Units = slices.Clone(b.model.Units[first:])
	b.model.Chunks = append(b.model.Chunks, c)
}

// begin opens a unit.
func (b *builder) begin(name string) {
	b.unit = &Unit{Name: name, Index: len(b.model.Units), Lo: b.size, Hi: b.size}
	b.model.Units = append(b.model.Units, b.unit)
}

func (b *builder) add(l Layer) { b.unit.Layers = append(b.unit.Layers, l) }

// weight declares adjacent parameters of the open unit.
func (b *builder) weight(params ...*Param) *weight {
	w := &weight{params: params, stale: true}
	for _, p := range params {
		p.Region = p.Spec.Region(b.r.mesh(), b.r.At, p.Shape)
		p.Offset = b.size
		b.size += p.Len()
	}
	b.unit.Params = append(b.unit.Params, params...)
	b.unit.weights = append(b.unit.weights, w)
	b.unit.Hi = b.size
	return w
}

// split says which dim of a parameter the tensor axis shards.
type split uint8

const (
	uncut     split = iota
	byOut           // column-parallel: dim 0
	byIn            // row-parallel: dim 1
	byKeyHead       // column-parallel: dim 0, in whole key-value heads
)

// place puts a parameter on the tensor axis. Where there are fewer key-value heads than ranks, several hold each and
// have other query heads: the gradients of the copies are terms of a sum.
func (b *builder) place(p *Param, s split) *Param {
	switch s {
	case uncut:
	case byOut:
		p.Spec[mesh.TP] = mesh.Shard(0)
	case byIn:
		p.Spec[mesh.TP] = mesh.Shard(1)
	case byKeyHead:
		p.Spec[mesh.TP] = mesh.Shard(0)
		if degree(b.r.Groups.Tensor) > b.c.KVHeads {
			p.Spec[mesh.TP] = mesh.ShardParts(0, b.c.KVHeads)
			p.Terms |= mesh.Of(mesh.TP)
		}
	}
	return p
}

// matrix is a parameter [out in] with normal initial values.
func (b *builder) matrix(name string, kind Kind, out, in int, s split, std float64) *Param {
	return b.place(&Param{
		Name: name + ".weight", Shape: []int{out, in}, Terms: mesh.DenseData, Kind: kind, Decay: true, Init: Init{Std: std},
	}, s)
}

// vector is a parameter [n] with constant initial values: a scale of ones, or a bias of zeros.
func (b *builder) vector(name string, n int, s split, constant float64) *Param {
	return b.place(&Param{
		Name: name, Shape: []int{n}, Terms: mesh.DenseData, Kind: Vector, Init: Init{Constant: constant},
	}, s)
}

// norm declares a norm of rows of n features.
func (b *builder) norm(name string, n int) norm {
	l := norm{eps: b.c.NormEpsilon, scale: b.weight(b.ofRows(b.vector(name+".weight", n, uncut, 1)))}
	if b.c.Norm == model.LayerNorm {
		l.shift = b.weight(b.ofRows(b.vector(name+".bias", n, uncut, 0)))
	}
	return l
}

// ofRows marks a parameter that works on the rows of the residual stream: where those are split over the tensor axis, its
// ranks' gradients are terms of a sum.
func (b *builder) ofRows(p *Param) *Param {
	if b.r.scattered() {
		p.Terms |= mesh.Of(mesh.TP)
	}
	return p
}

// headNorm declares a norm of the query or key heads. Ranks of the tensor axis share it and have different heads, so
// their gradients are terms of a sum.
func (b *builder) headNorm(name string) *norm {
	p := b.vector(name+".weight", b.c.HeadDim, uncut, 1)
	if !b.r.gathered() { // else every rank has all heads
		p.Terms |= mesh.Of(mesh.TP)
	}
	return &norm{eps: b.c.NormEpsilon, scale: b.weight(p)}
}

// part is one of the projections of a fused matrix.
type part struct {
	name string
	out  int
	by   split
}

// linear declares a matrix with adjacent parts.
func (b *builder) linear(in int, std float64, parts ...part) Linear {
	params := make([]*Param, len(parts))
	for i, p := range parts {
		params[i] = b.matrix(p.name, Matrix, p.out, in, p.by, std)
	}
	return Linear{weight: b.weight(params...)}
}

// bias declares the adjacent biases of a matrix; those of one that is split by input features are whole.
func (b *builder) bias(parts ...part) *weight {
	params := make([]*Param, len(parts))
	for i, p := range parts {
		if p.by == byIn {
			p.by = uncut
		}
		params[i] = b.vector(p.name+".bias", p.out, p.by, 0)
	}
	return b.weight(params...)
}

// std is the deviation of initial weights; those that write to the residual stream are scaled by 1/√(2L), so that its
// variance does not grow with depth (Radford et al. 2019).
func (b *builder) std() (inner, residual float64) {
	inner = b.c.InitStd
	if inner == 0 {
		inner = 0.02
	}
	return inner, inner / math.Sqrt(2*float64(b.c.Layers))
}

// allocate makes the flat buffers and every view.
func (b *builder) allocate() {
	m, a, d := b.model, b.r.Arena, b.r.DType
	for _, u := range m.Units {
		u.bind(a, d)
		m.params = append(m.params, u.Params...)
		if len(u.Layers) > 0 {
			u.users++
		}
		for _, used := range u.Uses {
			used.users++
		}
	}
	if b.o.Storage < NoStorage {
		m.Value = a.New(tensor.Parameter, d, b.size)
	}
	if b.o.Storage < ValuesOnly {
		m.Grad = a.New(tensor.Gradient, d, b.size)
	}
	for _, u := range m.Units {
		if m.Value != nil {
			u.AimValue(m.Value, u.Lo)
		}
		if m.Grad != nil {
			u.AimGrad(m.Grad, u.Lo)
		}
	}
}

// names are the modules' names in an architecture's checkpoints, relative to the block where they are in one.
type names struct {
	embedding, positions, norm, head string
	block                            func(i int) string

	attention, attentionNorm string
	query, key, value, out   string
	queryNorm, keyNorm       string
	mlp, mlpNorm             string
	gate, up, down           string
}

func namesOf(c model.Config) names {
	if c.Architecture == model.GPT2 {
		return names{
			embedding: "transformer.wte", positions: "transformer.wpe", norm: "transformer.ln_f", head: "lm_head",
			block:     func(i int) string { return fmt.Sprintf("transformer.h.%d", i) },
			attention: ".attn", attentionNorm: ".ln_1",
			query: ".attn.c_attn.q", key: ".attn.c_attn.k", value: ".attn.c_attn.v", out: ".attn.c_proj",
			mlp: ".mlp", mlpNorm: ".ln_2", up: ".mlp.c_fc", down: ".mlp.c_proj",
		}
	}
	return names{
		embedding: "model.embed_tokens", norm: "model.norm", head: "lm_head",
		block:     func(i int) string { return fmt.Sprintf("model.layers.%d", i) },
		attention: ".self_attn", attentionNorm: ".input_layernorm",
		query: ".self_attn.q_proj", key: ".self_attn.k_proj", value: ".self_attn.v_proj", out: ".self_attn.o_proj",
		queryNorm: ".self_attn.q_norm", keyNorm: ".self_attn.k_norm",
		mlp: ".mlp", mlpNorm: ".post_attention_layernorm",
		gate: ".mlp.gate_proj", up: ".mlp.up_proj", down: ".mlp.down_proj",
	}
}
