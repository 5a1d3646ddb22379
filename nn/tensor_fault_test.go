package nn_test

import (
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/model"
	"carve/nn"
	"carve/tensor"
)

// tampered is a carrier with one call of an operation changed.
type tampered struct {
	comm.Carrier
	op     comm.Op
	skip   int // calls of the operation before that
	before func(*comm.Call)
	after  func(*comm.Call)
}

func (c *tampered) Do(call comm.Call) error {
	hit := call.Op == c.op && c.skip == 0
	if call.Op == c.op {
		c.skip--
	}
	if hit && c.before != nil {
		c.before(&call)
	}
	err := c.Carrier.Do(call)
	if hit && c.after != nil {
		c.after(&call)
	}
	return err
}

// TestTensorFaults plants a mistake in the communication of the tensor axis.
func TestTensorFaults(t *testing.T) {
	j := tensorJob()
	j.sequences, j.config.KVHeads = 4, 4 // 28 rows divide by four
	want := j.run(t, alone())
	averaged := func(*nn.Rank, comm.Endpoint) (before, after func(*comm.Call)) {
		return func(c *comm.Call) { c.Reduce = tensor.Avg }, nil
	}
	lost := func(r *nn.Rank, e comm.Endpoint) (before, after func(*comm.Call)) {
		if e.Rank() != 2 {
			return nil, nil
		}
		return nil, func(c *comm.Call) { r.Dev.Fill(c.Dst, 0) }
	}
	kept := func(r *nn.Rank, e comm.Endpoint) (before, after func(*comm.Call)) {
		if e.Rank() != 2 {
			return nil, nil
		}
		return func(c *comm.Call) { r.Dev.Fill(c.Src, 0) }, nil
	}
	for _, f := range []struct {
		name  string
		rows  bool
		kind  nn.TensorKind
		op    comm.Op
		skip  int
		plant func(*nn.Rank, comm.Endpoint) (before, after func(*comm.Call))
	}{
		{"a sum averaged", false, nn.TensorMegatron, comm.AllReduce, 2, averaged},
		{"a sum without one rank's term", false, nn.TensorMegatron, comm.AllReduce, 1, kept},
		{"a sum of input gradients without one rank's term", false, nn.TensorMegatron, comm.AllReduce, 9, kept},
		{"a sum of rows averaged", true, nn.TensorMegatron, comm.ReduceScatter, 2, averaged},
		{"a sum of rows without one rank's term", true, nn.TensorMegatron, comm.ReduceScatter, 0, kept},
		{"gathered rows lost by one rank", true, nn.TensorMegatron, comm.AllGather, 1, lost},
		{"rows gathered for a weight's gradient lost", true, nn.TensorMegatron, comm.AllGather, 7, lost},
		{"gathered features without one rank's", false, nn.TensorGathered, comm.AllGather, 1, kept},
		{"gathered features lost in the backward", false, nn.TensorGathered, comm.AllGather, 5, lost},
		{"gathered rows without one rank's", true, nn.TensorMegatron, comm.AllGather, 2, kept},
	} {
		if racing && f.skip > 1 {
			continue
		}
		l := tensorLayout{tp: 4, rows: f.rows, kind: f.kind}.layout(func(r *nn.Rank, e comm.Endpoint) {
			before, after := f.plant(r, e)
			g := r.Groups.Tensor
			r.Groups.Tensor = g.With(&tampered{g.Carrier(), f.op, f.skip, before, after})
		})
		if worst, where := j.run(t, l).distance(want); worst < 1e6*meshTolerance {
			t.Errorf("%s: not caught: %s differs by %.1e", f.name, where, worst)
		}
	}
}

// TestTermsOfRows takes one rank's gradient of a norm's scale for the whole one, as if the axis did not split rows.
func TestTermsOfRows(t *testing.T) {
	j := tensorJob()
	want := j.run(t, alone())
	var workers []*worker
	got := outcome{loss: want.loss, grads: map[string][]float64{}}
	err := j.each(t, tensorLayout{tp: 2, rows: true}.layout(nil), func(w *worker) {
		gradients(w.r, w.m, w.b)
		for _, p := range w.m.Params() {
			w.grads = append(w.grads, floats(p.Grad))
			if p.Kind == nn.Vector {
				p.Terms &^= mesh.Of(mesh.TP)
			}
		}
	}, &workers)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range workers {
		w.collect(got.grads)
	}
	if worst, where := got.distance(want); worst < 1e6*meshTolerance {
		t.Errorf("not caught: %s differs by %.1e", where, worst)
	}
}

// TestTwinsHoldTheSamePart wants ranks with the same key-value head to start from the same numbers, other ranks from others,
// and each head to be that of the rank's query heads.
func TestTwinsHoldTheSamePart(t *testing.T) {
	j := tensorJob()
	j.config = change(j.config, func(c *model.Config) { c.Layers = 1 })
	var workers []*worker
	rows := make([]mesh.Range, 8)
	first := make([]float64, 8)
	members := make([]int, 8)
	err := j.each(t, tensorLayout{tp: 8}.layout(nil), func(w *worker) {
		i := w.r.At[mesh.TP]
		for _, p := range w.m.Params() {
			if p.Name == "model.layers.0.self_attn.k_proj.weight" {
				rows[i], first[i], members[i] = p.Region[0], p.Value.F64()[0], w.r.Groups.Shared(p).Size()
			}
		}
	}, &workers)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		head := i / 4 // eight query heads to two key-value heads, one query head a rank
		if want := (mesh.Range{Start: 4 * head, Stop: 4 * (head + 1)}); rows[i] != want || members[i] != 4 {
			t.Errorf("rank %d has rows %v with %d ranks, want %v with 4", i, rows[i], members[i], want)
		}
		if (first[i] == first[0]) != (head == 0) {
			t.Errorf("rank %d begins with %v, rank 0 with %v", i, first[i], first[0])
		}
	}
}
