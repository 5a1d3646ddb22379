package nn_test

import (
	"slices"
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/model"
	"carve/nn"
	"carve/tensor"

	"github.com/google/go-cmp/cmp"
)

// mixtures are the kinds of models with experts: normalised gates; a gated shared expert and a dense first layer;
// sigmoid scores, a limit on groups, a scale, and every second layer dense.
func mixtures() []family {
	all := []family{
		{"mixtral", mixture(model.Mixtral, func(*model.Config) {})},
		{"qwen2 moe", mixture(model.Qwen2MoE, func(c *model.Config) {
			c.Experts.SharedFFN, c.Experts.SharedGate, c.Experts.FirstDense = 12, true, 1
		})},
		{"deepseek", mixture(model.DeepseekV3, func(c *model.Config) {
			c.Attention, c.Latent = model.Grouped, model.Latent{}
			c.Experts.Groups, c.Experts.GroupsPerToken, c.Experts.SharedFFN = 4, 2, 4
			c.Experts.Every, c.Experts.Scale, c.Dropout.Residual = 2, 2.5, 0.2
		})},
	}
	if racing {
		return all[2:]
	}
	return all
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
		return all[len(all)-3:]
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
		j.compareSplits(t, expertLayouts())
	}
}

// compareSplits holds layouts to one rank, with whole experts on every rank of the tensor axis, and with parts of them.
func (j job) compareSplits(t *testing.T, layouts []layout) {
	t.Helper()
	want := j.run(t, alone())
	for _, l := range layouts {
		for _, j.options.Experts.Tensor = range slices.Compact([]int{1, max(l.degrees[mesh.TP], 1)}) {
			if worst, where := j.run(t, l).distance(want); worst > meshTolerance {
				t.Errorf("%v, %+v, %v, rows in blocks %v: %s differs from one rank by %.1e",
					j.config.Architecture, j.options.Experts, l, l.plant != nil, where, worst)
			}
		}
	}
}

// everyThird is a third of the layouts, another one for each i.
func everyThird(layouts []layout, i int) (some []layout) {
	for k := i % 3; k < len(layouts); k += 3 {
		some = append(some, layouts[k])
	}
	return some
}

// TestExpertsOfUnevenBlocks splits 5 rows over 2 ranks, and then 1, so that ranks and many experts have none.
func TestExpertsOfUnevenBlocks(t *testing.T) {
	l := layout{degrees: mesh.Degrees{mesh.TP: 2, mesh.EP: 2}, dtype: tensor.FP64}
	for _, f := range mixtures() {
		for _, length := range []int{5, 1} {
			j := job{config: f.config, sequences: 2, length: length}
			j.options.Experts = nn.ExpertOptions{Capacity: 1, Balance: nn.ByLoss}
			j.compareSplits(t, []layout{l, inBlocks(l)})
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
	case "pushed twice":
		m.Device.Scale(op.Push, 2)
	}
	m.Device.RouteBackward(op)
}

func (m misrouting) Admit(op tensor.Admit) {
	if m.fault == "earlier rows unknown" {
		m.Device.Fill(op.Before, 0)
	}
	m.Device.Admit(op)
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
	c := mixture(model.Mixtral, func(*model.Config) {})
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
	j := job{config: mixture(model.Mixtral, func(*model.Config) {}), sequences: 4, length: 12}
	j.options.Experts = nn.ExpertOptions{Capacity: 1, LossCoefficient: 0.1}
	want := j.run(t, alone())
	for _, f := range []struct {
		name    string
		degrees mesh.Degrees
		plant   func(r *nn.Rank, e comm.Endpoint)
	}{
		{"rows stay at home", mesh.Degrees{mesh.EP: 2}, func(r *nn.Rank, _ comm.Endpoint) { r.Groups.Expert = nil }},
		{"sent to the other rank", mesh.Degrees{mesh.EP: 2}, func(r *nn.Rank, _ comm.Endpoint) { r.At[mesh.EP] = 1 - r.At[mesh.EP] }},
		{"each for itself under a capacity", mesh.Degrees{mesh.CP: 2}, func(r *nn.Rank, _ comm.Endpoint) {
			r.Dev = misrouting{r.Dev, "earlier rows unknown"}
		}},
		{"auxiliary gradient twice", mesh.Degrees{mesh.TP: 2}, func(r *nn.Rank, _ comm.Endpoint) {
			r.Dev = misrouting{r.Dev, "pushed twice"}
		}},
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

// expertOptions are the ways to balance experts and to limit them, which do not exclude each other.
func expertOptions() []nn.ExpertOptions {
	all := []nn.ExpertOptions{
		{Balance: nn.ByLoss, LossCoefficient: 0.3},
		{Balance: nn.Unbalanced, Capacity: 0.75},
		{Balance: nn.ByLoss, LossCoefficient: 0.3, Capacity: 1},
	}
	if racing {
		return all[2:]
	}
	return all
}

// TestBalancedExpertsEqualOneRank holds auxiliary loss and dropping to one rank, whoever has which part of a sequence.
func TestBalancedExpertsEqualOneRank(t *testing.T) {
	for i, o := range expertOptions() {
		for k, f := range mixtures() {
			j := job{config: f.config, sequences: 8, length: 12, options: nn.Options{Experts: o}}
			j.compareSplits(t, everyThird(expertLayouts(), i+k))
		}
	}
}

// TestBalancedGradient compares gradients with auxiliary loss and dropping with central differences.
func TestBalancedGradient(t *testing.T) {
	for _, o := range expertOptions() {
		for _, f := range mixtures() {
			r := newRank(t, tensor.FP64)
			m := newModel(t, r, f.config, nn.Options{Experts: o})
			b := newBatch(r, f.config.Vocab, 2, 6, 1)
			if worst := compareGradients(r, m, b, picks()); worst > numericTolerance {
				t.Errorf("%s, %+v: worst relative error %.1e exceeds %.0e", f.name, o, worst, numericTolerance)
			}
			if dropped := m.SettleExperts(r)[0].Dropped; (dropped > 0) != (o.Capacity > 0) {
				t.Errorf("%s, %+v: %d choices dropped", f.name, o, dropped)
			}
		}
	}
}

// loads runs steps of forward and backward on a mesh, and returns the loads and biases after each.
func (j job) loads(t *testing.T, l layout, steps int) (loads [][]nn.ExpertLoad, biases []float64) {
	t.Helper()
	var workers []*worker
	err := j.each(t, l, func(w *worker) {
		for range steps {
			gradients(w.r, w.m, w.b)
			var step []nn.ExpertLoad
			for _, load := range w.m.SettleExperts(w.r) {
				load.Chosen = slices.Clone(load.Chosen)
				step = append(step, load)
			}
			if w.r.Mesh.Rank(w.r.At) == w.r.Mesh.World()-1 { // every rank knows the same
				loads = append(loads, step)
			}
		}
		if w.r.Mesh.Rank(w.r.At) == w.r.Mesh.World()-1 {
			for _, p := range states(w.m) {
				biases = append(biases, floats(p.Value)...)
			}
		}
	}, &workers)
	if err != nil {
		t.Fatal(err)
	}
	return loads, biases
}

// TestExpertLoads holds loads and biases of every layout to those of one rank, bit for bit, and wants every choice counted.
func TestExpertLoads(t *testing.T) {
	for i, f := range mixtures() {
		j := job{config: f.config, sequences: 8, length: 12}
		j.options.Experts = nn.ExpertOptions{Balance: nn.ByBias, BiasRate: 0.05, Capacity: 1.1}
		want, biases := j.loads(t, alone(), 3)
		total := int64(0)
		for _, n := range want[0][0].Chosen {
			total += n
		}
		if choices := int64(8 * 12 * f.config.Experts.PerToken); total != choices {
			t.Errorf("%s: %d choices counted, want %d", f.name, total, choices)
		}
		for _, l := range everyThird(expertLayouts(), i) {
			for _, j.options.Experts.Tensor = range slices.Compact([]int{1, max(l.degrees[mesh.TP], 1)}) {
				got, moved := j.loads(t, l, 3)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s, %v: %s", f.name, l, diff)
				}
				if !slices.Equal(moved, biases) {
					t.Errorf("%s, %v: biases %v, want %v", f.name, l, moved, biases)
				}
			}
		}
	}
}

// TestBiasBalances moves biases until the load of a fixed batch is nearly even.
func TestBiasBalances(t *testing.T) {
	j := job{config: mixture(model.Mixtral, func(*model.Config) {}), sequences: 16, length: 16}
	j.options.Experts = nn.ExpertOptions{Balance: nn.ByBias, BiasRate: 0.01}
	loads, _ := j.loads(t, alone(), 60)
	first, last := loads[0][0].Imbalance(), loads[59][0].Imbalance()
	if first < 1.3 || last > 1.15 {
		t.Errorf("imbalance goes from %.2f to %.2f", first, last)
	}
}

func TestImbalance(t *testing.T) {
	l := nn.ExpertLoad{Chosen: []int64{4, 0, 2, 2}}
	if l.Imbalance() != 2 || l.Straggler(2) != 1 || l.Straggler(4) != 2 {
		t.Errorf("imbalance %v, of two ranks %v, of four %v; want 2, 1 and 2", l.Imbalance(), l.Straggler(2), l.Straggler(4))
	}
	if none := (nn.ExpertLoad{Chosen: make([]int64, 3)}); none.Imbalance() != 0 {
		t.Error("an imbalance without a load")
	}
}
