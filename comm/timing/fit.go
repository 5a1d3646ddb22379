package timing

import (
	"math"

	"carve/unit"
)

// Line is a time of Latency + PerByte · size.
type Line struct {
	Latency  unit.Seconds
	PerByte  float64 // seconds
	Residual float64 // root of the mean square of the relative deviations
}

// Fit draws the line whose relative deviations from the times of an operation are the least. Neither figure is below zero. It returns
// false for fewer than two sizes.
func Fit(rows []Row) (Line, bool) {
	var w, wx, wxx, wy, wxy float64 // sums, weighted with 1/time²
	low, high := math.Inf(1), 0.0
	for _, r := range rows {
		x, y := float64(r.Bytes), float64(r.Usual.Time)
		if y <= 0 {
			continue
		}
		low, high = min(low, x), max(high, x)
		k := 1 / (y * y)
		w, wx, wxx, wy, wxy = w+k, wx+k*x, wxx+k*x*x, wy+k*y, wxy+k*x*y
	}
	if low >= high {
		return Line{}, false
	}
	slope := (w*wxy - wx*wy) / (w*wxx - wx*wx)
	l := Line{Latency: unit.Seconds((wy - slope*wx) / w), PerByte: slope}
	switch {
	case slope < 0:
		l = Line{Latency: unit.Seconds(wy / w)}
	case l.Latency < 0:
		l = Line{PerByte: wxy / wxx}
	}
	sum, n := 0.0, 0.0
	for _, r := range rows {
		if y := float64(r.Usual.Time); y > 0 {
			d := (float64(l.Latency)+l.PerByte*float64(r.Bytes))/y - 1
			sum, n = sum+d*d, n+1
		}
	}
	l.Residual = math.Sqrt(sum / n)
	return l, true
}
