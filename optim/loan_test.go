package optim

import (
	"testing"

	"carve/model"
	"carve/nn"
	"carve/tensor"
)

// TestSumsInFullPrecision adds to a one, of which neighbours in bf16 are 2^-7 apart, what is less than half of that. Where
// gradients are sharded nothing of it is lost.
func TestSumsInFullPrecision(t *testing.T) {
	a := tensor.NewArena(tensor.ArenaOptions{})
	defer a.Close()
	dev := tensor.NewCPU(a, 1)
	defer dev.Close()
	r := &nn.Rank{Dev: dev, Arena: a, DType: tensor.BF16}
	c := model.New(model.Llama)
	c.Layers, c.Hidden, c.Heads, c.KVHeads, c.HeadDim, c.FFN, c.Vocab, c.Context = 1, 4, 1, 1, 4, 4, 8, 8
	o := Options{Stage: ShardGradients, Algorithm: SGDOptions{}}
	m, err := nn.Build(r, c, nn.Options{Storage: o.Storage()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewState(r, m, o)
	if err != nil {
		t.Fatal(err)
	}
	s.Begin()
	const micro, small = 64, 1.0 / 512
	term := 1.0
	for range micro {
		s.lend(s.homes[1])
		l := &s.homes[1].loan
		dev.Fill(l.memory, term)
		l.away, l.memory = l.memory, nil
		s.arrive(s.homes[1])
		term = small
	}
	if got, want := s.homes[1].slots[0].grad.F32()[0], float32(1+(micro-1)*small); got != want {
		t.Errorf("the sum is %v, want %v", got, want)
	}
}
