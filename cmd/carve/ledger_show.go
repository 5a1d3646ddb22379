package main

import (
	"fmt"
	"io"
	"strings"

	"carve/cmd/carve/internal/terminal"
	"carve/ledger"
	"carve/plan"
	"carve/tensor"
	"carve/unit"
	"carve/verify"
)

// lineEvent is a line of carve ledger --json.
type lineEvent struct {
	Event    string     `json:"event"` // "line"
	Stage    int        `json:"stage"`
	Category string     `json:"category"`
	DType    string     `json:"dtype"`
	Shape    []int      `json:"shape"`
	Module   string     `json:"module"`
	Lifetime string     `json:"lifetime"`
	Tensors  int        `json:"tensors"`
	Bytes    unit.Bytes `json:"bytes"`
	Copies   float64    `json:"copies,omitempty"` // ranks that hold the same, of states
}

// stageEvent is a stage of carve ledger --json.
type stageEvent struct {
	Event      string                `json:"event"` // "stage"
	Stage      int                   `json:"stage"`
	Rank       int                   `json:"rank"`
	Peak       unit.Bytes            `json:"peak_bytes"`
	Steady     unit.Bytes            `json:"steady_bytes"`
	Categories map[string]unit.Bytes `json:"categories"`
	Phase      string                `json:"phase"`
	Action     string                `json:"action"`
	At         string                `json:"module"`
}

// ledgerEvent ends carve ledger --json.
type ledgerEvent struct {
	Event    string     `json:"event"` // "summary"
	Layout   string     `json:"layout"`
	Peak     unit.Bytes `json:"peak_bytes"`
	Stage    int        `json:"stage"` // that has it
	Capacity unit.Bytes `json:"capacity_bytes,omitempty"`
	Fits     *bool      `json:"fits,omitempty"`
}

// printLedgerJSON writes every line and stage, and the summary.
func printLedgerJSON(out io.Writer, p plan.Plan, l *ledger.Ledger) error {
	for _, s := range l.Stages {
		for _, line := range s.Lines {
			e := lineEvent{
				"line", s.Pipeline, line.Category.String(), line.DType.String(), line.Shape, line.Module, line.Lifetime.String(),
				line.Tensors, line.Bytes, copiesOf(s, line),
			}
			if err := printJSON(out, e); err != nil {
				return err
			}
		}
		e := stageEvent{"stage", s.Pipeline, s.Rank, s.Peak, s.Steady, map[string]unit.Bytes{}, s.Moment.Phase, s.Moment.Action, s.Moment.Module}
		for _, c := range tensor.Categories() {
			e.Categories[c.String()] = s.Usage.Of(c)
		}
		if err := printJSON(out, e); err != nil {
			return err
		}
	}
	high := l.Highest()
	e := ledgerEvent{Event: "summary", Layout: verify.Describe(p), Peak: high.Peak, Stage: high.Pipeline}
	if p.Cluster.Known() {
		e.Capacity = p.Cluster.Machine.Device.Memory
		fits := e.Peak <= e.Capacity
		e.Fits = &fits
	}
	return printJSON(out, e)
}

// copiesOf is how many ranks hold the same as a line; 0 for what is nobody's copy.
func copiesOf(s ledger.Stage, l ledger.Line) float64 {
	switch {
	case l.Lifetime != ledger.Run:
	case l.Category == tensor.Parameter:
		return s.Copies.Parameters
	case l.Category == tensor.Gradient:
		return s.Copies.Gradients
	case l.Category == tensor.Optimizer:
		return s.Copies.Optimizer
	}
	return 0
}

// shownLines is how many lines of a stage a person sees; --json has all.
const shownLines = 16

// printLedger writes the account for people: all stages by category, and the lines of the highest.
func printLedger(out io.Writer, p plan.Plan, l *ledger.Ledger) error {
	var b strings.Builder
	high := l.Highest()
	fmt.Fprintf(&b, "plan     %s\n", verify.Describe(p))
	fmt.Fprintf(&b, "peak     %v on stage %d of %d, in %s%s\n", high.Peak, high.Pipeline, len(l.Stages), high.Moment.Phase, moment(high.Moment))
	if p.Cluster.Known() {
		fmt.Fprintf(&b, "device   %v\n", room(p.Cluster.Machine.Device.Memory, high.Peak))
	}
	b.WriteString("\n" + stageTable(l) + "\n")
	fmt.Fprintf(&b, "stage %d, line by line\n\n%s", high.Pipeline, lineTable(high))
	_, err := io.WriteString(out, b.String())
	return err
}

// moment is where in the step a peak is.
func moment(m ledger.Moment) string {
	text := ""
	if m.Action != "" {
		text += " of " + m.Action
	}
	if m.Module != "" {
		text += ", at " + m.Module
	}
	return text
}

// room says whether a peak fits a device.
func room(capacity, peak unit.Bytes) string {
	if peak <= capacity {
		return fmt.Sprintf("%v, of which %v are left", capacity, capacity-peak)
	}
	return fmt.Sprintf("%v: the peak does NOT fit, %v are missing", capacity, peak-capacity)
}

// stageTable has a row for each stage and a column for each category.
func stageTable(l *ledger.Ledger) string {
	heading := []string{" stage", " peak"}
	categories := used(l)
	for _, c := range categories {
		heading = append(heading, " "+c.String())
	}
	var rows [][]string
	for _, s := range l.Stages {
		row := []string{fmt.Sprint(s.Pipeline), s.Peak.String()}
		for _, c := range categories {
			row = append(row, s.Usage.Of(c).String())
		}
		rows = append(rows, row)
	}
	return terminal.Table(heading, rows)
}

// used are the categories that a stage has any of.
func used(l *ledger.Ledger) (categories []tensor.Category) {
	for _, c := range tensor.Categories() {
		for _, s := range l.Stages {
			if s.Usage.Of(c) > 0 {
				categories = append(categories, c)
				break
			}
		}
	}
	return categories
}

// lineTable is the largest lines of a stage and the sum of the rest.
func lineTable(s ledger.Stage) string {
	var rows [][]string
	rest, more := unit.Bytes(0), 0
	for i, l := range s.Lines {
		if i >= shownLines {
			rest += l.Bytes
			more++
			continue
		}
		copies := "-"
		if c := copiesOf(s, l); c > 0 {
			copies = fmt.Sprintf("%.4g", c)
		}
		rows = append(rows, []string{
			l.Bytes.String(), l.Category.String(), fmt.Sprintf("%d x %s %s", l.Tensors, l.DType, shapeText(l.Shape)), l.Module, l.Lifetime.String(), copies,
		})
	}
	if more > 0 {
		rows = append(rows, []string{rest.String(), fmt.Sprintf("%d more lines", more), "", "", "", ""})
	}
	return terminal.Table([]string{" bytes", "for", "what", "module", "lives", " copies"}, rows)
}

// shapeText is a shape as 4x16.
func shapeText(shape []int) string {
	return strings.ReplaceAll(strings.Trim(fmt.Sprint(shape), "[]"), " ", "x")
}
