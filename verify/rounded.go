package verify

import (
	"context"
	"fmt"
	"math"
	"sync"

	"carve/parallel"
	"carve/plan"
)

// Rounded is how far losses in the plan's own precision are from those of one rank in it. Sums in another order round
// otherwise, and training spreads what rounding began, so this is a bound and no proof: it tells that the path of storage and
// communication in that precision is whole.
type Rounded struct {
	Precision plan.Precision
	Error     float64 // largest relative difference of a step's loss
	Tolerance float64
}

// OK tells whether the losses are near enough.
func (r *Rounded) OK() bool { return r == nil || r.Error <= r.Tolerance }

// String says it in words.
func (r *Rounded) String() string {
	return fmt.Sprintf("losses in %v differ from one rank's by %.1e (tolerance %.0e)", r.Precision, r.Error, r.Tolerance)
}

// roundedTolerance is some ten roundings of the precision: losses are means, and over a few steps stay far below it.
func roundedTolerance(p plan.Precision) float64 {
	switch p {
	case plan.FP64:
		return Tolerance
	case plan.FP32:
		return 1e-6
	case plan.BF16:
	}
	return 2e-2
}

// roundedRate is an ordinary learning rate: nothing has to show here that a smaller step would hide, and round-off grows slower.
const roundedRate = 1e-3

// round runs a plan and one rank in the plan's precision.
func round(ctx context.Context, exact plan.Plan, precision plan.Precision, o Options) (*Rounded, error) {
	p := exact
	p.Precision, p.Optimizer.LearningRate = precision, roundedRate
	data := newSamples(p, o.Steps)
	losses := func(p plan.Plan) ([]float64, error) {
		l := &losses{steps: make([]float64, o.Steps)}
		err := (&world{plan: p, samples: data, steps: o.Steps, visitor: l}).run(ctx)
		return l.steps, err
	}
	want, err := losses(Alone(p))
	if err != nil {
		return nil, fmt.Errorf("verify: the run on one rank in %v: %w", precision, err)
	}
	got, err := losses(p)
	if err != nil {
		return nil, fmt.Errorf("verify: the run in %v: %w", precision, err)
	}
	r := &Rounded{Precision: precision, Tolerance: roundedTolerance(precision)}
	for i, w := range want {
		r.Error = max(r.Error, finite(math.Abs(got[i]-w)/math.Abs(w)))
	}
	return r, nil
}

// losses adds up the losses of a run.
type losses struct {
	mu    sync.Mutex // guards steps
	steps []float64
}

func (*losses) began(*parallel.Engine)        {}
func (*losses) reduced(*parallel.Engine, int) {}

func (l *losses) updated(_ *parallel.Engine, step int, r parallel.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.steps[step] += r.Loss
}
