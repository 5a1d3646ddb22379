package nn

import (
	"errors"
	"fmt"
	"math"

	"carve/mesh"
	"carve/model"
)

// embeddingUnits declares the token table, the position table where positions are learned, and the layer that reads
// them.
func (b *builder) embeddingUnits() {
	l := &Embedding{name: b.names.embedding, drop: b.dropout(b.names.embedding, b.c.Dropout.Embedding)}
	var uses []*Unit
	if b.c.Position == model.Learned {
		std, _ := b.std()
		b.begin(b.names.positions)
		l.positions = b.weight(b.ofRows(b.matrix(b.names.positions, Table, b.c.Context, b.c.Hidden, uncut, std)))
		uses = append(uses, b.unit)
	}
	if b.table == nil {
		b.tokenTable()
	} else { // this rank has it for the head of another chunk
		b.begin(b.names.embedding)
		uses = append(uses, b.table.unit)
	}
	b.unit.Uses = uses
	l.tokens, l.start = b.table.weight, b.table.start
	b.add(l)
}

// tokenTable is the unit of the token embeddings.
type tokenTable struct {
	unit   *Unit
	weight *weight
	start  int // first token of this rank's part
}

// tokenTable declares the token table. It has a unit of its own on every rank that holds it, so that the ranks
// that share it under a tied head lay it out alike.
func (b *builder) tokenTable() {
	std, _ := b.std()
	b.begin(b.names.embedding)
	b.unit.Tied = b.c.TieEmbeddings
	p := b.matrix(b.names.embedding, Table, b.c.Vocab, b.c.Hidden, byOut, std)
	b.table = &tokenTable{unit: b.unit, weight: b.weight(p), start: p.Region[0].Start}
}

// attention declares the first branch of a block.
func (b *builder) attention(block string, turn *rope) *Attention {
	c, n := b.c, b.names
	inner, residual := b.std()
	tp := b.r.features()
	l := &Attention{
		name: block + n.attention, rope: turn,
		heads: c.Heads / tp, keyHeads: max(c.KVHeads/tp, 1), width: c.HeadDim,
		scale: 1 / math.Sqrt(float64(c.HeadDim)), sequences: b.sequences,
		selective: b.unit.recompute == Selective,
	}
	if tp > 1 {
		l.first = position(b.r.Groups.Tensor) * l.heads
	}
	if c.QueryScale != 0 {
		l.scale = 1 / math.Sqrt(c.QueryScale)
	}
	l.norm = b.norm(block+n.attentionNorm, c.Hidden)
	qkv := []part{
		{block + n.query, c.QuerySize(), byOut},
		{block + n.key, c.KVSize(), byKeyHead},
		{block + n.value, c.KVSize(), byKeyHead},
	}
	l.qkv.Linear = b.linear(c.Hidden, inner, qkv...)
	if c.Bias.QKV {
		l.qkv.bias = b.bias(qkv...)
	}
	if c.QKNorm == model.HeadQKNorm {
		l.qNorm, l.kNorm = b.headNorm(block+n.queryNorm), b.headNorm(block+n.keyNorm)
	}
	out := part{block + n.out, c.Hidden, byIn}
	l.out.Linear = b.linear(c.QuerySize(), residual, out)
	l.out.drop, l.drop = b.dropout(out.name, c.Dropout.Residual), b.dropout(l.name, c.Dropout.Attention)
	if c.Bias.Output {
		l.out.bias = b.bias(out)
	}
	return l
}

// feedForward declares the second branch of a block.
func (b *builder) feedForward(block string) *FeedForward {
	c, n := b.c, b.names
	inner, residual := b.std()
	l := &FeedForward{name: block + n.mlp, norm: b.norm(block+n.mlpNorm, c.Hidden), act: gelu}
	up := []part{{block + n.up, c.FFN, byOut}}
	if c.Activation == model.SwiGLU {
		l.act, up = swiGLU, []part{{block + n.gate, c.FFN, byOut}, {block + n.up, c.FFN, byOut}}
	}
	l.up.Linear = b.linear(c.Hidden, inner, up...)
	if c.Bias.MLP {
		l.up.bias = b.bias(up...)
	}
	down := part{block + n.down, c.Hidden, byIn}
	l.down.Linear = b.linear(c.FFN, residual, down)
	l.down.drop = b.dropout(down.name, c.Dropout.Residual)
	if c.Bias.MLP {
		l.down.bias = b.bias(down)
	}
	return l
}

// headUnits declares the final norm and the projection, which under a tied head is the token table: that of this
// rank's embedding, or, on another stage, a copy of it.
func (b *builder) headUnits() {
	if b.c.TieEmbeddings && b.table == nil {
		b.tokenTable()
	}
	b.begin(b.names.head)
	b.add(b.head())
}

// head declares the last layer in the open unit.
func (b *builder) head() *Head {
	l := &Head{name: b.names.head, norm: b.norm(b.names.norm, b.c.Hidden), work: b.o.Head, chunk: int(b.o.Logits)}
	if b.c.TieEmbeddings {
		l.start, l.linear.weight = b.table.start, b.table.weight
		b.unit.Uses = append(b.unit.Uses, b.table.unit)
		return l
	}
	std, _ := b.std()
	p := b.matrix(b.names.head, HeadTable, b.c.Vocab, b.c.Hidden, byOut, std)
	l.linear.weight = b.weight(p)
	l.start = p.Region[0].Start
	return l
}

// check returns everything in a description or a layout that the layers cannot run.
func check(r *Rank, c model.Config, o Options) error {
	var faults []error
	for _, g := range Gaps(c) {
		faults = append(faults, fmt.Errorf("nn: %s cannot be run; %s", g.What, g.Remedy))
	}
	return errors.Join(append(faults, checkLayout(r, c, o)...)...)
}

// Gap is a part of a description that no layer implements, with what to have in its place.
type Gap struct{ What, Remedy string }

// Gaps lists the parts of a description that no layer implements, whatever the layout.
func Gaps(c model.Config) (gaps []Gap) {
	refuse := func(bad bool, what, remedy string) {
		if bad {
			gaps = append(gaps, Gap{what, remedy})
		}
	}
	refuse(c.Attention == model.LatentKV, "multi-head latent attention", "use attention grouped")
	refuse(c.Experts.Count > 0 && c.Bias.MLP, "a bias in experts", "use none")
	refuse(c.MTP > 0, "multi-token prediction", "set it to 0")
	refuse(c.Norm != model.RMSNorm && c.Norm != model.LayerNorm, "norm "+c.Norm.String(), "use rms or layer")
	refuse(c.NormPlacement != model.PreNorm, "norm placement "+c.NormPlacement.String(), "use pre")
	refuse(c.QKNorm == model.FullQKNorm, "a norm over all query heads", "use none or head")
	refuse(c.QKNorm == model.HeadQKNorm && c.Norm != model.RMSNorm, "a layer norm of heads", "use norm rms or no norm of heads")
	refuse(c.Activation != model.SwiGLU && c.Activation != model.GELUTanh, "activation "+c.Activation.String(), "use swiglu or gelu-tanh")
	refuse(c.Position == model.Rotary && c.Rope.Fraction != 1, "rotation of a part of the head", "use fraction 1")
	refuse(c.Position == model.Rotary && c.HeadDim%2 != 0, fmt.Sprintf("rotation of heads of odd size %d", c.HeadDim), "use an even size")
	refuse(c.Window.Size > 0, "a sliding window", "use full attention")
	refuse(c.EmbeddingScale != 0 && c.EmbeddingScale != 1, "an embedding scale", "use 1")
	refuse(c.AttentionSoftcap != 0 || c.LogitSoftcap != 0, "soft-capped scores", "set the caps to 0")
	refuse(c.ClipQKV != 0, "clipping of query, key and value", "set it to 0")
	return gaps
}

// checkLayout lists what does not fit the mesh or the options.
func checkLayout(r *Rank, c model.Config, o Options) (faults []error) {
	m := r.mesh()
	tp := m.Degree(mesh.TP)
	divides := func(n int, what string) {
		if n%tp != 0 {
			faults = append(faults, fmt.Errorf("nn: tensor degree %d does not divide %d %s; use a divisor", tp, n, what))
		}
	}
	divides(c.Heads, "heads")
	if tp%c.KVHeads != 0 { // else several ranks hold each
		divides(c.KVHeads, "key-value heads")
	}
	divides(c.FFN, "feed-forward features")
	faults = append(faults, checkGathered(r.TensorKind, tp, c)...)
	faults = append(faults, checkContext(r, c, o)...)
	faults = append(faults, checkExperts(r, c.Experts, o.Experts)...)
	if c.Position == model.Learned && o.Sequence > c.Context {
		faults = append(faults, fmt.Errorf("nn: sequence %d exceeds the %d learned positions; use at most %d", o.Sequence, c.Context, c.Context))
	}
	if o.Logits < 1 || o.Sequence < 1 {
		faults = append(faults, fmt.Errorf("nn: sequences of %d and logits of %v; use positive sizes", o.Sequence, o.Logits))
	}
	return faults
}

// mesh is the rank's mesh; the zero value means one rank.
func (r *Rank) mesh() mesh.Mesh {
	if r.Mesh != (mesh.Mesh{}) {
		return r.Mesh
	}
	m, err := mesh.New(mesh.Degrees{}, mesh.DefaultOrder())
	Must(err)
	return m
}
