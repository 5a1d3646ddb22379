package optim_test

import (
	"context"
	"errors"
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/model"
	"carve/nn"
	"carve/optim"
	"carve/tensor"
	"carve/unit"

	"pgregory.net/rapid"
)

// TestAnyShape holds random layouts of random models of odd sizes to one rank.
func TestAnyShape(t *testing.T) {
	rapid.Check(t, func(d *rapid.T) {
		number := func(name string, lo, hi int) int { return rapid.IntRange(lo, hi).Draw(d, name) }
		j := newJob()
		j.arena = tensor.ArenaOptions{} // poisoning takes longer than all the rest
		c := &j.config
		tp := number("tensor degree", 1, 2)
		c.KVHeads = tp * number("key-value heads by degree", 1, 2)
		c.Heads = c.KVHeads * number("queries by key", 1, 3)
		c.HeadDim = 2 * number("half a head", 1, 4)
		c.Hidden, c.Layers = number("hidden", 1, 17), number("layers", 1, 2)
		c.FFN, c.Vocab = tp*number("features by degree", 1, 9), number("vocabulary", 2, 40)
		c.TieEmbeddings = rapid.Bool().Draw(d, "tied")
		c.QKNorm = rapid.SampledFrom([]model.QKNorm{model.NoQKNorm, model.HeadQKNorm}).Draw(d, "norm of heads")
		c.Bias.QKV, c.Bias.Output, c.Bias.MLP = rapid.Bool().Draw(d, "bias"), rapid.Bool().Draw(d, "bias"), rapid.Bool().Draw(d, "bias")
		l := layout{dp: number("data degree", 1, 3), tp: tp, micro: number("micro-batches", 1, 3), dtype: tensor.FP64}
		l.state = optim.Options{
			Stage: optim.Stage(number("stage", 0, 3)), Ownership: optim.Ownership(number("ownership", 0, 1)),
			Prefetch: number("prefetch", 0, 3), Reshard: optim.Reshard(number("reshard", 0, 1)),
		}
		j.sequences = l.dp * l.micro * number("sequences", 1, 2)
		j.length, j.steps, j.algorithm = number("length", 1, 9), 2, sgd()
		worst, where := j.run(t, layout{dtype: tensor.FP64}).distance(j.run(t, l))
		if worst > fp64Tolerance {
			d.Fatalf("%s differs by %.1e, tolerance %.0e", where, worst, fp64Tolerance)
		}
	})
}

// TestRankOutOfMemory lets one of two ranks reach the limit of its arena in the middle of a step: the other is not left
// waiting, and the error says which rank, what and why.
func TestRankOutOfMemory(t *testing.T) {
	j := newJob()
	var peak unit.Bytes
	j.inWorld(t, layout{dp: 2}, func(w *worker) {
		if w.r.At[mesh.DP] == 0 {
			peak = w.r.Arena.Peak().Usage.Total()
		}
	})
	l := layout{dp: 2}
	grid := l.mesh(t)
	err := comm.Run(context.Background(), comm.NewLocal(2, comm.LocalOptions{}).Endpoints(), func(e comm.Endpoint) error {
		return nn.Guard(func() {
			j := j // of this rank
			if e.Rank() == 1 {
				j.arena.Limit = peak - 1
			}
			j.worker(e, grid, l).step(0)
		})
	})
	var failure *comm.Failure
	var limit *tensor.LimitError
	if !errors.As(err, &failure) || failure.Rank != 1 || !errors.As(err, &limit) {
		t.Fatalf("error is %v, want the limit of rank 1", err)
	}
	if limit.Owner == "" {
		t.Error("the error does not say which layer asked")
	}
}
