package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"carve/parallel"
	"carve/plan"
)

// Defaults of [Options].
const (
	// Tolerance is the largest relative error of a proof in fp64: some ten thousand roundings of 2⁻⁵³.
	Tolerance = 1e-11
	// Steps are enough for an update, for a second moment, and for what both did to a further step.
	Steps = 3
	// Limit is how long a rank may wait for one operation before the ranks count as waiting for each other.
	Limit = time.Minute
)

// Floor is the size, relative to the largest tensor of its kind, below which a tensor's error is measured against that one.
const Floor = 1e-3

// Options say how a plan is proved. Zero values choose defaults.
type Options struct {
	Steps     int
	Tolerance float64
	Limit     time.Duration
	Fault     Fault // planted, to see it caught
}

func (o Options) withDefaults() Options {
	if o.Steps == 0 {
		o.Steps = Steps
	}
	if o.Tolerance == 0 {
		o.Tolerance = Tolerance
	}
	if o.Limit == 0 {
		o.Limit = Limit
	}
	return o
}

// Kind is what was compared, in the order of a step.
type Kind uint8

// The kinds.
const (
	Loss      Kind = iota
	Gradient       // after the reduction and before the update; the global norm is one of them
	Parameter      // after the update
)

// String is the name in reports: "loss", "grad" or "param".
func (k Kind) String() string {
	switch k {
	case Loss:
		return "loss"
	case Gradient:
		return "grad"
	case Parameter:
		return "param"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Row is the worst of a tensor over all steps and ranks.
type Row struct {
	Name  string
	Kind  Kind
	Error float64 // relative; see the package's documentation
	Step  int     // counted from 1
	Rank  int     // of the world; -1 for a sum over all
}

// String says where the row is bad.
func (r Row) String() string {
	what := map[Kind]string{Loss: "the loss", Gradient: "the gradient of " + r.Name, Parameter: "the updated " + r.Name}[r.Kind]
	if r.Kind == Gradient && r.Name == normName {
		what = "the global norm of the gradient"
	}
	if r.Rank >= 0 {
		what += fmt.Sprintf(" on rank %d", r.Rank)
	}
	if math.IsInf(r.Error, 1) {
		return fmt.Sprintf("%s is not a number, or missing, in step %d", what, r.Step)
	}
	return fmt.Sprintf("%s differs by %.1e in step %d", what, r.Error, r.Step)
}

// Report is what a proof found.
type Report struct {
	Plan      plan.Plan // that was run
	Steps     int
	Tolerance float64
	Rows      []Row     // the loss, the gradients and the parameters, in the model's order
	First     Row       // the first that is bad in the order of a run, if one is
	Diagnosis Diagnosis // of what is bad
	// Rounded is about the plan's own precision; nil where that is fp64, or the proof failed.
	Rounded *Rounded
	// Failure is why the ranks did not come to an end, or nil.
	Failure error
}

// Worst is the row with the largest error.
func (r *Report) Worst() Row {
	if len(r.Rows) == 0 {
		return Row{}
	}
	return slices.MaxFunc(r.Rows, func(a, b Row) int { return cmp.Compare(a.Error, b.Error) })
}

// OK tells whether everything is equal.
func (r *Report) OK() bool {
	return r.Failure == nil && r.Worst().Error <= r.Tolerance && r.Rounded.OK()
}

// Of are the rows of a kind, the worst first.
func (r *Report) Of(k Kind) []Row {
	var rows []Row
	for _, row := range r.Rows {
		if row.Kind == k {
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return cmp.Compare(b.Error, a.Error) })
	return rows
}

// Verdict is nil when everything is equal, and else an error that names the first bad tensor.
func (r *Report) Verdict() error {
	switch {
	case r.Failure != nil:
		return fmt.Errorf("verify: the ranks did not come to an end: %w", r.Failure)
	case r.OK():
		return nil
	case !r.Rounded.OK():
		return fmt.Errorf("verify: all is equal in fp64, but %v", r.Rounded)
	}
	return fmt.Errorf("verify: %v\n%v", r.First, r.Diagnosis)
}

// Run proves a plan as it is: every rank of it runs here. The error is one of the plan, or that ctx ended; what the proof
// finds is in the report.
func Run(ctx context.Context, p plan.Plan, o Options) (*Report, error) {
	o = o.withDefaults()
	precision := p.Precision
	p = Exact(p)
	if err := errors.Join(p.Validate(), parallel.Check(p), o.Fault.Place(p)); err != nil {
		return nil, err
	}
	r := &proofRun{plan: p, options: o, samples: newSamples(p, o.Steps)}
	if o.Fault != NoFault {
		r.plant = newPlanter(o.Fault, p, o.Steps)
	}
	ref := &reference{moments: make([]moment, o.Steps)}
	if err := (&world{plan: Alone(p), samples: r.samples, steps: o.Steps, visitor: ref}).run(ctx); err != nil {
		return nil, fmt.Errorf("verify: the run on one rank: %w", err)
	}
	ref.finish()
	report, err := r.compare(ctx, ref)
	if err == nil && report.OK() && precision != plan.FP64 {
		report.Rounded, err = round(ctx, p, precision, o)
	}
	return report, err
}

// proofRun is what the runs of a proof share.
type proofRun struct {
	plan    plan.Plan
	options Options
	samples *samples
	plant   *planter // nil for none
}

// compare runs the layout, and explains what differs.
func (r *proofRun) compare(ctx context.Context, ref *reference) (*Report, error) {
	program, err := parallel.Program(r.plan)
	if err != nil {
		return nil, err
	}
	c := newComparison(r.plan, program, ref, r.options)
	w := world{plan: r.plan, samples: r.samples, steps: r.options.Steps, visitor: c, plant: r.plant, limit: r.options.Limit}
	report := &Report{Plan: r.plan, Steps: r.options.Steps, Tolerance: r.options.Tolerance, Failure: w.run(ctx)}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	report.Rows = c.rows()
	if bad := c.bad(); report.Failure == nil && len(bad) > 0 {
		report.First = bad[0]
		report.Diagnosis, err = r.explain(ctx, c, bad)
	}
	return report, err
}

// explain looks for the reason of a difference.
func (r *proofRun) explain(ctx context.Context, c *comparison, bad []Row) (Diagnosis, error) {
	m, err := r.plan.Layout.Mesh()
	if err != nil {
		return Diagnosis{}, err
	}
	return (&inquiry{comparison: c, proof: r, mesh: m}).diagnose(ctx, bad)
}

// finite is the error of a difference: one that is not a number is the worst there is.
func finite(e float64) float64 {
	if math.IsNaN(e) {
		return math.Inf(1)
	}
	return e
}
