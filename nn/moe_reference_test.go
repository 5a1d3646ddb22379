package nn_test

import (
	"fmt"
	"math"
	"slices"

	"carve/model"
)

// mix is a mixture of experts on one token, written down from the descriptions' definitions.
func (f reference) mix(at string, x []float64) []float64 {
	e := f.c.Experts
	scores := linear(f.find(at, ".gate.weight"), nil, x)
	total := 0.0
	for i, s := range scores {
		if e.Score == model.SigmoidScore {
			scores[i] = 1 / (1 + math.Exp(-s))
		} else {
			scores[i] = math.Exp(s)
		}
		total += scores[i]
	}
	if e.Score == model.SoftmaxScore {
		for i := range scores {
			scores[i] /= total
		}
	}
	y, chosen := make([]float64, len(x)), f.choose(scores, f.find(at, "e_score_correction_bias"))
	weight := e.Scale
	if e.Normalise {
		sum := 0.0
		for _, i := range chosen {
			sum += scores[i]
		}
		weight /= sum
	}
	for _, i := range chosen {
		out := f.expert(at, fmt.Sprintf(".experts.%d.", i), x)
		for j, v := range out {
			y[j] += weight * scores[i] * v
		}
	}
	if e.SharedFFN == 0 {
		return y
	}
	out, gate := f.expert(at, f.sharedName(), x), 1.0
	if w := f.find(at, "shared_expert_gate.weight"); w != nil {
		gate = 1 / (1 + math.Exp(-linear(w, nil, x)[0]))
	}
	for j, v := range out {
		y[j] += gate * v
	}
	return y
}

func (f reference) sharedName() string {
	if f.c.Architecture == model.Qwen2MoE {
		return ".shared_expert."
	}
	return ".shared_experts."
}

// choose sorts the experts of the best groups by score, with the bias if there is one.
func (f reference) choose(scores, bias []float64) []int {
	e := f.c.Experts
	if bias != nil {
		scores = slices.Clone(scores)
		add(scores, bias)
	}
	best := func(scores []float64, n int) []int {
		index := make([]int, len(scores))
		for i := range index {
			index[i] = i
		}
		slices.SortStableFunc(index, func(a, b int) int {
			switch {
			case scores[a] > scores[b]:
				return -1
			case scores[a] < scores[b]:
				return 1
			}
			return 0
		})
		return index[:n]
	}
	if e.Groups <= 1 {
		return best(scores, e.PerToken)
	}
	worth, size := make([]float64, e.Groups), e.Count/e.Groups
	for g := range worth {
		group := scores[g*size : (g+1)*size]
		for _, i := range best(group, 2) {
			worth[g] += group[i]
		}
	}
	allowed := slices.Repeat([]float64{math.Inf(-1)}, e.Count)
	for _, g := range best(worth, e.GroupsPerToken) {
		copy(allowed[g*size:(g+1)*size], scores[g*size:])
	}
	return best(allowed, e.PerToken)
}

// expert is one gated feed-forward.
func (f reference) expert(at, name string, x []float64) []float64 {
	names := [3]string{"gate_proj", "up_proj", "down_proj"}
	if f.c.Architecture == model.Mixtral {
		names = [3]string{"w1", "w3", "w2"}
	}
	get := func(i int) []float64 { return f.find(at, name+names[i]+".weight") }
	gate, up := linear(get(0), nil, x), linear(get(1), nil, x)
	for i, g := range gate {
		up[i] *= g / (1 + math.Exp(-g))
	}
	return linear(get(2), nil, up)
}
