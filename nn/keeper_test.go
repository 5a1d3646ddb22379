package nn_test

import (
	"fmt"
	"strings"
	"testing"

	"carve/nn"
	"carve/tensor"

	"github.com/google/go-cmp/cmp"
)

// lender keeps a model's values and sums of gradients apart, lends fresh memory for every phase, and notes the phases.
type lender struct {
	r              *nn.Rank
	values, sums   *tensor.Tensor
	lent, lentGrad map[*nn.Unit]*tensor.Tensor
	notes          []string
}

func newLender(r *nn.Rank, size int) *lender {
	return &lender{
		r: r, values: r.Arena.New(tensor.Workspace, r.DType, size), sums: r.Arena.NewZero(tensor.Workspace, r.DType, size),
		lent: map[*nn.Unit]*tensor.Tensor{}, lentGrad: map[*nn.Unit]*tensor.Tensor{},
	}
}

func (l *lender) Enter(u *nn.Unit, p nn.Phase) {
	l.notes = append(l.notes, fmt.Sprintf("%s: %v", u.Name, p))
	l.each(u, p, func(u *nn.Unit) {
		if p.Values() || p == nn.Fill {
			t := l.r.Arena.New(tensor.Workspace, l.r.DType, u.Hi-u.Lo)
			copy(t.Raw(), l.values.Slice(u.Lo, u.Hi).Raw())
			l.lent[u] = t
			u.AimValue(t, 0)
		}
		if p.Gradients() && l.lentGrad[u] == nil {
			l.lentGrad[u] = l.r.Arena.New(tensor.Workspace, l.r.DType, u.Hi-u.Lo)
			u.AimGrad(l.lentGrad[u], 0)
		}
	})
}

func (l *lender) Leave(u *nn.Unit, p nn.Phase) {
	l.each(u, p, func(u *nn.Unit) {
		if p == nn.Fill {
			copy(l.values.Slice(u.Lo, u.Hi).Raw(), l.lent[u].Raw())
		}
		if p.Values() || p == nn.Fill {
			u.AimValue(nil, 0)
			l.lent[u].Free()
		}
		if p.Gradients() && p != nn.BackwardInput {
			if u.Settle(l.r) {
				l.r.Dev.Add(l.sums.Slice(u.Lo, u.Hi), l.lentGrad[u])
			}
			u.AimGrad(nil, 0)
			l.lentGrad[u].Free()
			delete(l.lentGrad, u)
		}
	})
}

// each calls f for a unit and what it uses.
func (l *lender) each(u *nn.Unit, p nn.Phase, f func(*nn.Unit)) {
	f(u)
	for _, used := range u.Uses {
		if p != nn.Fill {
			f(used)
		}
	}
}

// TestLentMemory holds a model that has no memory of its own to one that has. What was lent is poisoned when it is back.
func TestLentMemory(t *testing.T) {
	for _, f := range families() {
		for _, c := range []struct {
			name   string
			chunks []nn.Stage
			head   nn.HeadWork
			run    run
		}{
			{"whole", nil, nn.Fused, wholly},
			{"two stages", []nn.Stage{{Lo: 0, Hi: 1}, {Lo: 1, Hi: 2}}, nn.Fused, staged},
			{"weights later", []nn.Stage{{Lo: 0, Hi: 1}, {Lo: 1, Hi: 2}}, nn.Split, split},
		} {
			own := newRank(t, tensor.FP64)
			n := newModel(t, own, f.config, nn.Options{Chunks: c.chunks, Head: c.head})
			c.run(own, n, []*nn.Batch{newBatch(own, f.config.Vocab, 2, 7, 1), newBatch(own, f.config.Vocab, 2, 7, 2)})

			r := newRank(t, tensor.FP64)
			m, err := nn.Build(r, f.config, nn.Options{Storage: nn.NoStorage, Chunks: c.chunks, Head: c.head})
			if err != nil {
				t.Fatal(err)
			}
			l := newLender(r, n.Value.Len())
			r.Keeper = l
			copy(l.values.Raw(), n.Value.Raw())
			for i, p := range states(m) {
				copy(p.Value.Raw(), states(n)[i].Value.Raw())
			}
			c.run(r, m, []*nn.Batch{newBatch(r, f.config.Vocab, 2, 7, 1), newBatch(r, f.config.Vocab, 2, 7, 2)})
			if d := difference(floats(n.Grad), floats(l.sums)); d > 1e-13 {
				t.Errorf("%s, %s: gradients differ by %g", f.name, c.name, d)
			}
		}
	}
}

// TestPhases shows what a keeper is told of a micro-batch of a tied model of one block.
func TestPhases(t *testing.T) {
	c := llama()
	c.Layers, c.TieEmbeddings = 1, true
	for _, k := range []struct {
		name string
		head nn.HeadWork
		run  run
		want string
	}{
		{"fused head", nn.Fused, wholly, `
model.embed_tokens: forward
model.layers.0: forward
lm_head: forward and backward
model.layers.0: backward
model.embed_tokens: backward`},
		{"weights later", nn.Split, split, `
model.embed_tokens: forward
model.layers.0: forward
lm_head: forward
lm_head: backward of the input
model.layers.0: backward of the input
model.embed_tokens: backward of the input
lm_head: backward of the weights
model.layers.0: backward of the weights
model.embed_tokens: backward of the weights`},
	} {
		r := newRank(t, tensor.FP64)
		m, err := nn.Build(r, c, nn.Options{Storage: nn.NoStorage, Head: k.head})
		if err != nil {
			t.Fatal(err)
		}
		l := newLender(r, m.Units[len(m.Units)-1].Hi)
		r.Keeper = l
		m.Init(r)
		l.notes = nil
		k.run(r, m, []*nn.Batch{newBatch(r, c.Vocab, 1, 4, 1)})
		if diff := cmp.Diff(strings.TrimSpace(k.want), strings.Join(l.notes, "\n")); diff != "" {
			t.Errorf("%s:\n%s", k.name, diff)
		}
	}
}
