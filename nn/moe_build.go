package nn

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"carve/mesh"
	"carve/model"
	"carve/tensor"
)

// ExpertOptions say how a mixture of experts runs. Zero values choose defaults.
type ExpertOptions struct {
	// Tensor is the number of ranks of the tensor axis that share each expert, split like a dense feed-forward: 1 (or 0), where
	// every one of them has whole experts and a share of the rows, or the axis' degree.
	Tensor int
	// Balance is what keeps the experts evenly loaded.
	Balance ExpertBalance
	// LossCoefficient is that of the auxiliary loss where Balance asks for it; 0 means the description's, or 0.01 where that
	// has none.
	LossCoefficient float64
	// BiasRate is how much a bias moves in a step; 0 means 0.001 for sigmoid scores, as DeepSeek-V3, and 5 % of the mean
	// for softmax scores, 0.05/E.
	BiasRate float64
	// Capacity limits the choices that an expert takes of each sequence, relative to an even share; 0 means no limit.
	Capacity float64
}

// ExpertBalance is what keeps experts evenly loaded.
type ExpertBalance uint8

// The choices.
const (
	AsDescribed ExpertBalance = iota // as the model's description says
	Unbalanced
	ByLoss // an auxiliary loss
	ByBias // a bias that is moved after every step
)

// balance is the choice for a description.
func (o ExpertOptions) balance(e model.Experts) ExpertBalance {
	if o.Balance != AsDescribed {
		return o.Balance
	}
	switch e.Balance {
	case model.NoBalance:
	case model.LossBalance:
		return ByLoss
	case model.BiasBalance:
		return ByBias
	}
	return Unbalanced
}

// split tells how the tensor axis shares the experts' work.
func (o ExpertOptions) split(tp int) rowShare {
	if tp > 1 && o.Tensor == tp {
		return allRows
	}
	return ownRows
}

// checkExperts lists what does not fit the mesh.
func checkExperts(r *Rank, e model.Experts, o ExpertOptions) (faults []error) {
	ep, tp := r.mesh().Degree(mesh.EP), r.mesh().Degree(mesh.TP)
	if e.Count == 0 {
		if ep > 1 {
			faults = append(faults, fmt.Errorf("nn: expert degree %d for a model without experts; use 1", ep))
		}
		return faults
	}
	if r.gathered() {
		faults = append(faults, errors.New("nn: the gathered tensor axis does not run experts; use megatron"))
	}
	if e.Count%ep != 0 {
		faults = append(faults, fmt.Errorf("nn: expert degree %d does not divide %d experts; use a divisor", ep, e.Count))
	}
	if o.Tensor > 1 && o.Tensor != tp {
		faults = append(faults, fmt.Errorf("nn: experts split %d ways under tensor degree %d; use %s", o.Tensor, tp, oneOr(tp)))
	}
	if o.Tensor > 1 && e.FFN%o.Tensor != 0 {
		faults = append(faults, fmt.Errorf("nn: %d ranks do not divide %d features of an expert; use 1", o.Tensor, e.FFN))
	}
	if e.SharedFFN%tp != 0 {
		faults = append(faults, fmt.Errorf("nn: tensor degree %d does not divide %d features of shared experts; use a divisor", tp, e.SharedFFN))
	}
	return faults
}

// second declares the second branch of a block.
func (b *builder) second(layer int) Layer {
	if b.c.HasExperts(layer) {
		return b.moe(layer)
	}
	return b.feedForward(b.names.block(layer))
}

// moe declares the second branch of a block with experts, those of this rank last.
func (b *builder) moe(layer int) *MoE {
	block, c, n, e := b.names.block(layer), b.c, b.names.experts(b.c), b.c.Experts
	at := block + n.module
	l := &MoE{name: at, norm: b.norm(block+b.names.mlpNorm, c.Hidden), rows: b.model.rows, drop: b.dropout(at, c.Dropout.Residual)}
	l.router = Router{weight: b.terms(at+".gate", e.Count), gating: gatingOf(e)}
	b.balance(l, at)
	if e.SharedFFN > 0 {
		l.shared = b.shared(at, n)
	}
	l.experts = b.experts(at, n, l.rows)
	l.index = slices.IndexFunc(b.model.loads, func(x ExpertLoad) bool { return x.Layer == at })
	b.model.mixing = append(b.model.mixing, l)
	return l
}

// expertLoads makes the list of all layers with experts.
func (b *builder) expertLoads() {
	b.model.rows = b.o.Experts.split(degree(b.r.Groups.Tensor))
	for i := range b.c.Layers {
		if b.c.HasExperts(i) {
			at := b.names.block(i) + b.names.experts(b.c).module
			b.model.loads = append(b.model.loads, ExpertLoad{Layer: at, Chosen: make([]int64, b.c.Experts.Count)})
		}
	}
}

// balance declares what keeps the experts of a layer evenly loaded.
func (b *builder) balance(l *MoE, at string) {
	e, o := b.c.Experts, b.o.Experts
	l.chosen, l.capacity = make([]int64, e.Count), o.Capacity
	switch o.balance(e) {
	case AsDescribed, Unbalanced:
	case ByLoss:
		l.auxiliary.coefficient = cmp.Or(o.LossCoefficient, e.LossCoefficient, 0.01)
	case ByBias:
		l.rate = cmp.Or(o.BiasRate, biasRate(e))
		l.router.bias = b.state(at+".gate.e_score_correction_bias", e.Count)
	}
}

// biasRate suits the size of the scores.
func biasRate(e model.Experts) float64 {
	switch e.Score {
	case model.SoftmaxScore:
		return 0.05 / float64(e.Count)
	case model.SigmoidScore:
	}
	return 0.001
}

// state declares a tensor [n] of full precision that starts as zeros and is no parameter of the open unit.
func (b *builder) state(name string, n int) *Param {
	p := &Param{Name: name, Shape: []int{n}, Kind: Vector}
	p.Region = p.Spec.Region(b.r.mesh(), b.r.At, p.Shape)
	p.Value = b.r.Arena.New(tensor.Parameter, wide(b.r.DType), n)
	b.unit.States = append(b.unit.States, p)
	return p
}

// gatingOf is the description's way of choosing experts.
func gatingOf(e model.Experts) tensor.Gating {
	g := tensor.Gating{
		PerToken: e.PerToken, Groups: e.Groups, GroupsPerToken: e.GroupsPerToken, GroupTop: 1,
		Normalise: e.Normalise, Scale: e.Scale,
	}
	if e.Scale == 0 {
		g.Scale = 1
	}
	if e.Balance == model.BiasBalance {
		g.GroupTop = 2
	}
	switch e.Score {
	case model.SoftmaxScore:
		g.Score = tensor.Softmax
	case model.SigmoidScore:
		g.Score = tensor.Sigmoid
	}
	return g
}

// terms declares a matrix [out H] that is whole on every rank, where the ranks of the tensor axis have terms of the
// gradient: they route other rows, or have other features of what a gate multiplies.
func (b *builder) terms(name string, out int) *weight {
	std, _ := b.std()
	p := b.matrix(name, Matrix, out, b.c.Hidden, uncut, std)
	p.Terms |= mesh.Of(mesh.TP)
	return b.weight(p)
}

// shared declares the shared experts.
func (b *builder) shared(at string, n expertNames) *sharedExperts {
	std, residual := b.std()
	l := &sharedExperts{act: b.activation()}
	at += n.shared
	l.up.Linear = b.linear(b.c.Hidden, std, b.upParts(at, n, b.c.Experts.SharedFFN, byOut)...)
	l.down.Linear = b.linear(b.c.Experts.SharedFFN, residual, part{at + n.down, b.c.Hidden, byIn})
	if b.c.Experts.SharedGate {
		l.gate = &Router{
			weight: b.terms(at+"_gate", 1),
			gating: tensor.Gating{Score: tensor.Sigmoid, PerToken: 1, Scale: 1},
		}
	}
	return l
}

// experts declares this rank's experts.
func (b *builder) experts(at string, n expertNames, rows rowShare) experts {
	m := b.r.mesh()
	ep, place := m.Degree(mesh.EP), b.r.At[mesh.EP]
	l := experts{act: b.activation()}
	mine := mesh.Split(b.c.Experts.Count, ep, place)
	for i := mine.Start; i < mine.Stop; i++ {
		l.each = append(l.each, b.expert(fmt.Sprintf("%s.experts.%d", at, i), n, rows))
	}
	l.features = l.each[0].down.weight.params[0].Region[1].Len()
	return l
}

// expert declares one expert.
func (b *builder) expert(at string, n expertNames, rows rowShare) expert {
	std, residual := b.std()
	out, in := byOut, byIn
	if rows == ownRows {
		out, in = uncut, uncut
	}
	features := b.c.Experts.FFN
	return expert{
		up:   b.expertLinear(rows, b.c.Hidden, std, b.upParts(at, n, features, out)...),
		down: b.expertLinear(rows, features, residual, part{at + n.down, b.c.Hidden, in}),
	}
}

// expertLinear declares a matrix of an expert of this rank. It lies on one coordinate of the expert axis. Its gradient has terms
// on the ranks that replicate it, also on those of the tensor axis where these route other rows.
func (b *builder) expertLinear(rows rowShare, in int, std float64, parts ...part) Linear {
	params := make([]*Param, len(parts))
	for i, p := range parts {
		params[i] = b.matrix(p.name, Matrix, p.out, in, p.by, std)
		params[i].Spec[mesh.EP] = mesh.Only(b.r.At[mesh.EP])
		params[i].Terms = mesh.ExpertData
		if rows == ownRows {
			params[i].Terms |= mesh.Of(mesh.TP)
		}
	}
	return Linear{weight: b.weight(params...)}
}

// upParts are the parts of an expert's first matrix.
func (b *builder) upParts(at string, n expertNames, features int, by split) []part {
	if b.c.Activation == model.SwiGLU {
		return []part{{at + n.gate, features, by}, {at + n.up, features, by}}
	}
	return []part{{at + n.up, features, by}}
}

func (b *builder) activation() activation {
	if b.c.Activation == model.SwiGLU {
		return swiGLU
	}
	return gelu
}

// expertNames are the modules' names in an architecture's checkpoints, relative to the block or to the module.
type expertNames struct{ module, gate, up, down, shared string }

func (names) experts(c model.Config) expertNames {
	n := expertNames{module: ".mlp", gate: ".gate_proj", up: ".up_proj", down: ".down_proj", shared: ".shared_experts"}
	switch c.Architecture {
	case model.Mixtral:
		n.module, n.gate, n.up, n.down = ".block_sparse_moe", ".w1", ".w3", ".w2"
	case model.Qwen2MoE:
		n.shared = ".shared_expert"
	default:
	}
	return n
}

// oneOr is "1", or "1 or n" where that is another number.
func oneOr(n int) string {
	if n == 1 {
		return "1"
	}
	return fmt.Sprintf("1 or %d", n)
}
