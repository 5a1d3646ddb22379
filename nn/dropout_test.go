package nn_test

import (
	"math"
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/model"
	"carve/nn"
	"carve/tensor"
)

// dropoutJob is GPT-2 with all three kinds of dropout, at rates that leave nothing to chance.
func dropoutJob() job {
	c := change(gpt2(), func(c *model.Config) {
		c.Heads, c.KVHeads, c.Context = 4, 2, 16
		c.Dropout = model.Dropout{Embedding: 0.1, Attention: 0.3, Residual: 0.2}
	})
	return job{config: c, options: nn.Options{Sequence: 12}, sequences: 4, length: 12, documents: halves}
}

// TestDropoutDoesNotDependOnTheLayout holds every axis, and batches cut in micro-batches, to one rank with the same
// masks.
func TestDropoutDoesNotDependOnTheLayout(t *testing.T) {
	j := dropoutJob()
	want := j.run(t, alone())
	for _, l := range []tensorLayout{
		{dp: 2}, {tp: 2}, {tp: 2, rows: true}, {tp: 4, rows: true, chunks: 2}, {cp: 2}, {cp: 3}, {dp: 2, tp: 2, cp: 2, rows: true},
	} {
		for _, kind := range []nn.ContextKind{nn.ContextRing, nn.ContextAllGather, nn.ContextAllToAll} {
			if l.cp != 2 && kind != nn.ContextRing || l.tp > 1 && kind == nn.ContextAllToAll || racing && l.dp*l.cp != 4 {
				continue
			}
			here := l.layout(nil)
			here.context.Kind = kind
			if l.cp == 3 {
				here.context.Balance = mesh.Contiguous
			}
			if worst, where := j.run(t, here).distance(want); worst > meshTolerance {
				t.Errorf("%v %v: %s differs by %.1e", l, kind, where, worst)
			}
		}
	}
	for _, kind := range []nn.Recompute{nn.Selective, nn.FullBlock} {
		j.options.Recompute = only(kind)
		if worst, where := j.run(t, tensorLayout{tp: 2, rows: true}.layout(nil)).distance(want); worst > meshTolerance {
			t.Errorf("recompute %v: %s differs by %.1e", kind, where, worst)
		}
	}
	j.config.Dropout = model.Dropout{}
	if worst, where := j.run(t, alone()).distance(want); worst < 1e6*meshTolerance {
		t.Errorf("without dropout %s differs by %.1e only", where, worst)
	}
}

// TestDropoutFaults plants masks that depend on the layout.
func TestDropoutFaults(t *testing.T) {
	j := dropoutJob()
	want := j.run(t, alone())
	for name, f := range map[string]*misplaced{
		"a mask by local samples":     {sample: true},
		"a mask by local rows":        {row: true},
		"a mask by local heads":       {head: true},
		"no mask in the backward":     {once: true},
		"another mask in attention's": {again: true},
	} {
		l := tensorLayout{dp: 2, tp: 2, rows: true}.layout(func(r *nn.Rank, _ comm.Endpoint) {
			here := *f
			here.Device = r.Dev
			r.Dev = &here
		})
		if worst, where := j.run(t, l).distance(want); worst < 1e6*meshTolerance {
			t.Errorf("%s: not caught: %s differs by %.1e", name, where, worst)
		}
	}
}

// misplaced is a device that takes a rank's numbers for the whole batch's, or forgets what it dropped.
type misplaced struct {
	tensor.Device
	sample, row, head, once, again bool
}

func (d *misplaced) Dropout(op tensor.Dropout) {
	if d.sample {
		op.Rows.Sample = 0
	}
	if d.row {
		op.Rows.First = 0
	}
	if d.once && op.Residual == nil && op.Y != op.X {
		op.Rate = 0
	}
	d.Device.Dropout(op)
}

func (d *misplaced) Attention(op tensor.Attention) {
	if d.head {
		op.Dropout.Head = 0
	}
	d.Device.Attention(op)
}

func (d *misplaced) AttentionBackward(op tensor.AttentionBackward) {
	if d.again {
		op.Forward.Dropout.Key++
	}
	if d.head {
		op.Forward.Dropout.Head = 0
	}
	d.Device.AttentionBackward(op)
}

// TestDropoutGradient compares with central differences of the loss in training, under the same masks.
func TestDropoutGradient(t *testing.T) {
	j := dropoutJob()
	r := newRank(t, tensor.FP64)
	m := newModel(t, r, j.config, nn.Options{Head: nn.Split}) // a forward alone leaves the gradients alone
	b := newBatch(r, j.config.Vocab, 2, 6, 1)
	b.Step, b.Sample = 5, 2
	train := func() float64 {
		m.Forward(r, b).Free()
		return b.Loss * b.Scale
	}
	gradients(r, m, b)
	for _, p := range m.Params() {
		grad, size := floats(p.Grad), 0.0
		for _, g := range grad {
			size = max(size, math.Abs(g))
		}
		for _, i := range sample(p.Name, len(grad), picks()) {
			numeric := slope(&p.Value.F64()[i], train)
			if e := math.Abs(numeric-grad[i]) / max(size, 1e-3); e > numericTolerance {
				t.Errorf("%s[%d]: %v, central difference %v", p.Name, i, grad[i], numeric)
			}
		}
	}
}

// TestDropoutStreams wants other losses for another step, seed and sample, the same for the same, and none in evaluation.
func TestDropoutStreams(t *testing.T) {
	j := dropoutJob()
	run := func(seed uint64, step, sample int, mode nn.Mode, d model.Dropout) float64 {
		r := newRank(t, tensor.FP64)
		c := j.config
		c.Dropout = d
		m := newModel(t, r, c, nn.Options{})
		r.Seed = seed
		other, err := nn.Build(r, c, nn.Options{}) // the weights of one seed and the masks of another
		if err != nil {
			t.Fatal(err)
		}
		copy(other.Value.F64(), m.Value.F64())
		b := newBatch(r, c.Vocab, 2, 6, 1)
		b.Step, b.Sample = step, sample
		if mode == nn.Evaluate {
			other.Evaluate(r, b)
		} else {
			other.Forward(r, b).Free()
		}
		return b.Loss
	}
	d := j.config.Dropout
	one := run(7, 1, 0, nn.Train, d)
	if again := run(7, 1, 0, nn.Train, d); again != one {
		t.Errorf("the same stream gives %v and %v", one, again)
	}
	for name, got := range map[string]float64{
		"another seed": run(8, 1, 0, nn.Train, d), "another step": run(7, 2, 0, nn.Train, d), "another sample": run(7, 1, 1, nn.Train, d),
		"evaluation": run(7, 1, 0, nn.Evaluate, d),
	} {
		if got == one {
			t.Errorf("%s gives the same loss", name)
		}
	}
	if got, want := run(7, 1, 0, nn.Evaluate, d), run(7, 1, 0, nn.Train, model.Dropout{}); got != want {
		t.Errorf("evaluation drops: loss %v, want %v", got, want)
	}
}
