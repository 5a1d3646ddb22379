package main

import (
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"carve/cmd/carve/internal/terminal"
	"carve/verify"
)

// curveEvent is a row of carve verify --runs --json: of the second run minus the first, over the steps that both have.
type curveEvent struct {
	Event    string   `json:"event"`    // "curve"
	Quantity string   `json:"quantity"` // "loss" or "grad_norm"
	Steps    int      `json:"steps"`
	Mean     float64  `json:"mean"`
	Error    *float64 `json:"standard_error"` // null below four steps
	Max      float64  `json:"max"`
	MaxStep  int      `json:"max_step"`
	Relative float64  `json:"max_rel"`
	Final    float64  `json:"final"` // mean over the last tenth
}

// runsEvent ends it.
type runsEvent struct {
	Event     string  `json:"event"` // "runs"
	OK        bool    `json:"ok"`
	Worst     float64 `json:"worst"` // largest relative difference of the loss
	Tolerance float64 `json:"tolerance"`
	Steps     int     `json:"steps"`
}

// runCurves compares the loss curves of two runs.
func runCurves(out io.Writer, o verifyOptions) error {
	var curves [2]verify.Curve
	for i, folder := range o.runs {
		var err error
		if curves[i], err = readCurve(folder); err != nil {
			return badInput(err)
		}
	}
	loss, norm, err := verify.CompareCurves(curves[0], curves[1])
	if err != nil {
		return badInput(err)
	}
	end := runsEvent{"runs", loss.Relative <= o.tolerance, numeric(loss.Relative), o.tolerance, loss.Steps}
	if o.json {
		err = printCurves(out, loss, norm, end)
	} else {
		err = showCurves(out, loss, norm, end)
	}
	if err == nil && !end.OK {
		err = fmt.Errorf("verify: the loss of the runs differs by up to %.1e of itself, at step %d; the tolerance is %g", loss.Relative, loss.MaxStep, o.tolerance)
	}
	return err
}

// readCurve reads the metrics of a run's folder.
func readCurve(folder string) (verify.Curve, error) {
	path := filepath.Join(folder, "metrics.jsonl")
	f, err := os.Open(path)
	if err != nil {
		return verify.Curve{}, fmt.Errorf("verify: %w; give the folder of a run", err)
	}
	defer f.Close()
	c, err := verify.ReadCurve(f)
	if err != nil {
		return c, inFile(path, err)
	}
	return c, nil
}

// printCurves writes the comparison for scripts.
func printCurves(out io.Writer, loss, norm verify.Difference, end runsEvent) error {
	row := func(quantity string, d verify.Difference) error {
		e := curveEvent{"curve", quantity, d.Steps, d.Mean, &d.Error, numeric(d.Max), d.MaxStep, numeric(d.Relative), d.Final}
		if math.IsNaN(d.Error) {
			e.Error = nil
		}
		return printJSON(out, e)
	}
	if err := row("loss", loss); err != nil {
		return err
	}
	if err := row("grad_norm", norm); err != nil {
		return err
	}
	return printJSON(out, end)
}

// showCurves writes it for people.
func showCurves(out io.Writer, loss, norm verify.Difference, end runsEvent) error {
	row := func(name string, d verify.Difference) []string {
		e := "not known"
		if !math.IsNaN(d.Error) {
			e = fmt.Sprintf("%.1e", d.Error)
		}
		return []string{
			name, fmt.Sprint(d.Steps), fmt.Sprintf("%+.2e", d.Mean), e,
			fmt.Sprintf("%.1e", d.Max), fmt.Sprint(d.MaxStep), fmt.Sprintf("%.1e", d.Relative), fmt.Sprintf("%+.2e", d.Final),
		}
	}
	table := terminal.Table([]string{"second minus first", " steps", " mean", " std. error", " largest", " at step", " relative", " last tenth"},
		[][]string{row("loss", loss), row("gradient norm", norm)})
	word := "equal"
	if !end.OK {
		word = "NOT equal"
	}
	_, err := fmt.Fprintf(out, "%s\n%s: losses over %d steps, largest relative difference %.1e (tolerance %g)\n", table, word, end.Steps, end.Worst, end.Tolerance)
	return err
}
