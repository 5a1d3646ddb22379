package optim_test

import (
	"math"
	"testing"

	"carve/optim"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

func TestSchedule(t *testing.T) {
	for _, c := range []struct {
		name     string
		schedule optim.Schedule
		want     []float64
	}{
		{"linear", optim.Schedule{Shape: optim.Linear, Peak: 1, Warmup: 2, Steps: 6}, []float64{0.5, 1, 1, 0.75, 0.5, 0.25, 0, 0}},
		{"constant", optim.Schedule{Shape: optim.Constant, Peak: 2, Warmup: 1, Steps: 3}, []float64{2, 2, 2, 2}},
		{
			"cosine with floor",
			optim.Schedule{Peak: 1, Floor: 0.2, Steps: 4},
			[]float64{1, 0.2 + 0.4*(1+math.Sqrt2/2), 0.6, 0.2 + 0.4*(1-math.Sqrt2/2), 0.2},
		},
		{"wsd", optim.Schedule{Shape: optim.WSD, Peak: 1, Warmup: 1, Steps: 6, Decay: 2}, []float64{1, 1, 1, 1, 1, 0.5, 0}},
		{"wsd, a fifth", optim.Schedule{Shape: optim.WSD, Peak: 1, Steps: 10}, []float64{1, 1, 1, 1, 1, 1, 1, 1, 1, 0.5, 0}},
		{"shorter than the warm-up", optim.Schedule{Peak: 1, Warmup: 4, Steps: 2}, []float64{0.25, 0.5, 0.75, 1, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := make([]float64, len(c.want))
			for i := range got {
				got[i] = c.schedule.Rate(i)
			}
			if diff := cmp.Diff(c.want, got, cmpopts.EquateApprox(0, 1e-15)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestScheduleStaysInBounds: for any schedule, no rate is above the peak, none after the warm-up below the floor or
// above the one before.
func TestScheduleStaysInBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := optim.Schedule{
			Shape: optim.Shape(rapid.IntRange(0, 3).Draw(t, "shape")), Peak: 1, Floor: rapid.Float64Range(0, 1).Draw(t, "floor"),
			Warmup: rapid.IntRange(0, 20).Draw(t, "warmup"), Steps: rapid.IntRange(1, 50).Draw(t, "steps"),
			Decay: rapid.IntRange(0, 60).Draw(t, "decay"),
		}
		before := math.Inf(1)
		for i := range 60 {
			rate := s.Rate(i)
			switch {
			case rate <= 0 && s.Floor > 0 || rate > 1+1e-12 || math.IsNaN(rate):
				t.Fatalf("%+v: rate %v at step %d", s, rate, i)
			case i < s.Warmup:
			case rate > before+1e-12 || rate < s.Floor-1e-12:
				t.Fatalf("%+v: rate %v at step %d after %v", s, rate, i, before)
			default:
				before = rate
			}
		}
	})
}

func TestClipScale(t *testing.T) {
	for _, c := range []struct{ norm, limit, want float64 }{
		{2, 1, 0.5}, {0.5, 1, 1}, {1, 1, 1}, {3, 0, 1}, {0, 1, 1}, {math.NaN(), 1, 1},
	} {
		if got := optim.ClipScale(c.norm, c.limit); got != c.want {
			t.Errorf("norm %v, limit %v: %v, want %v", c.norm, c.limit, got, c.want)
		}
	}
}
