package optim_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"carve/comm"
	"carve/model"
	"carve/nn"
	"carve/optim"
	"carve/tensor"
)

// shape is one of the models that peers are measured with (bench/peers): a plain Llama decoder.
type shape struct {
	name                                                   string
	hidden, layers, heads, ffn, vocab, sequence, sequences int
}

func shapes() []shape {
	return []shape{
		{"tiny", 256, 4, 4, 688, 512, 256, 8},
		{"small", 512, 8, 8, 1376, 4096, 256, 4},
		{"gpt2", 768, 12, 12, 2048, 32000, 256, 2},
	}
}

func (s shape) config() model.Config {
	c := model.New(model.Llama)
	c.Layers, c.Hidden, c.Heads, c.KVHeads, c.HeadDim = s.layers, s.hidden, s.heads, s.heads, s.hidden/s.heads
	c.FFN, c.Vocab, c.Context, c.NormEpsilon = s.ffn, s.vocab, s.sequence, 1e-5
	return c
}

// BenchmarkStep is a whole step of training: forward, backward, reduction, norm, clipping and AdamW. Each rank has the
// shape's batch. The FLOPs are the model's, not the program's: matrix products and causal attention.
func BenchmarkStep(b *testing.B) {
	for _, s := range shapes() {
		for _, d := range []tensor.DType{tensor.FP32, tensor.BF16} {
			for _, c := range []struct{ ranks, threads int }{{1, 1}, {1, 2}, {2, 1}} {
				name := fmt.Sprintf("op=step/shape=%s/dtype=%v/ranks=%d/threads=%d", s.name, d, c.ranks, c.threads)
				b.Run(name, func(b *testing.B) { benchmarkStep(b, s, d, c.ranks, c.threads) })
			}
		}
	}
}

func benchmarkStep(b *testing.B, s shape, d tensor.DType, ranks, threads int) {
	b.ReportAllocs()
	l := layout{dp: ranks, dtype: d, state: optim.Options{Bucket: optim.DefaultBucket}}
	grid := l.mesh(b)
	j := job{config: s.config(), sequences: s.sequences * ranks, length: s.sequence, algorithm: adamW(), threads: threads}
	world := comm.NewLocal(ranks, comm.LocalOptions{})
	turns := make([]chan struct{}, ranks)
	for i := range turns {
		turns[i] = make(chan struct{})
	}
	var done sync.WaitGroup
	step := func() {
		done.Add(ranks)
		for _, turn := range turns {
			turn <- struct{}{}
		}
		done.Wait()
	}
	finished := make(chan error)
	var peak tensor.Peak
	go func() {
		finished <- comm.Run(context.Background(), world.Endpoints(), func(e comm.Endpoint) error {
			return nn.Guard(func() {
				w := j.worker(e, grid, l)
				defer w.close()
				w.load(0)
				for range turns[e.Rank()] {
					w.bare()
					done.Done()
				}
				if e.Rank() == 0 {
					peak = w.r.Arena.Peak()
				}
			})
		})
	}()
	step() // warms up
	for b.Loop() {
		step()
	}
	for _, turn := range turns {
		close(turn)
	}
	if err := <-finished; err != nil {
		b.Fatal(err)
	}
	tokens := float64(j.sequences * j.length)
	rate := tokens * float64(b.N) / b.Elapsed().Seconds()
	b.ReportMetric(rate, "tokens/s")
	b.ReportMetric(rate*float64(j.config.TrainingFLOPs(s.sequence, model.Causal).Total()), "flop/s")
	b.ReportMetric(float64(ranks)*peak.Usage.Total().GiB(), "GiB-peak")
}
