package nn_test

import (
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/model"
	"carve/nn"
	"carve/tensor"
)

// mixtures are the kinds of models with experts: normalised gates; a gated shared expert and a dense first layer;
// sigmoid scores, a limit on groups, a scale, and every second layer dense.
func mixtures() []family {
	return []family{
		{"mixtral", mixture(model.Mixtral, func(*model.Config) {})},
		{"qwen2 moe", mixture(model.Qwen2MoE, func(c *model.Config) {
			c.Experts.SharedFFN, c.Experts.SharedGate, c.Experts.FirstDense = 12, true, 1
		})},
		{"deepseek", mixture(model.DeepseekV3, func(c *model.Config) {
			c.Attention, c.Latent = model.Grouped, model.Latent{}
			c.Experts.Groups, c.Experts.GroupsPerToken, c.Experts.SharedFFN = 4, 2, 4
			c.Experts.Every, c.Experts.Scale = 2, 2.5
		})},
	}
}

func mixture(a model.Architecture, f func(*model.Config)) model.Config {
	c := model.New(a)
	c.Layers, c.Hidden, c.Heads, c.KVHeads, c.HeadDim = 2, 16, 4, 2, 4
	c.FFN, c.Vocab, c.Context, c.InitStd = 24, 19, 32, 0.3
	c.Experts.Count, c.Experts.PerToken, c.Experts.FFN = 8, 3, 8
	f(&c)
	return c
}

// expertLayouts split the experts alone, and with every other axis.
func expertLayouts() []layout {
	one := func(d mesh.Degrees) layout { return layout{degrees: d, dtype: tensor.FP64} }
	all := []layout{
		one(mesh.Degrees{mesh.EP: 2}),
		one(mesh.Degrees{mesh.EP: 4}),
		one(mesh.Degrees{mesh.EP: 8}),
		one(mesh.Degrees{mesh.DP: 2, mesh.EP: 2}),
		one(mesh.Degrees{mesh.TP: 2}),
		one(mesh.Degrees{mesh.TP: 2, mesh.EP: 2}),
		one(mesh.Degrees{mesh.DP: 2, mesh.TP: 2, mesh.EP: 2}),
		one(mesh.Degrees{mesh.CP: 2, mesh.EP: 2}),
		one(mesh.Degrees{mesh.TP: 2, mesh.CP: 2, mesh.EP: 2}),
		inBlocks(one(mesh.Degrees{mesh.TP: 2, mesh.EP: 2})),
		inBlocks(one(mesh.Degrees{mesh.TP: 4, mesh.CP: 2, mesh.EP: 2})),
	}
	if racing {
		return all[len(all)-2:]
	}
	return all
}

// inBlocks is a layout with sequence parallelism.
func inBlocks(l layout) layout {
	l.plant = func(r *nn.Rank, _ comm.Endpoint) { r.SequenceParallel = true }
	return l
}

func TestExpertsEqualOneRank(t *testing.T) {
	for _, f := range mixtures() {
		j := job{config: f.config, sequences: 8, length: 12}
		want := j.run(t, alone())
		for _, l := range expertLayouts() {
			for _, j.options.Experts.Tensor = range []int{1, max(l.degrees[mesh.TP], 1)} {
				if worst, where := j.run(t, l).distance(want); worst > meshTolerance {
					t.Errorf("%s, %v, rows in blocks %v, %d ranks an expert: %s differs from one rank by %.1e", f.name, l, l.plant != nil, j.options.Experts.Tensor, where, worst)
				}
			}
		}
	}
}

// TestExpertsOfUnevenBlocks splits 5 rows over 2 ranks.
func TestExpertsOfUnevenBlocks(t *testing.T) {
	for _, f := range mixtures() {
		j := job{config: f.config, sequences: 2, length: 5}
		want := j.run(t, alone())
		for _, j.options.Experts.Tensor = range []int{1, 2} {
			got := j.run(t, inBlocks(layout{degrees: mesh.Degrees{mesh.TP: 2, mesh.EP: 2}, dtype: tensor.FP64}))
			if worst, where := got.distance(want); worst > meshTolerance {
				t.Errorf("%s, %d ranks an expert: %s differs from one rank by %.1e", f.name, j.options.Experts.Tensor, where, worst)
			}
		}
	}
}

// expertFaults are mistakes that a mixture of experts can make, by what a device does wrong.
func expertFaults() []string {
	all := []string{
		"gates swapped", "gates not in the gradient", "gates normalised in the forward only",
		"a choice lost", "sent back to the wrong rows",
	}
	if racing {
		return all[:1]
	}
	return all
}

// misrouting is a device that makes one mistake with experts.
type misrouting struct {
	tensor.Device
	fault string
}

func (m misrouting) Route(op tensor.Route) {
	m.Device.Route(op)
	if gate := op.Gate.F64(); m.fault == "gates swapped" {
		gate[0], gate[1] = gate[1], gate[0]
	}
}

func (m misrouting) RouteBackward(op tensor.RouteBackward) {
	switch m.fault {
	case "gates not in the gradient":
		m.Device.Fill(op.Pull, 0)
	case "gates normalised in the forward only":
		op.Normalise = false
	}
	m.Device.RouteBackward(op)
}

func (m misrouting) Deal(op tensor.Deal) {
	m.Device.Deal(op)
	if m.fault == "a choice lost" {
		op.Sorted.F64()[2] = 0
	}
}

func (m misrouting) EmbedBackward(dtable, dy, ids *tensor.Tensor, start int) {
	wrong := ids.I32()
	if m.fault == "sent back to the wrong rows" && dtable.Rows() < dy.Rows() {
		last := len(wrong) - 1
		wrong[0], wrong[last] = wrong[last], wrong[0]
		defer func() { wrong[0], wrong[last] = wrong[last], wrong[0] }()
	}
	m.Device.EmbedBackward(dtable, dy, ids, start)
}

// TestExpertFaults plants every fault and wants the gradient check or the reference to see it.
func TestExpertFaults(t *testing.T) {
	c := mixtures()[0].config
	for _, fault := range expertFaults() {
		t.Run(fault, func(t *testing.T) {
			r := newRank(t, tensor.FP64)
			m := newModel(t, r, c, nn.Options{})
			b := newBatch(r, c.Vocab, 4, 6, 1)
			want := newReference(m).loss(b)
			r.Dev = misrouting{r.Dev, fault}
			m.Evaluate(r, b)
			worst := compareGradients(r, m, b, 1)
			if worst < 1e3*numericTolerance && abs(want-b.Loss) < 1e-6 {
				t.Errorf("not caught: gradients differ by %.1e, losses by %.1e", worst, abs(want-b.Loss))
			}
		})
	}
}

// TestExpertMeshFaults plants mistakes in the groups of a layout and wants the comparison with one rank to see them.
func TestExpertMeshFaults(t *testing.T) {
	j := job{config: mixtures()[0].config, sequences: 4, length: 4, options: nn.Options{}}
	want := j.run(t, alone())
	for _, f := range []struct {
		name    string
		degrees mesh.Degrees
		plant   func(r *nn.Rank, e comm.Endpoint)
	}{
		{"rows stay at home", mesh.Degrees{mesh.EP: 2}, func(r *nn.Rank, _ comm.Endpoint) { r.Groups.Expert = nil }},
		{"sent to the other rank", mesh.Degrees{mesh.EP: 2}, func(r *nn.Rank, _ comm.Endpoint) { r.At[mesh.EP] = 1 - r.At[mesh.EP] }},
		{"terms of the tensor axis lost", mesh.Degrees{mesh.TP: 2}, func(r *nn.Rank, e comm.Endpoint) {
			if e.Rank() == 1 {
				r.Dev = misrouting{r.Dev, "gates not in the gradient"}
			}
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			got, err := j.try(t, layout{degrees: f.degrees, dtype: tensor.FP64, plant: f.plant})
			if err != nil {
				return // caught even earlier
			}
			if worst, _ := got.distance(want); worst < 1e3*meshTolerance {
				t.Errorf("not caught: differs by %.1e", worst)
			}
		})
	}
}
