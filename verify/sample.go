package verify

import (
	"fmt"
	"slices"

	"carve/nn"
	"carve/parallel"
	"carve/plan"
)

// samples are made-up global batches: every number depends on its place alone, so that all layouts see the same.
type samples struct {
	plan    plan.Plan
	batches []batch // by step
	counted []int64 // targets by step
	first   int     // number of the first sample
}

// batch is a global batch. Documents, and positions in them, are used where the plan packs by document.
type batch struct{ tokens, targets, positions, documents []int32 } // [G S]

// uncounted is one in how many targets does not count (-1).
const uncounted = 8

func newSamples(p plan.Plan, steps int) *samples {
	s := &samples{plan: p, batches: make([]batch, steps), counted: make([]int64, steps)}
	for step := range s.batches {
		s.batches[step] = s.make(step)
		s.counted[step] = s.batches[step].counted()
	}
	return s
}

// ending is one in how many tokens is the last of a packed document.
const ending = 5

// make draws the batch of a step. A target is the next token, but for those that do not count.
func (s *samples) make(step int) batch {
	rows, length, vocab := s.plan.Workload.GlobalBatch, s.plan.Workload.Sequence, uint64(s.plan.Model.Config.Vocab)
	ids := func() []int32 { return make([]int32, rows*length) }
	b := batch{tokens: ids(), targets: ids(), positions: ids(), documents: ids()}
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
		if s.plan.Workload.Packing == plan.ByDocument {
			b.pack(stream, row*length, (row+1)*length)
		}
	}
	return b
}

// pack cuts the sample from lo to hi into documents.
func (b *batch) pack(stream uint64, lo, hi int) {
	start, document := lo, int32(0)
	for at := lo; at < hi; at++ {
		b.positions[at], b.documents[at] = int32(at-start), document
		if mix(stream^uint64(at))%ending == 0 {
			b.targets[at] = -1
			start, document = at+1, document+1
		}
	}
}

// counted is the number of targets of a step that count.
func (b *batch) counted() (n int64) {
	for _, t := range b.targets {
		if t >= 0 {
			n++
		}
	}
	return n
}

// alone is the samples of one micro-batch of a step, under their numbers. What losses are means over stays.
func (s *samples) alone(step, micro int) *samples {
	cut := *s
	cut.batches = slices.Clone(s.batches)
	b, n := s.batches[step], s.plan.MicroBatch*s.plan.Workload.Sequence
	for _, ids := range []*[]int32{&b.tokens, &b.targets, &b.positions, &b.documents} {
		*ids = (*ids)[micro*n : (micro+1)*n]
	}
	cut.batches[step], cut.first = b, micro*s.plan.MicroBatch
	return &cut
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
	if e.Documents() != nil {
		copy(e.Positions(), b.positions[e.Data()*n:])
		copy(e.Documents(), b.documents[e.Data()*n:])
	}
	e.SetTargets(s.counted[step])
	e.SetFirst(s.first + e.Data()*n/s.plan.Workload.Sequence)
}
