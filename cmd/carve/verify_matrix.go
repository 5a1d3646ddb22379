package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"carve/internal/document"
	"carve/plan"
	"carve/verify"
)

// matrixEvent ends carve verify --matrix --json.
type matrixEvent struct {
	Event   string  `json:"event"` // "matrix"
	Layouts int     `json:"layouts"`
	Failed  int     `json:"failed"`
	Worst   float64 `json:"worst"`
}

// layouts are those of the matrix that the flags choose, and how many there are.
func (o verifyOptions) layouts() (plans []plan.Plan, all int, err error) {
	matrix := verify.Matrix()
	for _, p := range matrix {
		if strings.Contains(verify.Describe(p), o.only) {
			plans = append(plans, p)
		}
	}
	if plans == nil {
		return nil, 0, fmt.Errorf("verify: no layout of the matrix has %q in its description; leave --only out to see all", document.Clip(o.only))
	}
	if o.sample > 0 {
		plans = verify.Sample(plans, o.sample, o.seed)
	}
	return plans, len(matrix), nil
}

// runMatrix proves the layouts of the matrix one after the other.
func runMatrix(ctx context.Context, out io.Writer, o verifyOptions) error {
	plans, all, err := o.layouts()
	if err != nil {
		return badInput(err)
	}
	sum := matrixEvent{Event: "matrix", Layouts: len(plans)}
	for _, p := range plans {
		one := proof{full: p, small: p, static: verify.Check(p)}
		if one.report, err = verify.Run(ctx, p, verify.Options{Steps: o.steps}); err != nil {
			return fmt.Errorf("%s: %w", verify.Describe(p), err)
		}
		sum.Worst = max(sum.Worst, numeric(one.report.Worst().Error))
		if one.verdict() != nil {
			sum.Failed++
		}
		show := one.printRow
		if o.json {
			show = one.printSummary
		}
		if err := show(out); err != nil {
			return err
		}
	}
	if o.json {
		err = printJSON(out, sum)
	} else {
		err = sum.print(out, all)
	}
	if err == nil && sum.Failed > 0 {
		err = fmt.Errorf("verify: %d of %d layouts are not equal to one device", sum.Failed, sum.Layouts)
	}
	return err
}

// printRow writes one layout of the matrix.
func (p proof) printRow(out io.Writer) error {
	word, after := "ok", ""
	if err := p.verdict(); err != nil {
		word, after = "BAD", "\n      "+strings.ReplaceAll(err.Error(), "\n", "\n      ")
	}
	_, err := fmt.Fprintf(out, "%-4s  %.1e  %s%s\n", word, p.report.Worst().Error, verify.Describe(p.full), after)
	return err
}

// printSummary is printRow for scripts.
func (p proof) printSummary(out io.Writer) error { return printJSON(out, p.summary()) }

// print sums the matrix up for people.
func (m matrixEvent) print(out io.Writer, all int) error {
	word := "equal"
	if m.Failed > 0 {
		word = fmt.Sprintf("NOT equal: %d", m.Failed)
	}
	_, err := fmt.Fprintf(out, "\n%s: %d of %d layouts, worst relative error %.1e (tolerance %.0e)\n", word, m.Layouts, all, m.Worst, verify.Tolerance)
	return err
}
