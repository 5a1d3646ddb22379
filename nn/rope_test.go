package nn

import (
	"math"
	"testing"

	"carve/model"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestRopeScaling checks the frequencies at places where their definitions give simple numbers.
func TestRopeScaling(t *testing.T) {
	plain, one := ropeFrequencies(model.Rope{Theta: 10000}, 8)
	if diff := cmp.Diff([]float64{1, 0.1, 0.01, 0.001}, plain, cmpopts.EquateApprox(1e-14, 0)); diff != "" || one != 1 {
		t.Error("plain", diff)
	}
	linear, _ := ropeFrequencies(model.Rope{Theta: 10000, Scaling: model.LinearScaling, Factor: 4}, 8)
	if diff := cmp.Diff([]float64{0.25, 0.025, 0.0025, 0.00025}, linear, cmpopts.EquateApprox(1e-14, 0)); diff != "" {
		t.Error("linear", diff)
	}
	// Within 2π·100 positions the pairs turn 100, 10, 1 and 0.1 times. Between 2 and 20 turns the second is 8/18 kept.
	llama3, _ := ropeFrequencies(model.Rope{
		Theta: 10000, Scaling: model.Llama3Scaling, Factor: 8, LowFrequency: 2, HighFrequency: 20, OriginalContext: 628,
	}, 8)
	turns := 628 * 0.1 / (2 * math.Pi)
	keep := (turns - 2) / 18
	want := []float64{1, 0.1 * (keep + (1-keep)/8), 0.01 / 8, 0.001 / 8}
	if diff := cmp.Diff(want, llama3, cmpopts.EquateApprox(1e-14, 0)); diff != "" {
		t.Error("llama3", diff)
	}
}

func TestYarn(t *testing.T) {
	c := model.Rope{
		Theta: 10000, Scaling: model.YarnScaling, Factor: 4, OriginalContext: 628, BetaFast: 32, BetaSlow: 1,
	}
	// Pair i turns 628/(2π)·10^-i times in the original context: 32 times at i = 0.49, once at i = 2.0. Rounded
	// outwards the blend goes from pair 0 to pair 2.
	got, amplitude := ropeFrequencies(c, 8)
	want := []float64{1, 0.1 * (0.5 + 0.5/4), 0.01 / 4, 0.001 / 4}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(1e-14, 0)); diff != "" {
		t.Error(diff)
	}
	if want := 0.1*math.Log(4) + 1; math.Abs(amplitude-want) > 1e-14 {
		t.Errorf("amplitude %v, want %v", amplitude, want)
	}
	c.MScale, c.MScaleAllDim = 1, 1 // DeepSeek: scaled elsewhere
	if got := yarnAmplitude(c); got != 1 {
		t.Errorf("amplitude %v with equal m-scales, want 1", got)
	}
	c.AttentionFactor = 1.5
	if got := yarnAmplitude(c); got != 1.5 {
		t.Errorf("amplitude %v, want the given 1.5", got)
	}
}
