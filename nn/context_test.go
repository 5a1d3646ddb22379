package nn_test

import (
	"sync/atomic"
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/model"
	"carve/nn"
	"carve/tensor"
)

// contextJob is a model with grouped heads, four of them to two, so that they split over every axis of two.
func contextJob() job {
	c := change(llama(), func(c *model.Config) {
		c.Architecture, c.QKNorm = model.Qwen3, model.HeadQKNorm
		c.Heads, c.KVHeads, c.Vocab = 8, 4, 20
	})
	return job{config: c, options: nn.Options{Sequence: 48}, sequences: 2, length: 24}
}

// halves packs two or three documents in a sequence, the cuts within pieces and, for sequence 1, at one.
func halves(s int) []int { return [][]int{{0, 7}, {3, 12, 13}}[s%2] }

// short makes every few tokens a document, so that most blocks of the axis have nothing to see in one another.
func short(int) []int { return []int{3, 6, 9, 12, 15, 18, 21} }

func contexts(cp, tp, dp int, c nn.Context) layout {
	return layout{degrees: mesh.Degrees{mesh.CP: cp, mesh.TP: tp, mesh.DP: dp}, context: c, dtype: tensor.FP64}
}

func ring(b mesh.Balance) nn.Context { return nn.Context{Kind: nn.ContextRing, Balance: b} }

// TestContextEqualsOneRank is the proof of the context axis: every kind and balance, alone and with the tensor and data
// axes, with and without documents, for every family.
func TestContextEqualsOneRank(t *testing.T) {
	j := contextJob()
	layouts := []layout{
		contexts(2, 2, 2, ring(mesh.Zigzag)),
		contexts(2, 1, 1, ring(mesh.Zigzag)),
		contexts(4, 1, 1, ring(mesh.Zigzag)),
		contexts(3, 1, 1, ring(mesh.Contiguous)),
		contexts(2, 4, 1, ring(mesh.Contiguous)),
	}
	if racing {
		layouts = layouts[:1]
	}
	for _, docs := range []documents{nil, halves, short} {
		j.documents = docs
		for _, l := range layouts {
			j.compareWithOne(t, l)
		}
	}
}

func TestContextFamilies(t *testing.T) {
	for _, f := range families() {
		j := job{config: f.config, sequences: 3, length: 8, documents: halves}
		j.config.Context = 8
		j.compareWithOne(t, contexts(2, 1, 1, ring(mesh.Zigzag)))
	}
}

// TestContextRepeats wants the same bits from two runs in fp32.
func TestContextRepeats(t *testing.T) {
	j, l := contextJob(), contexts(4, 1, 1, ring(mesh.Zigzag))
	l.dtype = tensor.FP32
	if worst, where := j.run(t, l).distance(j.run(t, l)); worst != 0 {
		t.Errorf("%s differs by %.1e between two runs", where, worst)
	}
}

// misrouted is a carrier that swaps two messages of a rank: what it received as the first is used as the second.
type misrouted struct {
	comm.Carrier
	held *tensor.Tensor
}

func (m *misrouted) Start(c comm.Call) comm.Work {
	if c.Op == comm.Send && m.held == nil { // the second step sends the first step's block again
		m.held = c.Src
	} else if c.Op == comm.Send && c.Src.Len() == m.held.Len() && c.Src.DType() == m.held.DType() {
		c.Src = m.held
	}
	return m.Carrier.Start(c)
}

// forgetful is a device that leaves out one block of the forward, or of the backward.
type forgetful struct {
	tensor.Device
	skip int // call that merges, counted down
	back bool
}

func (f *forgetful) Attention(op tensor.Attention) {
	if op.Merge && !f.back {
		if f.skip--; f.skip == 0 {
			return
		}
	}
	f.Device.Attention(op)
}

func (f *forgetful) AttentionBackward(op tensor.AttentionBackward) {
	if op.Accumulate && f.back {
		if f.skip--; f.skip == 0 {
			return
		}
	}
	f.Device.AttentionBackward(op)
}

// TestContextFaults plants mistakes on one rank and wants the comparison with one rank to see them.
func TestContextFaults(t *testing.T) {
	j := contextJob()
	want := j.run(t, alone())
	for _, f := range []struct {
		name  string
		plant func(*nn.Rank)
	}{
		{"a swapped step of the ring", func(r *nn.Rank) {
			r.Groups.Context = r.Groups.Context.With(&misrouted{Carrier: r.Groups.Context.Carrier()})
		}},
		{"a lost block", func(r *nn.Rank) { r.Dev = &forgetful{Device: r.Dev, skip: 1} }},
		{"a lost block of the backward", func(r *nn.Rank) { r.Dev = &forgetful{Device: r.Dev, skip: 2, back: true} }},
	} {
		l := contexts(4, 1, 1, ring(mesh.Zigzag))
		l.plant = func(r *nn.Rank, e comm.Endpoint) {
			if e.Rank() == 2 {
				f.plant(r)
			}
		}
		if worst, where := j.run(t, l).distance(want); worst < 1e6*meshTolerance {
			t.Errorf("%s: not caught: %s differs by %.1e", f.name, where, worst)
		}
	}
}

// counting is a device that counts calls of attention.
type counting struct {
	tensor.Device
	calls *atomic.Int64
}

func (c *counting) Attention(op tensor.Attention) {
	c.calls.Add(1)
	c.Device.Attention(op)
}

// TestContextSkips wants no work for blocks that the mask hides: under contiguous balance the rank at i sees i+1 of them, and
// with documents within the pieces only its own.
func TestContextSkips(t *testing.T) {
	for _, c := range []struct {
		name      string
		balance   mesh.Balance
		documents documents
		want      int64
	}{
		{"contiguous", mesh.Contiguous, nil, 1 + 2 + 3 + 4},
		{"zigzag", mesh.Zigzag, nil, 4 * 4},
		{"documents within the pieces", mesh.Zigzag, short, 4},
		{"documents across pieces", mesh.Contiguous, func(int) []int { return []int{5, 7} }, 4 + 4},
	} {
		j := contextJob()
		j.documents = c.documents
		l := contexts(4, 1, 1, ring(c.balance))
		var calls atomic.Int64
		l.plant = func(r *nn.Rank, _ comm.Endpoint) { r.Dev = &counting{r.Dev, &calls} }
		j.run(t, l)
		if got := calls.Load() / int64(j.config.Layers); got != c.want {
			t.Errorf("%s: %d blocks a layer, want %d", c.name, got, c.want)
		}
	}
}
