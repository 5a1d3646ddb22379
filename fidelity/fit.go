package fidelity

import (
	"math"

	"carve/cost"
	"carve/price"
)

// knob is one constant that is fitted, and its bounds.
type knob struct {
	value     *float64
	low, high float64
}

// knobs are the constants of a book, those of devices first.
func (b *Book) knobs() (all []knob) {
	for i := range b.Devices {
		all = append(all, deviceKnobs(&b.Devices[i])...)
	}
	for i := range b.Profiles {
		all = append(all, profileKnobs(&b.Profiles[i])...)
	}
	return all
}

func deviceKnobs(c *cost.Constants) []knob {
	return []knob{
		{&c.MatMul, 0.55, 0.9}, {&c.Bandwidth, 0.7, 0.92}, {&c.Depth, 0, 600},
	}
}

func profileKnobs(f *price.Profile) []knob {
	return []knob{
		{&f.Kernel, 0.9, 1.6},
		{&f.Attention, 0.6, 5},
		{&f.Fusion, 0.4, 4},
		{&f.Host, 0, 4e-3},
		{&f.Overlap, 0, 1},
		{&f.HiddenTP, 0, 1},
		{&f.HiddenPP, 0, 1},
		{&f.HiddenEP, -2, 1},
		{&f.Congestion, 0, 1},
		{&f.Logits, 2, 20},
		{&f.GatheredUnits, 0, 8},
		{&f.Reserved, 1, 1.2},
		{&f.Context, 0, 6e9},
		{&f.Kept, 0.7, 2.2},
		{&f.HostTP, 0, 4e-3},
		{&f.Hop, 0, 0.05},
		{&f.HopTP, 0, 0.05},
	}
}

// Fit changes the constants of a book, one after the other by smaller and smaller steps, so that the mean over configurations of a
// robust loss of the errors' logarithms becomes as small as it gets. It never looks at one run alone: a
// constant belongs to all runs on a kind of device, or of a framework. It returns the loss before and after.
func (b *Book) Fit(runs []Ready, rounds int) (before, after float64) {
	weights := configurationWeights(runs)
	loss := func() float64 { return b.loss(runs, weights) }
	before = loss()
	best, step := before, 0.2
	for range rounds {
		for _, k := range b.knobs() {
			best = k.improve(best, step, loss)
		}
		step = max(step*0.8, 0.01)
	}
	return before, best
}

// improve moves one constant where the loss becomes smaller.
func (k knob) improve(best, step float64, loss func() float64) float64 {
	old := *k.value
	for _, direction := range []float64{1, -1} {
		*k.value = min(k.high, max(k.low, old+direction*step*max(math.Abs(old), (k.high-k.low)/20)))
		if now := loss(); now < best-1e-9 {
			return now
		}
	}
	*k.value = old
	return best
}

// configurationWeights makes the runs of one configuration weigh as much as one.
func configurationWeights(runs []Ready) []float64 {
	sizes := map[string]float64{}
	for _, r := range runs {
		if ok, _ := r.Run.Counts(); ok {
			sizes[r.Run.Group]++
		}
	}
	weights := make([]float64, len(runs))
	for i, r := range runs {
		if n := sizes[r.Run.Group]; n > 0 {
			weights[i] = 1 / n
		}
	}
	return weights
}

// loss is the mean error: its absolute logarithm, growing more slowly beyond one half.
func (b *Book) loss(runs []Ready, weights []float64) float64 {
	sum, total := 0.0, 0.0
	add := func(weight, predicted, measured float64) {
		e := math.Abs(math.Log(predicted / measured))
		sum += weight * min(e, 0.5+(e-0.5)/4)
		total += weight
	}
	for i := range runs {
		r := &runs[i]
		counts, _ := r.Run.Counts()
		memory := r.Run.uses("memory_full")
		if !counts && !memory {
			continue
		}
		t, m, err := r.prices(b)
		if err != nil {
			continue
		}
		if counts {
			add(weights[i], float64(t.Step), *r.Run.Derived.Seconds)
		}
		if measured := r.Run.bytes(); memory && measured > 0 {
			if f, err := b.profile(r.profile); err == nil {
				add(0.5, r.Run.seen(m, f), measured)
			}
		}
	}
	return sum / max(total, 1)
}
