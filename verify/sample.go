package verify

import (
	"fmt"

	"carve/nn"
	"carve/parallel"
	"carve/plan"
)

// samples are made-up global batches: every number depends on its place alone, so that all layouts see the same.
type samples struct {
	plan    plan.Plan
	batches []batch // by step
}

// batch is a global batch.
type batch struct{ tokens, targets []int32 } // [G S]

// uncounted is one in how many targets does not count (-1).
const uncounted = 8

func newSamples(p plan.Plan, steps int) *samples {
	s := &samples{plan: p, batches: make([]batch, steps)}
	for step := range s.batches {
		s.batches[step] = s.make(step)
	}
	return s
}

// make draws the batch of a step. A target is the next token, but for those that do not count.
func (s *samples) make(step int) batch {
	rows, length, vocab := s.plan.Workload.GlobalBatch, s.plan.Workload.Sequence, uint64(s.plan.Model.Config.Vocab)
	b := batch{tokens: make([]int32, rows*length), targets: make([]int32, rows*length)}
	for row := range rows {
		stream := nn.Key(s.plan.Seed, fmt.Sprintf("sample %d of step %d", row, step))
		next := int32(mix(stream) % vocab)
		for i := range length {
			at := row*length + i
			word := mix(stream + uint64(i+1))
			b.tokens[at], next = next, int32(word%vocab)
			b.targets[at] = next
			if word>>40%uncounted == 0 {
				b.targets[at] = -1
			}
		}
	}
	return b
}

// mix is the finalizer of splitmix64: random bits of a counter.
func mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// fill gives a rank the share of its data rank.
func (s *samples) fill(e *parallel.Engine, step int) {
	b, n := s.batches[step], len(e.Tokens())
	copy(e.Tokens(), b.tokens[e.Data()*n:])
	copy(e.Targets(), b.targets[e.Data()*n:])
}
