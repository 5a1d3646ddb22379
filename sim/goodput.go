package sim

import (
	"errors"
	"math"

	"carve/unit"
)

// Failures say how often devices fail and what that costs.
type Failures struct {
	// Between is the time between failures of one device; a job of n devices fails n times as often.
	Between unit.Seconds
	Restart unit.Seconds // from a failure to the first step after it, without the work that was lost
	Pause   unit.Seconds // that a checkpoint stops the job
	// Every is the time between checkpoints; 0 chooses the best.
	Every unit.Seconds
}

// LlamaFailures is the time between failures of one H100 with all that belongs to it: 419 unexpected interruptions in 54 days
// of 16,384 of them (Llama Team 2024, arXiv 2407.21783, section 3.3.4).
const LlamaFailures = unit.Seconds(54 * 86400 * 16384 / 419.0)

// Goodput is what failures leave of a job's time.
type Goodput struct {
	Part     float64      // of the time that goes into steps that last, 0 to 1
	Between  unit.Seconds // failures of the job
	Every    unit.Seconds // checkpoints
	Lost     unit.Seconds // of work at a failure, on average
	Failures float64      // in a million seconds
}

// Goodput works out what is left of the time of a job on so many devices. With failures that come at random (a Poisson
// process of mean distance T), checkpoints of pause C after every interval t, and restarts of R, the part is
//
//	(t / (t + C)) · T·(1 - e^(-(t+C)/T)) / (t + C) · T / (T + R)
//
// to within the failures during restarts: of a stretch of t + C that ends well, t counts; one that fails is lost. The best
// interval without being given is √(2·C·T) - C (Daly 2006, "A higher order estimate of the optimum checkpoint interval", its
// first order; Young 1974).
func (f Failures) Goodput(devices int) (Goodput, error) {
	for _, s := range []unit.Seconds{f.Between, f.Restart, f.Pause, f.Every} {
		if math.IsNaN(float64(s)) || s < 0 {
			return Goodput{}, errors.New("sim: times between failures and of restarts are not negative")
		}
	}
	if f.Between == 0 || devices < 1 {
		return Goodput{}, errors.New("sim: devices have a time between failures above 0; give an hour or more")
	}
	mean := float64(f.Between) / float64(devices)
	pause := float64(f.Pause)
	every := float64(f.Every)
	if every == 0 {
		every = max(math.Sqrt(2*pause*mean)-pause, pause, 1)
	}
	stretch := every + pause
	survives := mean * -math.Expm1(-stretch/mean) / stretch
	return Goodput{
		Part:    every / stretch * survives * mean / (mean + float64(f.Restart)),
		Between: unit.Seconds(mean), Every: unit.Seconds(every), Lost: unit.Seconds(stretch / 2), Failures: 1e6 / mean,
	}, nil
}
