package nn_test

import (
	"testing"

	"carve/model"
	"carve/nn"
	"carve/tensor"
)

// family is one kind of model, small enough for numeric gradients.
type family struct {
	name   string
	config model.Config
}

// families cover every branch of the layers.
func families() []family {
	all := []family{
		{"llama", llama()},
		{"llama tied", change(llama(), func(c *model.Config) { c.TieEmbeddings = true })},
		{"llama3 rope", change(llama(), func(c *model.Config) {
			c.Rope.Scaling, c.Rope.Factor, c.Rope.OriginalContext = model.Llama3Scaling, 4, 8
			c.Rope.LowFrequency, c.Rope.HighFrequency = 1, 4
		})},
		{"qwen3", change(llama(), func(c *model.Config) { c.Architecture, c.QKNorm = model.Qwen3, model.HeadQKNorm })},
		{"qwen2", change(llama(), func(c *model.Config) { c.Architecture, c.Bias.QKV = model.Qwen2, true })},
		{"gpt2", gpt2()},
	}
	all = append(all, mixtures()...)
	if racing {
		return all[3:4]
	}
	return all
}

func llama() model.Config {
	c := model.New(model.Llama)
	c.Layers, c.Hidden, c.Heads, c.KVHeads, c.HeadDim = 2, 16, 4, 2, 4
	c.FFN, c.Vocab, c.Context, c.InitStd = 24, 19, 32, 0.3
	return c
}

func gpt2() model.Config {
	c := model.New(model.GPT2)
	c.Layers, c.Hidden, c.Heads, c.KVHeads, c.HeadDim = 2, 12, 3, 3, 4
	c.FFN, c.Vocab, c.Context, c.InitStd = 20, 17, 8, 0.3
	c.Dropout = model.Dropout{}
	return c
}

func change(c model.Config, f func(*model.Config)) model.Config {
	f(&c)
	return c
}

// newRank makes a rank alone whose freed memory is poisoned.
func newRank(t testing.TB, d tensor.DType) *nn.Rank {
	t.Helper()
	a := tensor.NewArena(tensor.ArenaOptions{Poison: true})
	dev := tensor.NewCPU(a, 1)
	t.Cleanup(func() {
		dev.Close()
		a.Close()
	})
	return &nn.Rank{Dev: dev, Arena: a, DType: d, Seed: 7}
}

// newModel builds a model and sets its parameters to random numbers, norms and biases too.
func newModel(t testing.TB, r *nn.Rank, c model.Config, o nn.Options) *nn.Model {
	t.Helper()
	m, err := nn.Build(r, c, o)
	if err != nil {
		t.Fatal(err)
	}
	m.Init(r)
	for _, p := range m.Params() {
		if p.Kind == nn.Vector {
			jitter(r, p)
		}
	}
	for _, p := range states(m) {
		jitter(r, p)
	}
	return m
}

// jitter adds noise to a parameter that starts constant.
func jitter(r *nn.Rank, p *nn.Param) {
	noise := r.Arena.New(tensor.Workspace, p.Value.DType(), p.Value.Len())
	defer noise.Free()
	r.Dev.Normal(tensor.Normal{T: noise, Key: nn.Key(99, p.Name), Std: 0.2, Cols: p.Value.Len()})
	r.Dev.Add(p.Value, noise)
}

// newBatch makes B sequences of S random tokens, with some targets left out.
func newBatch(r *nn.Rank, vocab, sequences, length int, seed uint64) *nn.Batch {
	b := &nn.Batch{
		Tokens:  r.Arena.New(tensor.Workspace, tensor.Int32, sequences, length),
		Targets: r.Arena.New(tensor.Workspace, tensor.Int32, sequences, length),
	}
	valid := 0
	for i := range b.Tokens.I32() {
		b.Tokens.I32()[i] = int32(nn.Key(seed, string(rune('a'+i))) % uint64(vocab))
		b.Targets.I32()[i] = int32(nn.Key(seed+1, string(rune('a'+i)))%uint64(vocab+1)) - 1
		if b.Targets.I32()[i] >= 0 {
			valid++
		}
	}
	b.Scale = 1 / float64(valid)
	return b
}

// packed adds documents and positions to a batch: each sequence is cut in two documents.
func packed(r *nn.Rank, b *nn.Batch) *nn.Batch {
	b.Documents = r.Arena.New(tensor.Workspace, tensor.Int32, b.Tokens.Dim(0), b.Tokens.Dim(1))
	b.Positions = r.Arena.New(tensor.Workspace, tensor.Int32, b.Tokens.Dim(0), b.Tokens.Dim(1))
	s := b.Tokens.Dim(1)
	for i := range b.Documents.I32() {
		cut := s/2 + i/s%2
		b.Documents.I32()[i], b.Positions.I32()[i] = int32(i/s*2), int32(i%s)
		if i%s >= cut {
			b.Documents.I32()[i]++
			b.Positions.I32()[i] -= int32(cut)
		}
	}
	return b
}

// loss is the mean over the valid targets.
func loss(r *nn.Rank, m *nn.Model, b *nn.Batch) float64 {
	m.Evaluate(r, b)
	return b.Loss * b.Scale
}

// objective is what the gradients are of: the loss, and the one that balances experts, if there are any.
func objective(r *nn.Rank, m *nn.Model, b *nn.Batch) float64 {
	if m.Config.Experts.Count == 0 {
		return loss(r, m, b)
	}
	b.Auxiliary = 0
	m.Forward(r, b).Free()
	return b.Loss*b.Scale + b.Auxiliary
}

// gradients runs forward and backward from scratch.
func gradients(r *nn.Rank, m *nn.Model, b *nn.Batch) {
	m.Begin()
	m.Backward(r, m.Forward(r, b), everything{})
}

// everything is told of complete units and does nothing.
type everything struct{}

func (everything) Ready(int) {}

// floats is a copy of a tensor's elements.
func floats(t *tensor.Tensor) []float64 {
	out := make([]float64, t.Len())
	switch t.DType() {
	case tensor.FP64:
		copy(out, t.F64())
	case tensor.FP32:
		for i, v := range t.F32() {
			out[i] = float64(v)
		}
	case tensor.BF16, tensor.Int32:
		panic("no floats of " + t.DType().String())
	}
	return out
}

// states are those of all units.
func states(m *nn.Model) (all []*nn.Param) {
	for _, u := range m.Units {
		all = append(all, u.States...)
	}
	return all
}
