package verify

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// CurveTolerance is the largest relative difference of losses at which two runs count as equal, where no other is given: that of
// fp32 under another order of sums, over some fifty steps.
const CurveTolerance = 1e-4

// Curve is what a run's metrics say of its steps.
type Curve struct {
	Steps      []int // ascending
	Loss, Norm []float64
}

// ReadCurve reads a metrics.jsonl as train writes it. Lines of other events are passed over; a last line that was cut off, as
// when the run was killed, ends it.
func ReadCurve(r io.Reader) (c Curve, err error) {
	lines := bufio.NewReader(r)
	for number := 1; ; number++ {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return c, err
		}
		var at struct {
			Event string   `json:"event"`
			Step  int      `json:"step"`
			Loss  *float64 `json:"loss"`
			Norm  *float64 `json:"grad_norm"`
		}
		if err := json.Unmarshal(line, &at); err != nil {
			return c, fmt.Errorf("verify: line %d is not an event of a run: %w; give the folder of a run", number, err)
		}
		if at.Event != "step" || at.Loss == nil || at.Norm == nil {
			continue
		}
		if n := len(c.Steps); n > 0 && at.Step <= c.Steps[n-1] {
			return c, fmt.Errorf("verify: line %d has step %d after step %d; give the folder of a run", number, at.Step, c.Steps[n-1])
		}
		c.Steps, c.Loss, c.Norm = append(c.Steps, at.Step), append(c.Loss, *at.Loss), append(c.Norm, *at.Norm)
	}
	if c.Steps == nil {
		return c, errors.New("verify: the metrics have no step with a loss and a gradient norm; train for a step or more")
	}
	return c, nil
}

// Difference is what the values of two runs at the same steps say together: of b - a.
type Difference struct {
	Steps int     // that both have
	Mean  float64 // of b - a
	// Error is the standard error of the mean, from the means of √n runs of neighbouring steps, because neighbours are
	// not independent (batch means; Law and Kelton); not a number below four steps.
	Error    float64
	Max      float64 // largest |b - a|
	MaxStep  int     // where that is
	Relative float64 // largest |b - a|/|a|
	Final    float64 // mean of b - a over the last tenth of the steps
}

// CompareCurves pairs the steps of two runs. The error is that they have none in common.
func CompareCurves(a, b Curve) (loss, norm Difference, err error) {
	var steps []int
	var pairs [4][]float64 // losses and norms of a and b
	j := 0
	for i, step := range a.Steps {
		for j < len(b.Steps) && b.Steps[j] < step {
			j++
		}
		if j < len(b.Steps) && b.Steps[j] == step {
			steps = append(steps, step)
			for k, v := range []float64{a.Loss[i], b.Loss[j], a.Norm[i], b.Norm[j]} {
				pairs[k] = append(pairs[k], v)
			}
		}
	}
	if steps == nil {
		return loss, norm, errors.New("verify: the runs have no step in common; compare runs that log the same steps")
	}
	return compareValues(steps, pairs[0], pairs[1]), compareValues(steps, pairs[2], pairs[3]), nil
}

// compareValues takes the statistics of b - a.
func compareValues(steps []int, a, b []float64) Difference {
	d := Difference{Steps: len(steps), MaxStep: steps[0]}
	diffs := make([]float64, len(steps))
	for i := range steps {
		diffs[i] = b[i] - a[i]
		if size := finite(math.Abs(diffs[i])); size > d.Max {
			d.Max, d.MaxStep = size, steps[i]
		}
		if diffs[i] != 0 {
			d.Relative = max(d.Relative, finite(math.Abs(diffs[i]/a[i])))
		}
	}
	d.Mean, d.Final = mean(diffs), mean(diffs[len(diffs)-max(1, len(diffs)/10):])
	d.Error = batchError(diffs)
	return d
}

func mean(v []float64) (sum float64) {
	for _, x := range v {
		sum += x / float64(len(v))
	}
	return sum
}

// batchError is the standard error of the mean of a series, from the means of √n runs of neighbours.
func batchError(v []float64) float64 {
	batches := int(math.Sqrt(float64(len(v))))
	if batches < 2 {
		return math.NaN()
	}
	means := make([]float64, batches)
	for i := range means {
		means[i] = mean(v[i*len(v)/batches : (i+1)*len(v)/batches])
	}
	center, squares := mean(means), 0.0
	for _, m := range means {
		squares += (m - center) * (m - center)
	}
	return math.Sqrt(squares / float64(batches-1) / float64(batches))
}
