package main

import (
	"fmt"
	"io"
	"math"
	"strings"

	"carve/cmd/carve/internal/terminal"
	"carve/plan"
	"carve/verify"
)

// tensorEvent is a row of carve verify --json.
type tensorEvent struct {
	Event string  `json:"event"` // "tensor"
	Name  string  `json:"name"`
	Kind  string  `json:"kind"` // "loss", "grad" or "param"
	Error float64 `json:"max_rel_err"`
	Step  int     `json:"step"`
	Rank  int     `json:"rank"` // -1 for a sum over all
}

// summaryEvent ends carve verify --json.
type summaryEvent struct {
	Event   string        `json:"event"` // "summary"
	Layout  string        `json:"layout"`
	OK      bool          `json:"ok"`
	Worst   float64       `json:"worst"`
	World   int           `json:"world"`
	Steps   int           `json:"steps"`
	Static  *staticEvent  `json:"static,omitempty"`
	Rounded *roundedEvent `json:"rounded,omitempty"`
	First   *firstEvent   `json:"first_bad,omitempty"`
	Fault   string        `json:"fault,omitempty"` // everything that is wrong, in words
}

// roundedEvent compares losses in the plan's own precision.
type roundedEvent struct {
	Precision string  `json:"precision"`
	Error     float64 `json:"max_rel_err"`
	Tolerance float64 `json:"tolerance"`
}

// firstEvent is the first bad tensor of a proof, and what its evidence points at.
type firstEvent struct {
	Name      string  `json:"name"`
	Kind      string  `json:"kind"`
	Error     float64 `json:"max_rel_err"`
	Step      int     `json:"step"`
	Rank      int     `json:"rank"`
	Diagnosis string  `json:"diagnosis"` // the name of a fault, or "none"
	Culprit   int     `json:"culprit"`   // rank; -1 for none in particular
	Operation string  `json:"operation"`
}

// staticEvent is what was proved at the full size.
type staticEvent struct {
	DeadlockFree bool  `json:"deadlock_free"`
	PeakInFlight []int `json:"peak_in_flight"`
	Actions      int   `json:"actions"`
}

// numeric makes an error printable in JSON, which has no infinity.
func numeric(e float64) float64 { return min(e, math.MaxFloat64) }

// printJSON writes a row a tensor, and the summary.
func (p proof) printJSON(out io.Writer) error {
	for _, r := range p.report.Rows {
		if err := printJSON(out, tensorEvent{"tensor", r.Name, r.Kind.String(), numeric(r.Error), r.Step, r.Rank}); err != nil {
			return err
		}
	}
	return printJSON(out, p.summary())
}

// summary is the end of a proof.
func (p proof) summary() summaryEvent {
	r := p.report
	s := summaryEvent{
		Event: "summary", Layout: verify.Describe(p.full), OK: true, Worst: numeric(r.Worst().Error),
		World: r.Plan.Layout.World(), Steps: r.Steps,
		Static: &staticEvent{p.static.DeadlockFree, p.static.PeakInFlight, p.static.Actions},
	}
	if err := p.verdict(); err != nil {
		s.OK, s.Fault = false, err.Error()
	}
	if d := r.Rounded; d != nil {
		s.Rounded = &roundedEvent{d.Precision.String(), numeric(d.Error), d.Tolerance}
	}
	if f, d := r.First, r.Diagnosis; f.Step > 0 {
		s.First = &firstEvent{f.Name, f.Kind.String(), numeric(f.Error), f.Step, f.Rank, d.Fault.String(), d.Rank, d.Operation}
	}
	return s
}

// shownRows is how many tensors of a kind a person sees; --json has all.
const shownRows = 5

// print writes the proof for people.
func (p proof) print(out io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "plan     %s\n", verify.Describe(p.full))
	fmt.Fprintf(&b, "proved   %s\n", verify.Describe(p.report.Plan))
	if p.full.Precision != plan.FP64 {
		fmt.Fprintf(&b, "         in fp64, so that what differs is wrong and not rounded; then the losses in %v\n", p.full.Precision)
	}
	fmt.Fprintf(&b, "static   %s\n\n", p.static)
	b.WriteString(terminal.Table([]string{"kind", "tensors", "worst", " relative error", " step", "rank"}, p.rows()))
	b.WriteString("\n" + p.sentence() + "\n")
	_, err := io.WriteString(out, b.String())
	return err
}

// rows are the worst tensors of every kind.
func (p proof) rows() (rows [][]string) {
	for _, kind := range []verify.Kind{verify.Loss, verify.Gradient, verify.Parameter} {
		all := p.report.Of(kind)
		for i, r := range all[:min(len(all), shownRows)] {
			row := []string{"", "", r.Name, fmt.Sprintf("%.1e", r.Error), fmt.Sprint(r.Step), fmt.Sprint(r.Rank)}
			if i == 0 {
				row[0], row[1] = kind.String(), fmt.Sprint(len(all))
			}
			if r.Rank < 0 {
				row[5] = "all"
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// sentence sums the proof up.
func (p proof) sentence() string {
	r := p.report
	if p.verdict() == nil {
		text := fmt.Sprintf("equal: %d ranks compute what one computes, %d steps, worst relative error %.1e (tolerance %.0e)",
			r.Plan.Layout.World(), r.Steps, r.Worst().Error, r.Tolerance)
		if r.Rounded != nil {
			text += fmt.Sprintf("\n       %v", r.Rounded)
		}
		return text
	}
	return fmt.Sprintf("NOT equal: %d ranks, %d steps, worst relative error %.1e (tolerance %.0e)",
		r.Plan.Layout.World(), r.Steps, r.Worst().Error, r.Tolerance)
}
