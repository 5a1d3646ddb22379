package optim_test

import (
	"context"
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/nn"
	"carve/optim"
	"carve/tensor"
	"carve/unit"
)

// inWorld runs f on every rank of a layout, with a worker that has made two steps.
func (j job) inWorld(t *testing.T, l layout, f func(*worker)) {
	t.Helper()
	grid := l.mesh(t)
	world := comm.NewLocal(grid.World(), comm.LocalOptions{})
	err := comm.Run(context.Background(), world.Endpoints(), func(e comm.Endpoint) error {
		return nn.Guard(func() {
			w := j.worker(e, grid, l)
			defer w.close()
			w.step(0)
			w.step(1)
			f(w)
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

// bare is a step without what only the test does.
func (w *worker) bare() {
	w.gradients()
	w.state.Step(1e-3, 1/max(1, w.state.Norm()))
}

// TestStepAllocatesNothing counts the allocations of whole steps: forward, backward, reduction, norm and update, of every
// rank together.
func TestStepAllocatesNothing(t *testing.T) {
	if racing {
		return
	}
	for _, c := range []struct {
		name   string
		layout layout
		change func(j *job)
	}{
		{"one rank", layout{micro: 2}, func(*job) {}},
		{"data parallel", layout{dp: 2, micro: 2}, func(*job) {}},
		{"data parallel, naive", layout{dp: 2, state: optim.Options{Mode: optim.Naive}}, func(*job) {}},
		{"tensor parallel", layout{tp: 2}, func(*job) {}},
		{"sequence parallel, uneven rows", layout{tp: 2, rows: true}, func(j *job) { j.sequences, j.length = 1, 5 }},
		{"sequence parallel in chunks, dropout", layout{tp: 2, rows: true, chunks: 2}, func(j *job) { *j = jobs()["gpt2"] }},
		{"tensor parallel in chunks", layout{tp: 2, chunks: 3}, func(*job) {}},
		{"gathered", layout{tp: 2, kind: nn.TensorGathered}, func(*job) {}},
		{"bf16", layout{dp: 2, dtype: tensor.BF16}, func(*job) {}},
		{"muon", layout{dp: 2}, func(j *job) { j.algorithm = muon() }},
		{"parameter server", layout{dp: 2, state: optim.Options{Mode: optim.Server}}, func(*job) {}},
		{"stage 1", layout{dp: 3, state: optim.Options{Stage: optim.ShardOptimizer}}, func(*job) {}},
		{"stage 2", layout{dp: 2, tp: 2, micro: 2, rows: true, state: optim.Options{Stage: optim.ShardGradients}}, func(*job) {}},
		{"stage 3", layout{dp: 2, micro: 2, state: optim.Options{Stage: optim.ShardParameters, Prefetch: 2}}, func(*job) {}},
		{"hybrid", layout{dp: 4, state: optim.Options{Stage: optim.ShardParameters, Hybrid: 2, Prefetch: 1}}, func(*job) {}},
		{"whole tensors", layout{dp: 2, state: optim.Options{
			Stage: optim.ShardParameters, Ownership: optim.WholeTensor, Reshard: optim.AfterBackward,
		}}, func(*job) {}},
		{"gpt2", layout{dp: 2}, func(j *job) { *j = jobs()["gpt2"] }},
		{"wide enough for the vector kernels", layout{dp: 2}, func(j *job) {
			j.config.Hidden, j.config.HeadDim, j.config.FFN, j.config.Vocab = 128, 64, 176, 300
			j.config.Context, j.length = 96, 96
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			j := newJob()
			c.change(&j)
			// AllocsPerRun counts the process: all ranks make the same number of steps meanwhile.
			const runs = 10
			j.inWorld(t, c.layout, func(w *worker) {
				if w.r.At != (mesh.Coordinates{}) {
					for range runs + 1 { // and its warm-up
						w.bare()
					}
					return
				}
				if n := testing.AllocsPerRun(runs, w.bare); n >= 1 {
					t.Errorf("%v allocations a step", n)
				}
			})
		})
	}
}

// TestStepLeaksNothing wants the arena to hold the same after every step, and its counts to be the sum of the live
// tensors.
func TestStepLeaksNothing(t *testing.T) {
	for name, j := range jobs() {
		t.Run(name, func(t *testing.T) {
			for stage := optim.Replicated; stage <= optim.ShardParameters; stage++ {
				o := optim.Options{Stage: stage, Prefetch: 1, Reshard: optim.Reshard(stage % 2)}
				j.inWorld(t, layout{dp: 2, tp: 2, micro: 2, state: o}, leaksNothing(t))
			}
		})
	}
}

// leaksNothing takes a step and evaluates.
func leaksNothing(t *testing.T) func(*worker) {
	return func(w *worker) {
		before := w.r.Arena.Live()
		w.bare()
		w.m.Evaluate(w.r, w.batches[0])
		if after := w.r.Arena.Live(); after != before {
			t.Errorf("live bytes went from %v to %v", before, after)
		}
		var sum tensor.Usage
		w.r.Arena.Tensors(func(t *tensor.Tensor) { sum[t.Category()] += unit.Bytes(t.Bytes()) })
		if sum != before {
			t.Errorf("live tensors hold %v, the arena counts %v", sum, before)
		}
		if before.Of(tensor.Activation) != 0 {
			t.Errorf("%v of activations are left after a step", before.Of(tensor.Activation))
		}
	}
}

// TestEvaluationLeavesNothing wants no unit's values to be gathered, or to be on their way, once a forward without a backward
// is over: a run may end there.
func TestEvaluationLeavesNothing(t *testing.T) {
	l := layout{dp: 2, state: optim.Options{Stage: optim.ShardParameters, Prefetch: 2}}
	newJob().inWorld(t, l, func(w *worker) {
		before := w.r.Arena.Live()
		w.m.Evaluate(w.r, w.batches[0])
		if after := w.r.Arena.Live(); after != before {
			t.Errorf("live bytes went from %v to %v", before, after)
		}
	})
}
