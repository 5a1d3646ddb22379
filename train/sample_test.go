package train

import (
	"math"
	"testing"
)

func TestSamplerGreedy(t *testing.T) {
	s := newSampler(Sampling{Seed: 1})
	if got := s.next([]float32{1, 3, 2, 3}); got != 1 {
		t.Errorf("greedy took %d, want 1: the first of the likeliest", got)
	}
}

// TestSamplerFrequencies holds that tokens are drawn as often as the softmax says, and never beyond the top k.
func TestSamplerFrequencies(t *testing.T) {
	logits := []float32{0, 1, 2, -1}
	cases := []struct {
		name        string
		temperature float64
		topK        int
		want        []float64 // unnormalised
	}{
		{"plain", 1, 0, []float64{1, math.E, math.E * math.E, 1 / math.E}},
		{"cool", 0.5, 0, []float64{1, math.Exp(2), math.Exp(4), math.Exp(-2)}},
		{"top 2", 1, 2, []float64{0, math.E, math.E * math.E, 0}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			const draws = 20_000
			s := newSampler(Sampling{Seed: 7, Temperature: tc.temperature, TopK: tc.topK})
			count, total := make([]float64, len(logits)), 0.0
			for range draws {
				count[s.next(logits)]++
			}
			for _, w := range tc.want {
				total += w
			}
			for id, w := range tc.want {
				p := w / total
				// five standard deviations of a binomial share
				if got, within := count[id]/draws, 5*math.Sqrt(p*(1-p)/draws); math.Abs(got-p) > within {
					t.Errorf("token %d came with frequency %.4f, want %.4f ± %.4f", id, got, p, within)
				}
			}
		})
	}
}

func TestSamplerRepeats(t *testing.T) {
	logits := []float32{0, 0.1, 0.2, 0.3, 0.4}
	a, b, other := newSampler(Sampling{Seed: 3, Temperature: 1}), newSampler(Sampling{Seed: 3, Temperature: 1}), newSampler(Sampling{Seed: 4, Temperature: 1})
	differ := false
	for range 100 {
		x := a.next(logits)
		if y := b.next(logits); x != y {
			t.Fatalf("equal seeds gave %d and %d", x, y)
		}
		differ = other.next(logits) != x || differ
	}
	if !differ {
		t.Error("another seed gave the same hundred tokens")
	}
}
