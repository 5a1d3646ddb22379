package optim_test

import (
	"math"
	"testing"

	"carve/nn"
	"carve/optim"
	"carve/tensor"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// lonely is a rank without neighbours.
func lonely(t *testing.T, d tensor.DType) *nn.Rank {
	a := tensor.NewArena(tensor.ArenaOptions{Poison: true})
	dev := tensor.NewCPU(a, 1)
	t.Cleanup(func() {
		dev.Close()
		a.Close()
	})
	return &nn.Rank{Dev: dev, Arena: a, DType: d, Seed: 1}
}

// alone is a rank and a model without neighbours.
func alone(t *testing.T, d tensor.DType) (*nn.Rank, *nn.Model) {
	r := lonely(t, d)
	m, err := nn.Build(r, newJob().config, nn.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m.Init(r)
	return r, m
}

// stateOf is the state of a model that is alone.
func stateOf(t *testing.T, r *nn.Rank, m *nn.Model, a optim.Algorithm) *optim.State {
	t.Helper()
	s, err := optim.NewState(r, m, optim.Options{Algorithm: a})
	if err != nil {
		t.Fatal(err)
	}
	s.Init()
	return s
}

// algorithms are one of each.
func algorithms() map[string]optim.Algorithm {
	return map[string]optim.Algorithm{"adamw": adamW(), "sgd": sgd(), "muon": muon()}
}

// draw sets all gradients.
func draw(r *nn.Rank, m *nn.Model, step int) {
	r.Dev.Normal(tensor.Normal{T: m.Grad, Key: nn.Key(uint64(step), "gradient"), Std: 0.1, Cols: m.Grad.Len()})
}

// each calls f for every element of the flat buffers, with whether it decays.
func each(m *nn.Model, f func(i int, decay bool)) {
	for _, p := range m.Params() {
		for i := range p.Len() {
			f(p.Offset+i, p.Decay)
		}
	}
}

func TestAdamW(t *testing.T) {
	r, m := alone(t, tensor.FP64)
	o := stateOf(t, r, m, optim.AdamWOptions{Beta1: 0.8, Beta2: 0.9, Epsilon: 1e-3, Decay: 0.1})
	want := values(m.Value)
	first, second := make([]float64, len(want)), make([]float64, len(want))
	const rate, scale = 1e-2, 0.5
	for step := 1; step <= 3; step++ {
		draw(r, m, step)
		grad := values(m.Grad)
		o.Step(rate, scale)
		each(m, func(i int, decay bool) {
			g := grad[i] * scale
			first[i] = 0.8*first[i] + 0.2*g
			second[i] = 0.9*second[i] + 0.1*g*g
			mean, square := first[i]/(1-math.Pow(0.8, float64(step))), second[i]/(1-math.Pow(0.9, float64(step)))
			change := mean / (math.Sqrt(square) + 1e-3)
			if decay {
				change += 0.1 * want[i]
			}
			want[i] -= rate * change
		})
	}
	if diff := cmp.Diff(want, values(m.Value), cmpopts.EquateApprox(1e-12, 1e-14)); diff != "" {
		t.Error(diff)
	}
}

func TestSGD(t *testing.T) {
	r, m := alone(t, tensor.FP64)
	o := stateOf(t, r, m, sgd())
	want := values(m.Value)
	momentum := make([]float64, len(want))
	for step := range 3 {
		draw(r, m, step)
		grad := values(m.Grad)
		o.Step(1e-2, 0.5)
		each(m, func(i int, decay bool) {
			momentum[i] = 0.9*momentum[i] + 0.5*grad[i]
			change := momentum[i]
			if decay {
				change += 0.1 * want[i]
			}
			want[i] -= 1e-2 * change
		})
	}
	if diff := cmp.Diff(want, values(m.Value), cmpopts.EquateApprox(1e-12, 1e-14)); diff != "" {
		t.Error(diff)
	}
}

// TestRestore continues from the exported state of another optimizer, bit for bit.
func TestRestore(t *testing.T) {
	for name, a := range algorithms() {
		for _, d := range []tensor.DType{tensor.FP32, tensor.BF16} {
			t.Run(name+"/"+d.String(), func(t *testing.T) {
				r, m := alone(t, d)
				o := stateOf(t, r, m, a)
				step := func(o *optim.State, m *nn.Model, r *nn.Rank, i int) {
					draw(r, m, i)
					o.Step(1e-2, 0.7)
				}
				step(o, m, r, 0)
				step(o, m, r, 1)

				again, copied := alone(t, d)
				p := stateOf(t, again, copied, a)
				copy(copied.Value.Raw(), m.Value.Raw())
				states := o.States()
				for i, s := range p.States() {
					if s.Param.Name != states[i].Param.Name || s.Kind != states[i].Kind {
						t.Fatalf("state %d is %s %s and %s %s", i, s.Param.Name, s.Kind, states[i].Param.Name, states[i].Kind)
					}
					copy(s.Tensor.Raw(), states[i].Tensor.Raw())
				}
				p.Restore(o.Steps())
				step(o, m, r, 2)
				step(p, copied, again, 2)
				if !cmp.Equal(m.Value.Raw(), copied.Value.Raw()) {
					t.Error("values differ after a step from the restored state")
				}
			})
		}
	}
}

// TestStatesCoverEverything wants each kind of state once for each parameter, in its shape.
func TestStatesCoverEverything(t *testing.T) {
	r, m := alone(t, tensor.BF16)
	seen := map[string]int{}
	for _, s := range stateOf(t, r, m, adamW()).States() {
		seen[s.Param.Name+" "+string(s.Kind)]++
		if diff := cmp.Diff(s.Param.Shape, s.Tensor.Shape()); diff != "" {
			t.Errorf("%s of %s: %s", s.Kind, s.Param.Name, diff)
		}
	}
	for _, p := range m.Params() {
		for _, kind := range []optim.StateKind{optim.Master, optim.First, optim.Second} {
			if n := seen[p.Name+" "+string(kind)]; n != 1 {
				t.Errorf("%d states %s of %s", n, kind, p.Name)
			}
		}
	}
}

// TestMasterKeepsSmallUpdates: updates below half a bf16 step of a parameter are lost without a master copy.
func TestMasterKeepsSmallUpdates(t *testing.T) {
	r, m := alone(t, tensor.BF16)
	p := m.Params()[1] // a norm's scale: ones, between which and the next smaller bf16 number lie 2^-8
	o := stateOf(t, r, m, optim.SGDOptions{})
	const updates, size = 64, 1.0 / 4096
	for range updates {
		r.Dev.Fill(m.Grad, 1)
		o.Step(size, 1)
	}
	if got, want := values(p.Value)[0], 1-updates*size; got != want {
		t.Errorf("after %d updates of %v a one is %v, want %v", updates, size, got, want)
	}
}

// TestLearns overfits one batch with every optimizer: the loss falls from about ln 21 = 3.04, where a model starts
// that knows nothing, to below 0.5.
func TestLearns(t *testing.T) {
	all := algorithms()
	if racing {
		delete(all, "sgd")
		delete(all, "adamw")
	}
	for name, a := range all {
		t.Run(name, func(t *testing.T) {
			j := newJob()
			j.algorithm, j.arena = a, tensor.ArenaOptions{}
			j.inWorld(t, layout{dp: 2}, func(w *worker) {
				for range 150 {
					w.step(0)
				}
				first, last := w.losses[0], w.losses[len(w.losses)-1]
				if math.Abs(first-math.Log(21)) > 0.4 || last > 0.5 {
					t.Errorf("loss went from %.2f to %.2f", first, last)
				}
			})
		})
	}
}

// TestRestoreInAnotherLayout stops a run under one layout, writes what its ranks own into the pieces that the ranks of
// another keep, and goes on: the result is that of a run that was not stopped.
func TestRestoreInAnotherLayout(t *testing.T) {
	from := []layout{
		{dp: 3, state: optim.Options{Stage: optim.ShardParameters}},
		{dp: 2, tp: 2, state: optim.Options{Stage: optim.ShardOptimizer, Ownership: optim.WholeTensor}},
	}
	to := []layout{
		{dp: 2, tp: 2, state: optim.Options{Stage: optim.ShardGradients}},
		{},
		{dp: 4, state: optim.Options{Stage: optim.ShardParameters, Hybrid: 2}},
		{stages: 2, dp: 3, state: optim.Options{Mode: optim.Server}},
	}
	if racing {
		from, to = from[:1], to[:1]
	}
	j := newJob()
	whole := j.run(t, layout{dtype: tensor.FP64})
	j.steps = 2
	for _, a := range from {
		a.dtype = tensor.FP64
		saved := j.run(t, a)
		for _, b := range to {
			b.dtype = tensor.FP64
			again := newJob()
			again.resume = &saved
			got := again.run(t, b)
			for name := range whole.params {
				if worst := distance(whole.params[name], got.params[name]); worst > fp64Tolerance {
					t.Errorf("from %v to %v: %s differs by %.1e", a, b, name, worst)
				}
			}
		}
	}
}
