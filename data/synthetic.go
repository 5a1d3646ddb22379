package data

import (
	"fmt"
	"math"
	"math/bits"
)

// Synthetic is a Corpus of uniformly random tokens, for benchmarks: token k of
// sample i is a function of seed, i and k, and nothing is stored.
type Synthetic struct {
	vocab int
	seed  uint64
}

// NewSynthetic makes random tokens below vocab, 1 to 2^24.
func NewSynthetic(vocab int, seed uint64) (*Synthetic, error) {
	if vocab < 1 || vocab > maxVocab {
		return nil, fmt.Errorf("data: a vocabulary of %d for random tokens; use 1 to %d", vocab, maxVocab)
	}
	return &Synthetic{vocab, seed}, nil
}

// Samples is practically without end.
func (s *Synthetic) Samples(int) int64 { return 1 << 40 }

// Tokens is practically without end.
func (s *Synthetic) Tokens() int64 { return math.MaxInt64 }

// Read makes sample i.
func (s *Synthetic) Read(dst []int32, i int64) error {
	state := mix(s.seed) ^ mix(uint64(i)+0x9e3779b97f4a7c15)
	for k := range dst {
		state += 0x9e3779b97f4a7c15
		id, _ := bits.Mul64(mix(state), uint64(s.vocab))
		dst[k] = int32(id)
	}
	return nil
}

// Vocab is the size of the vocabulary.
func (s *Synthetic) Vocab() int { return s.vocab }

// Identity tells vocabulary and seed.
func (s *Synthetic) Identity() string { return fmt.Sprintf("synthetic-%d-%d", s.vocab, s.seed) }
