package nn_test

import (
	"errors"
	"math"
	"sync/atomic"
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/model"
	"carve/nn"
	"carve/tensor"
	"carve/unit"
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

func gather(b mesh.Balance) nn.Context { return nn.Context{Kind: nn.ContextAllGather, Balance: b} }

func swap(b mesh.Balance) nn.Context { return nn.Context{Kind: nn.ContextAllToAll, Balance: b} }

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
		contexts(2, 2, 1, gather(mesh.Zigzag)),
		contexts(4, 1, 2, gather(mesh.Contiguous)),
		contexts(2, 2, 2, swap(mesh.Zigzag)),
		contexts(4, 1, 1, swap(mesh.Contiguous)),
		contexts(4, 2, 1, swap(mesh.Zigzag)), // two copies of a key-value head
	}
	if racing {
		layouts = []layout{layouts[0], layouts[5], layouts[7]}
	}
	for i, docs := range []documents{halves, nil, short} {
		j.documents = docs
		if racing && i > 0 {
			break
		}
		for _, l := range layouts {
			j.compareWithOne(t, l)
		}
	}
}

// TestContextRecompute runs every kind where attention or whole blocks are computed again in the backward.
func TestContextRecompute(t *testing.T) {
	if racing {
		return
	}
	j := contextJob()
	j.documents = halves
	for _, kind := range []nn.Recompute{nn.Selective, nn.FullBlock} {
		j.options.Recompute = func(int) nn.Recompute { return kind }
		for _, norm := range []model.QKNorm{model.NoQKNorm, model.HeadQKNorm} {
			j.config.QKNorm = norm
			for _, c := range []nn.Context{ring(mesh.Contiguous), gather(mesh.Zigzag), swap(mesh.Zigzag)} {
				j.compareWithOne(t, contexts(2, 1, 1, c))
			}
		}
	}
}

func TestContextFamilies(t *testing.T) {
	for _, f := range families() {
		j := job{config: f.config, sequences: 3, length: 8, documents: halves}
		j.config.Context = 8
		j.compareWithOne(t, contexts(2, 1, 1, ring(mesh.Zigzag)))
		if f.config.Heads%2 == 0 {
			j.compareWithOne(t, contexts(2, 1, 1, swap(mesh.Zigzag)))
		}
	}
}

// TestContextRepeats wants the same bits from two runs in fp32, and the same loss from ring and all-gather, which merge in
// the same order.
func TestContextRepeats(t *testing.T) {
	j := contextJob()
	if racing {
		j.config.Layers, j.sequences = 1, 1
	}
	losses := map[nn.ContextKind]float64{}
	for _, c := range []nn.Context{ring(mesh.Zigzag), gather(mesh.Zigzag), swap(mesh.Zigzag)} {
		l := contexts(4, 1, 1, c)
		l.dtype = tensor.FP32
		one := j.run(t, l)
		losses[c.Kind] = one.loss
		if worst, where := one.distance(j.run(t, l)); worst != 0 {
			t.Errorf("%v: %s differs by %.1e between two runs", l, where, worst)
		}
	}
	if losses[nn.ContextRing] != losses[nn.ContextAllGather] {
		t.Errorf("losses %v", losses)
	}
}

// TestContextPrecisions holds every kind in fp32 and bf16 to one rank in fp32, by the distance of a tensor over its size.
func TestContextPrecisions(t *testing.T) {
	if racing {
		return
	}
	j := contextJob()
	base := alone()
	base.dtype = tensor.FP32
	want := j.run(t, base)
	for _, c := range []nn.Context{ring(mesh.Zigzag), gather(mesh.Zigzag), swap(mesh.Zigzag)} {
		for dtype, tolerance := range map[tensor.DType]float64{tensor.FP32: 1e-5, tensor.BF16: 0.1} {
			l := contexts(4, 1, 1, c)
			l.dtype = dtype
			for name, got := range j.run(t, l).grads {
				if e := relative(want.grads[name], got); e > tolerance {
					t.Errorf("%v in %v: gradient of %s: relative error %.1e, tolerance %.0e", l, dtype, name, e, tolerance)
				}
			}
		}
	}
}

// misrouted is a carrier that sends a rank's first block again in the second step, and so on.
type misrouted struct {
	comm.Carrier
	r    *nn.Rank
	last *tensor.Tensor // copy of the message before
}

func (m *misrouted) Start(c comm.Call) comm.Work {
	if c.Op == comm.Send {
		sent := clone(m.r, c.Src)
		if m.last != nil && m.last.Len() == sent.Len() {
			c.Src = m.last
		}
		m.last = sent
	}
	return m.Carrier.Start(c)
}

// crossed is a carrier that puts what came from the first two ranks of an exchange in each other's place.
type crossed struct{ comm.Carrier }

func (x *crossed) Do(c comm.Call) error {
	err := x.Carrier.Do(c)
	if c.Op == comm.AllToAll {
		all := c.Dst.F64()
		n := len(all) / 4
		for i := range n {
			all[i], all[n+i] = all[n+i], all[i]
		}
	}
	return err
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
		name    string
		context nn.Context
		plant   func(*nn.Rank)
	}{
		{"a swapped step of the ring", ring(mesh.Zigzag), func(r *nn.Rank) {
			r.Groups.Context = r.Groups.Context.With(&misrouted{Carrier: r.Groups.Context.Carrier(), r: r})
		}},
		{"a lost block", ring(mesh.Contiguous), func(r *nn.Rank) { r.Dev = &forgetful{Device: r.Dev, skip: 1} }},
		{"a lost block of the backward", ring(mesh.Zigzag), func(r *nn.Rank) { r.Dev = &forgetful{Device: r.Dev, skip: 2, back: true} }},
		{"a lost block of what was gathered", gather(mesh.Zigzag), func(r *nn.Rank) { r.Dev = &forgetful{Device: r.Dev, skip: 1} }},
		{"blocks of an exchange in each other's place", swap(mesh.Zigzag), func(r *nn.Rank) {
			r.Groups.Context = r.Groups.Context.With(&crossed{r.Groups.Context.Carrier()})
		}},
	} {
		l := contexts(4, 1, 1, f.context)
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

// TestContextHotPath wants steps of every kind to allocate nothing after warm-up, and to leave nothing in the arena.
func TestContextHotPath(t *testing.T) {
	if racing {
		return
	}
	for _, l := range []layout{
		contexts(4, 1, 1, ring(mesh.Zigzag)), contexts(2, 2, 1, gather(mesh.Contiguous)),
		contexts(2, 1, 1, swap(mesh.Zigzag)), contexts(4, 2, 1, swap(mesh.Zigzag)),
	} {
		j := contextJob()
		j.documents = halves
		l.dtype = tensor.BF16
		const runs = 5
		var workers []*worker
		err := j.each(t, l, func(w *worker) {
			step := func() { gradients(w.r, w.m, w.b) }
			step()
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

// TestContextFits trains a sequence over four context ranks that does not fit the arena of one.
func TestContextFits(t *testing.T) {
	if racing {
		return
	}
	j := contextJob()
	j.sequences, j.length, j.config.Context, j.config.Layers = 1, 2048, 2048, 4
	j.options = nn.Options{Sequence: 2048, Logits: 1}
	limit := tensor.ArenaOptions{Limit: 10 * unit.MiB} // of which the products' workspace is six, whatever the length
	one := layout{dtype: tensor.FP32, arena: limit}
	var over *tensor.LimitError
	if _, err := j.try(t, one); !errors.As(err, &over) {
		t.Fatalf("one rank with %v: %v", limit.Limit, err)
	}
	one.arena = tensor.ArenaOptions{}
	want := j.run(t, one).loss
	for _, c := range []nn.Context{ring(mesh.Zigzag), gather(mesh.Zigzag), swap(mesh.Zigzag)} {
		l := contexts(4, 1, 1, c)
		l.dtype, l.arena = tensor.FP32, limit
		got, err := j.try(t, l)
		if err != nil {
			t.Errorf("%v: %v", l, err)
			continue
		}
		if math.Abs(got.loss/want-1) > 1e-5 {
			t.Errorf("%v: loss %v, on one rank with more memory %v", l, got.loss, want)
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
		j.documents, j.config.Layers = c.documents, 1
		l := contexts(4, 1, 1, ring(c.balance))
		var calls atomic.Int64
		l.plant = func(r *nn.Rank, _ comm.Endpoint) { r.Dev = &counting{r.Dev, &calls} }
		j.run(t, l)
		if got := calls.Load() / int64(j.config.Layers); got != c.want {
			t.Errorf("%s: %d blocks a layer, want %d", c.name, got, c.want)
		}
	}
}
