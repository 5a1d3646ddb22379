package train

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// Sampling says how the next token is drawn from the logits.
type Sampling struct {
	Seed        uint64
	Temperature float64 // 0 takes the likeliest token
	TopK        int     // only the k likeliest are drawn from; 0 means all
}

// sampler draws tokens. Equal logits and seeds give equal tokens.
type sampler struct {
	Sampling
	random *rand.Rand
	order  []int32
	weight []float64
}

func newSampler(s Sampling) *sampler {
	return &sampler{Sampling: s, random: rand.New(rand.NewPCG(s.Seed, 0x636172766521))}
}

// next draws a token from logits. Of equally likely ones the lower id comes first.
func (s *sampler) next(logits []float32) int32 {
	s.order = s.order[:0]
	for id := range logits {
		s.order = append(s.order, int32(id))
	}
	slices.SortFunc(s.order, func(a, b int32) int {
		return cmp.Or(cmp.Compare(logits[b], logits[a]), cmp.Compare(a, b))
	})
	if s.Temperature <= 0 {
		return s.order[0]
	}
	if s.TopK > 0 && s.TopK < len(s.order) {
		s.order = s.order[:s.TopK]
	}
	return s.draw(logits)
}

// draw takes one of the ordered tokens with probability in proportion to exp(logit / temperature).
func (s *sampler) draw(logits []float32) int32 {
	s.weight = s.weight[:0]
	total, top := 0.0, float64(logits[s.order[0]])
	for _, id := range s.order {
		w := math.Exp((float64(logits[id]) - top) / s.Temperature)
		s.weight = append(s.weight, w)
		total += w
	}
	at := s.random.Float64() * total
	for i, w := range s.weight {
		if at -= w; at < 0 {
			return s.order[i]
		}
	}
	return s.order[len(s.order)-1] // rounding
}
