package nn_test

import (
	"slices"
	"testing"

	"carve/model"
	"carve/nn"
	"carve/tensor"
)

// run is one way to take micro-batches through a model.
type run func(r *nn.Rank, m *nn.Model, batches []*nn.Batch)

// wholly runs the model as one chunk.
func wholly(r *nn.Rank, m *nn.Model, batches []*nn.Batch) {
	m.Begin()
	for i, b := range batches {
		m.Backward(r, m.Forward(r, b), readyAt(i, len(batches)))
	}
}

// staged runs chunk after chunk, all forwards before all backwards.
func staged(r *nn.Rank, m *nn.Model, batches []*nn.Batch) {
	each(r, m, batches, func(c *nn.Chunk, dy *tensor.Tensor, p *nn.Pass, ready nn.Ready) *tensor.Tensor {
		return c.Backward(r, dy, p, ready)
	})
}

// split runs input gradients and weight gradients apart.
func split(r *nn.Rank, m *nn.Model, batches []*nn.Batch) {
	var later []func()
	each(r, m, batches, func(c *nn.Chunk, dy *tensor.Tensor, p *nn.Pass, ready nn.Ready) *tensor.Tensor {
		later = append(later, func() { c.BackwardWeight(r, p, ready) })
		return c.BackwardInput(r, dy, p)
	})
	for _, f := range later {
		f()
	}
}

func each(r *nn.Rank, m *nn.Model, batches []*nn.Batch,
	backward func(*nn.Chunk, *tensor.Tensor, *nn.Pass, nn.Ready) *tensor.Tensor,
) {
	m.Begin()
	passes := make([][]*nn.Pass, len(batches))
	for i, b := range batches {
		var x *tensor.Tensor
		for _, c := range m.Chunks {
			var p *nn.Pass
			x, p = c.Forward(r, b, x)
			passes[i] = append(passes[i], p)
		}
	}
	for i := range batches {
		var dy *tensor.Tensor
		for j, c := range slices.Backward(m.Chunks) {
			dy = backward(c, dy, passes[i][j], readyAt(i, len(batches)))
		}
	}
}

// readyAt is a listener for the last micro-batch.
func readyAt(i, n int) nn.Ready {
	if i < n-1 {
		return nil
	}
	return everything{}
}

// TestChunks holds that a model cut into stages computes what the whole one does, and gives all memory back.
func TestChunks(t *testing.T) {
	for _, f := range families() {
		f.config.Layers = 3
		for _, c := range []struct {
			name      string
			chunks    []nn.Stage
			head      nn.HeadWork
			run       run
			recompute func(int) nn.Recompute
			offload   bool
		}{
			{"two stages", []nn.Stage{{0, 2}, {2, 3}}, nn.Fused, staged, nil, false},
			{"one block each", []nn.Stage{{0, 1}, {1, 2}, {2, 3}}, nn.Fused, staged, nil, false},
			{"selective", nil, nn.Fused, wholly, only(nn.Selective), false},
			{"full", nil, nn.Fused, wholly, only(nn.FullBlock), false},
			{"full in stages, weights later", []nn.Stage{{0, 1}, {1, 3}}, nn.Split, split, only(nn.FullBlock), false},
			{"every second", nil, nn.Fused, wholly, func(i int) nn.Recompute { return []nn.Recompute{nn.FullBlock, nn.KeepAll}[i%2] }, false},
			{"offloaded", nil, nn.Fused, wholly, nil, true},
			{"recomputed and offloaded", nil, nn.Fused, wholly, only(nn.FullBlock), true},
			{"weights later", []nn.Stage{{0, 1}, {1, 3}}, nn.Split, split, nil, false},
		} {
			want, wantLoss, _ := gradientsOf(t, f.config, nn.Options{}, wholly, nil)
			var host *nn.Host
			if c.offload {
				host = newHost(t)
			}
			got, gotLoss, live := gradientsOf(t, f.config, nn.Options{Chunks: c.chunks, Head: c.head, Recompute: c.recompute}, c.run, host)
			if gotLoss != wantLoss {
				t.Errorf("%s, %s: loss %v, want %v", f.name, c.name, gotLoss, wantLoss)
			}
			for name, w := range want {
				if d := difference(w, got[name]); d > 1e-13 {
					t.Errorf("%s, %s: %s differs by %g", f.name, c.name, name, d)
				}
			}
			if c.offload && (host.Out == 0 || host.Out != host.In || host.Arena.Live().Total() != 0) {
				t.Errorf("%s, %s: %d bytes went to the host and %d came back", f.name, c.name, host.Out, host.In)
			}
			if live != 0 {
				t.Errorf("%s, %s: %d bytes of activations are left", f.name, c.name, live)
			}
		}
	}
}

// TestReadyOnce holds that every unit is ready once, and a tied table not before the head has added to it.
func TestReadyOnce(t *testing.T) {
	r := newRank(t, tensor.FP64)
	c := change(llama(), func(c *model.Config) { c.TieEmbeddings = true })
	m := newModel(t, r, c, nn.Options{Chunks: []nn.Stage{{1, 2}, {0, 1}}}) // the head's chunk is declared first
	b := newBatch(r, c.Vocab, 1, 8, 3)
	m.Begin()
	x, first := m.Chunks[1].Forward(r, b, nil)
	_, last := m.Chunks[0].Forward(r, b, x)
	var seen order
	m.Chunks[1].Backward(r, m.Chunks[0].Backward(r, nil, last, &seen), first, &seen)
	names := make([]string, len(seen))
	for i, u := range seen {
		names[i] = m.Units[u].Name
	}
	want := []string{"lm_head", "model.layers.1", "model.layers.0", "model.embed_tokens", "model.embed_tokens"} // table, layer
	if !slices.Equal(names, want) {
		t.Errorf("ready in order %q, want %q", names, want)
	}
}

// order notes the units that became ready.
type order []int

func (o *order) Ready(unit int) { *o = append(*o, unit) }

// gradientsOf runs three micro-batches and returns the gradients by name, the loss, and the bytes of activations that are
// still held.
func gradientsOf(t *testing.T, c model.Config, o nn.Options, f run, host *nn.Host) (grads map[string][]float64, loss float64, live int) {
	t.Helper()
	r := newRank(t, tensor.FP64)
	r.Host = host
	m := newModel(t, r, c, o)
	var batches []*nn.Batch
	for i := range 3 {
		batches = append(batches, newBatch(r, c.Vocab, 2, 7, uint64(40+i)))
	}
	f(r, m, batches)
	grads = map[string][]float64{}
	for _, p := range m.Params() {
		grads[p.Name] = floats(p.Grad)
	}
	for _, b := range batches {
		loss += b.Loss
	}
	return grads, loss, int(r.Arena.Live().Of(tensor.Activation))
}

// only is one kind for every block.
func only(k nn.Recompute) func(int) nn.Recompute { return func(int) nn.Recompute { return k } }

func newHost(t *testing.T) *nn.Host {
	a := tensor.NewArena(tensor.ArenaOptions{Poison: true})
	t.Cleanup(a.Close)
	return &nn.Host{Arena: a}
}

// TestRecomputeSaves holds what of a micro-batch waits for the backward to the closed form, in elements per token.
func TestRecomputeSaves(t *testing.T) {
	c := change(llama(), func(c *model.Config) { c.Layers = 4 })
	h, q, kv, f := c.Hidden, c.Heads*c.HeadDim, c.KVHeads*c.HeadDim, c.FFN
	for _, tc := range []struct {
		kind nn.Recompute
		want int // of a block
	}{
		{nn.KeepAll, 2*h + 2*q + 2*kv + 2*f + 2 + c.Heads}, // statistics of two norms, and the log-sum-exps
		{nn.Selective, 2*h + q + 2*kv + 2*f + 2},
		{nn.FullBlock, h},
	} {
		r := newRank(t, tensor.FP64)
		m := newModel(t, r, c, nn.Options{Recompute: only(tc.kind)})
		b := newBatch(r, c.Vocab, 2, 8, 5)
		p := m.Forward(r, b)
		got := int(r.Arena.Live().Of(tensor.Activation)) / 8 / 16
		if want := c.Layers*tc.want + h; got != want { // the head's
			t.Errorf("%v: %d elements per token are kept, want %d", tc.kind, got, want)
		}
		p.Free()
	}
}

// difference is the largest absolute difference, relative to the largest number.
func difference(want, got []float64) float64 {
	if len(want) != len(got) {
		return 1
	}
	largest, diff := 1e-300, 0.0
	for i, w := range want {
		largest = max(largest, w, -w)
		diff = max(diff, w-got[i], got[i]-w)
	}
	return diff / largest
}
