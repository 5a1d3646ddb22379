package sim_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"carve/sim"
	"carve/unit"
)

// TestGoodputEqualsLots draws failures and counts, as the formula's dumb twin.
func TestGoodputEqualsLots(t *testing.T) {
	f := sim.Failures{Between: 1e7, Restart: 600, Pause: 60}
	for _, devices := range []int{16, 1024, 4096} {
		g, err := f.Goodput(devices)
		if err != nil {
			t.Fatal(err)
		}
		if got := draw(f, g, devices); math.Abs(got-g.Part) > 0.02 {
			t.Errorf("%d devices: goodput %.3f, drawn %.3f", devices, g.Part, got)
		}
	}
}

// draw is the part of the time that is useful over many drawn failures.
func draw(f sim.Failures, g sim.Goodput, devices int) float64 {
	r := rand.New(rand.NewPCG(1, 2))
	mean := float64(f.Between) / float64(devices)
	var useful, total float64
	for range 20000 {
		until := r.ExpFloat64() * mean
		stretch := float64(g.Every + f.Pause)
		useful += math.Floor(until/stretch) * float64(g.Every)
		total += until + float64(f.Restart)
	}
	return useful / total
}

// TestBestInterval: neither half nor twice the chosen interval is better.
func TestBestInterval(t *testing.T) {
	f := sim.Failures{Between: sim.LlamaFailures, Restart: 600, Pause: 30}
	best, err := f.Goodput(16384)
	if err != nil {
		t.Fatal(err)
	}
	for _, factor := range []unit.Seconds{0.5, 2} {
		f.Every = best.Every * factor
		other, err := f.Goodput(16384)
		if err != nil || other.Part > best.Part {
			t.Errorf("an interval of %v gives %.4f, the best of %v %.4f (%v)", f.Every, other.Part, best.Every, best.Part, err)
		}
	}
	if h := best.Between / 3600; h < 2.8 || h > 3.4 {
		t.Errorf("16,384 devices fail every %.1f hours; published: about every 3", float64(h))
	}
	for _, bad := range []sim.Failures{{}, {Between: -1}, {Between: 1, Pause: unit.Seconds(math.NaN())}} {
		if _, err := bad.Goodput(8); err == nil {
			t.Errorf("%+v is fine", bad)
		}
	}
}
