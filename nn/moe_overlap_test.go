package nn_test

import (
	"slices"
	"sync"
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/model"
	"carve/nn"
	"carve/tensor"

	"github.com/google/go-cmp/cmp"
)

// overExperts runs work on two ranks of the expert axis behind slow links and returns how long one took: products and links
// alone move its clock.
func overExperts(t *testing.T, c model.Config, link slowEndpoint, work func(w *worker, e comm.Endpoint)) float64 {
	t.Helper()
	j := job{config: c, sequences: 8, length: 16}
	var clocks [2]fakeClock
	var ends [2]comm.Endpoint
	var workers []*worker
	l := layout{degrees: mesh.Degrees{mesh.EP: 2}, dtype: tensor.FP64, plant: func(r *nn.Rank, e comm.Endpoint) {
		slow := link
		slow.Endpoint, slow.clock = e, &clocks[e.Rank()]
		ends[e.Rank()] = slow
		var err error
		r.Groups, err = nn.JoinGroups(slow, r.Mesh)
		nn.Must(err)
		r.Dev = &slowDevice{r.Dev, slow.clock}
	}}
	if err := j.each(t, l, func(w *worker) { work(w, ends[w.r.At[mesh.EP]]) }, &workers); err != nil {
		t.Fatal(err)
	}
	return float64(clocks[0].Clock()) / 1e9
}

// TestDispatchHidesBehindSharedExperts computes shared experts while rows are on their way. Links that hide nothing are the
// negative control.
func TestDispatchHidesBehindSharedExperts(t *testing.T) {
	c := mixture(model.Qwen2MoE, func(c *model.Config) { c.Experts.SharedFFN = 96 })
	step := func(w *worker, _ comm.Endpoint) { gradients(w.r, w.m, w.b) }
	hidden := overExperts(t, c, slowEndpoint{hidden: true}, step)
	stuck := overExperts(t, c, slowEndpoint{}, step)
	if hidden > 0.95*stuck { // most of either is the head
		t.Errorf("%.3g s with links that work beside the rank, %.3g s with others", hidden, stuck)
	}
}

// pass is a forward of one micro-batch and a backward of another, in this order or at once.
func pass(w *worker, e comm.Endpoint, atOnce bool) {
	before := w.m.Forward(w.r, w.b)
	if !atOnce {
		w.m.Forward(w.r, w.b).Free()
		w.m.Backward(w.r, before, nil)
		return
	}
	second, err := w.r.Groups.Second(w.r.Mesh)
	nn.Must(err)
	back := *w.r
	back.Groups = second
	var done sync.WaitGroup
	done.Go(func() {
		e.Token().Acquire()
		defer e.Token().Release()
		nn.Must(nn.Guard(func() { w.m.Backward(&back, before, nil) }))
	})
	other := *w.b
	w.m.Forward(w.r, &other).Free()
	e.Token().Release()
	done.Wait()
	e.Token().Acquire()
}

// TestDispatchHidesBehindAnotherMicroBatch runs a forward and a backward in two goroutines of a rank, with groups of their own:
// what one waits for hides behind what the other computes, and the gradients are the same. How much depends on who
// happens to wait for whom; the best of some runs counts.
func TestDispatchHidesBehindAnotherMicroBatch(t *testing.T) {
	c := mixture(model.Mixtral, func(*model.Config) {})
	run := func(atOnce bool) (grads []float64, seconds float64) {
		seconds = overExperts(t, c, slowEndpoint{hidden: true, yields: true}, func(w *worker, e comm.Endpoint) {
			w.m.Begin()
			pass(w, e, atOnce)
			if e.Rank() == 0 {
				grads = floats(w.m.Grad)
			}
		})
		return grads, seconds
	}
	want, apart := run(false)
	best := apart
	for range 8 {
		grads, seconds := run(true)
		best = min(best, seconds)
		if !slices.Equal(grads, want) {
			t.Fatal("gradients differ")
		}
	}
	if best > 0.92*apart {
		t.Errorf("%.3g s at once, %.3g s one after the other", best, apart)
	}
}

// TestExpertHotPath wants steps to allocate nothing after warm-up, where the counts repeat, and to leave nothing in the arena.
func TestExpertHotPath(t *testing.T) {
	if racing {
		return
	}
	for _, l := range []layout{
		{degrees: mesh.Degrees{}},
		{degrees: mesh.Degrees{mesh.EP: 4}},
		inBlocks(layout{degrees: mesh.Degrees{mesh.EP: 2, mesh.TP: 2, mesh.CP: 2}}),
	} {
		j := job{config: mixtures()[1].config, sequences: 8, length: 16}
		j.options.Experts = nn.ExpertOptions{Balance: nn.ByLoss, Capacity: 1}
		l.dtype = tensor.BF16
		const runs = 5
		var workers []*worker
		err := j.each(t, l, func(w *worker) {
			step := func() {
				gradients(w.r, w.m, w.b)
				w.m.SettleExperts(w.r)
			}
			for range 4 { // who waits for whom differs from step to step, and with it what is in use at once
				step()
			}
			before := w.r.Arena.Live()
			if w.r.At != (mesh.Coordinates{}) { // AllocsPerRun counts the process: all ranks make the same steps meanwhile
				for range runs + 1 {
					step()
				}
			} else if n := testing.AllocsPerRun(runs, step); n >= 1 {
				t.Errorf("%v: %v allocations a step", l, n)
			}
			if after := w.r.Arena.Live(); after != before {
				t.Errorf("%v: live bytes went from %v to %v", l, before, after)
			}
		}, &workers)
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestExpertsOnMeta holds the peak of memory that the meta device counts to that of a run, to the byte, where every rank has
// all experts: how many rows come from others only a run knows.
func TestExpertsOnMeta(t *testing.T) {
	if racing {
		return
	}
	for _, f := range mixtures() {
		for _, d := range []mesh.Degrees{{}, {mesh.DP: 2}, {mesh.TP: 2}, {mesh.CP: 2}} {
			for _, split := range slices.Compact([]int{1, max(d[mesh.TP], 1)}) {
				j := job{config: f.config, sequences: 4, length: 16}
				j.options.Experts = nn.ExpertOptions{Balance: nn.ByLoss, Tensor: split}
				l := layout{degrees: d, dtype: tensor.BF16}
				for rank, want := range j.peaks(t, l) {
					if diff := cmp.Diff(want, j.record(t, l, rank).peak); diff != "" {
						t.Errorf("%s, %v, %d ranks an expert, rank %d: %s", f.name, l, split, rank, diff)
					}
				}
			}
		}
	}
	j := job{config: mixtures()[0].config, sequences: 4, length: 16}
	j.record(t, layout{degrees: mesh.Degrees{mesh.EP: 2, mesh.TP: 2}, dtype: tensor.BF16}, 3) // runs at least
}
