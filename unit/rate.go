package unit

import (
	"fmt"
	"math"
)

// FLOPs counts floating-point operations; a multiply-add is two.
type FLOPs float64

// Seconds is a span of time.
type Seconds float64

// BytesPerSecond is a bandwidth.
type BytesPerSecond float64

// FLOPsPerSecond is a speed of computing.
type FLOPsPerSecond float64

// Watts is electric power.
type Watts float64

// At returns the time that f takes at rate.
func (f FLOPs) At(rate FLOPsPerSecond) Seconds { return Seconds(float64(f) / float64(rate)) }

// Per returns the speed at which f was done in time.
func (f FLOPs) Per(time Seconds) FLOPsPerSecond { return FLOPsPerSecond(float64(f) / float64(time)) }

// String prints f with a decimal prefix: "12.3 GFLOP".
func (f FLOPs) String() string { return scaled(float64(f), "FLOP") }

// String prints r with a decimal prefix: "312 TFLOP/s".
func (r FLOPsPerSecond) String() string { return scaled(float64(r), "FLOP/s") }

// String prints r in GB/s (10^9 bytes per second), the unit of nccl-tests and of data sheets.
func (r BytesPerSecond) String() string { return figures(float64(r)/1e9) + " GB/s" }

// String prints w in watts.
func (w Watts) String() string { return figures(float64(w)) + " W" }

// String prints s in the unit that people would choose: "4.20 µs", "1.25 s", "3h20m", "12.5 days".
func (s Seconds) String() string {
	const minute, hour, day = 60, 3600, 86400
	value := float64(s)
	switch magnitude := math.Abs(value); {
	case magnitude == 0:
		return "0 s"
	case magnitude < 1e-6:
		return figures(value*1e9) + " ns"
	case magnitude < 1e-3:
		return figures(value*1e6) + " µs"
	case magnitude < 1:
		return figures(value*1e3) + " ms"
	case magnitude < 2*minute:
		return figures(value) + " s"
	case magnitude < 2*hour:
		return fmt.Sprintf("%dm%02ds", int(value)/minute, int(magnitude)%minute)
	case magnitude < 2*day:
		return fmt.Sprintf("%dh%02dm", int(value)/hour, int(magnitude)%hour/minute)
	}
	return figures(value/day) + " days"
}

// scaled prints value with the decimal prefix that leaves one to three digits before the point.
func scaled(value float64, noun string) string {
	prefixes := [...]string{"", "K", "M", "G", "T", "P", "E", "Z", "Y"}
	i := 0
	for ; i < len(prefixes)-1 && math.Abs(value) >= 999.5; i++ {
		value /= 1000
	}
	return figures(value) + " " + prefixes[i] + noun
}

// figures prints value to three significant figures, and whole numbers from 100 up without a point.
func figures(value float64) string {
	switch magnitude := math.Abs(value); {
	case magnitude >= 99.95:
		return fmt.Sprintf("%.0f", value)
	case magnitude >= 9.995:
		return fmt.Sprintf("%.1f", value)
	}
	return fmt.Sprintf("%.2f", value)
}
