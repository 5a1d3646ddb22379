package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"carve/cmd/carve/internal/terminal"
	"carve/fidelity"
	"carve/unit"

	"github.com/spf13/cobra"
)

// fidelityOptions are the flags of carve fidelity, price and fit.
type fidelityOptions struct {
	runs   string
	rounds int
	out    string
	json   bool
}

func newFidelity() *cobra.Command {
	var o fidelityOptions
	cmd := &cobra.Command{
		Use:   "fidelity",
		Short: "Compare prices with published runs",
		Long: `Compare prices with published runs.

Every run of the file is priced from what its source states, and from what the row says to assume where the source is silent. Errors are
predicted over measured, less one. Rows that do not count are listed with the reason in --json.`,
		Example: `  carve fidelity --runs fidelity/testdata/runs.json
  carve fidelity --runs runs.json --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runFidelity(cmd.OutOrStdout(), o) },
	}
	cmd.Flags().StringVar(&o.runs, "runs", "", "file of runs")
	jsonFlag(cmd, &o.json)
	completeFiles(cmd, map[string][]string{"runs": {"json"}})
	return cmd
}

func newPrice() *cobra.Command {
	var o fidelityOptions
	cmd := &cobra.Command{
		Use:   "price",
		Short: "Price one run that is described as published runs are",
		Long: `Price one run that is described as published runs are: time of a step and memory of a rank, by the closed form and the profile
of the run's framework. Where the run was measured, the error is shown.`,
		Example: `  carve price --run row.json
  carve price --run row.json --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runPrice(cmd.OutOrStdout(), o) },
	}
	cmd.Flags().StringVar(&o.runs, "run", "", "file of the run")
	jsonFlag(cmd, &o.json)
	completeFiles(cmd, map[string][]string{"run": {"json"}})
	return cmd
}

func newFit() *cobra.Command {
	var o fidelityOptions
	cmd := &cobra.Command{
		Use:   "fit",
		Short: "Fit the constants of devices and frameworks to published runs",
		Long: `Fit the constants of devices and frameworks to published runs.

Constants belong to a kind of device or to a framework, never to a run. The fit begins with those that the program has, and writes
constants.json and profiles.json of the same form to a folder, for cost/ and price/ of the source tree.`,
		Example: `  carve fit --runs fidelity/testdata/runs.json --out fitted`,
		Args:    noArguments,
		RunE:    func(cmd *cobra.Command, _ []string) error { return runFit(cmd.OutOrStdout(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.runs, "runs", "", "file of runs")
	f.IntVar(&o.rounds, "rounds", 20, "times that every constant is moved")
	f.StringVar(&o.out, "out", "", "folder for the constants")
	jsonFlag(cmd, &o.json)
	return cmd
}

// maxRunsFile bounds a file of runs.
const maxRunsFile = 64 << 20

// read reads the runs and the constants.
func (o fidelityOptions) read(verb, flag string) (runs []fidelity.Run, b fidelity.Book, err error) {
	if o.runs == "" {
		return nil, b, badInput(fmt.Errorf("%s: there is nothing to price; name a file with --%s", verb, flag))
	}
	f, err := os.Open(o.runs)
	if err != nil {
		return nil, b, badInput(fmt.Errorf("%s: %w; name a file of runs", verb, err))
	}
	text, err := io.ReadAll(io.LimitReader(f, maxRunsFile))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, b, badInput(fmt.Errorf("%s: %w; name a file of runs", verb, err))
	}
	if runs, err = fidelity.Read(text); err != nil {
		return nil, b, badInput(inFile(o.runs, err))
	}
	b, err = fidelity.NewBook()
	return runs, b, err
}

// summaryLine is a line of carve fidelity --json after the rows.
type summaryLine struct {
	Event string `json:"event"` // "summary"
	fidelity.Summary
}

// rowLine is a row of carve fidelity --json.
type rowLine struct {
	Event string `json:"event"` // "row"
	fidelity.Row
}

// runFidelity prices all runs.
func runFidelity(out io.Writer, o fidelityOptions) error {
	runs, b, err := o.read("fidelity", "runs")
	if err != nil {
		return err
	}
	var rows []fidelity.Row
	for i := range runs {
		ready := fidelity.Prepare(&runs[i])
		rows = append(rows, ready.Price(&b).Rows...)
	}
	sums := fidelity.Summarize(runs, rows)
	if !o.json {
		return printFidelity(out, rows, sums)
	}
	for _, r := range rows {
		if err := printJSON(out, rowLine{"row", r}); err != nil {
			return err
		}
	}
	for _, s := range sums {
		if err := printJSON(out, summaryLine{"summary", s}); err != nil {
			return err
		}
	}
	return nil
}

// printFidelity writes the summaries for people.
func printFidelity(out io.Writer, rows []fidelity.Row, sums []fidelity.Summary) error {
	counting := 0
	for _, r := range rows {
		if r.Counts {
			counting++
		}
	}
	percent := func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }
	var table [][]string
	for _, s := range sums {
		table = append(table, []string{s.Kind, s.By, s.Name, fmt.Sprint(s.Rows), percent(s.Median), percent(s.P90), percent(s.Worst), fmt.Sprintf("%+.1f %%", 100*s.Bias)})
	}
	_, err := fmt.Fprintf(out, "%d figures, of which %d count; absolute relative errors, configurations weighing the same\n\n%s", len(rows), counting,
		terminal.Table([]string{"of", "by", "", " rows", " median", " 90th", " worst", " bias"}, table))
	return err
}

// priceEvent is what carve price --json prints.
type priceEvent struct {
	Event string                  `json:"event"` // "price"
	ID    string                  `json:"id"`
	Step  unit.Seconds            `json:"step_seconds"`
	Peak  unit.Bytes              `json:"peak_bytes"`
	Parts map[string]unit.Seconds `json:"parts"`
	Bytes map[string]unit.Bytes   `json:"bytes"`
	Rows  []fidelity.Row          `json:"rows"`
}

// runPrice prices one run.
func runPrice(out io.Writer, o fidelityOptions) error {
	runs, b, err := o.read("price", "run")
	if err != nil {
		return err
	}
	for i := range runs {
		ready := fidelity.Prepare(&runs[i])
		p := ready.Price(&b)
		if p.Time.Step == 0 {
			return badInput(inFile(o.runs, fmt.Errorf("price: %s: %s", runs[i].ID, p.Rows[0].Why)))
		}
		if err := printPrice(out, o, runs[i].ID, p); err != nil {
			return err
		}
	}
	return nil
}

// printPrice writes one price.
func printPrice(out io.Writer, o fidelityOptions, id string, p fidelity.Priced) error {
	t, m := p.Time, p.Memory
	if o.json {
		return printJSON(out, priceEvent{
			"price", id, t.Step, m.Peak,
			map[string]unit.Seconds{"compute": t.Compute, "bubble": t.Bubble, "tp": t.TP, "cp": t.CP, "ep": t.EP, "pp": t.PP, "dp": t.DP, "update": t.Update},
			map[string]unit.Bytes{"parameters": m.Parameters, "gradients": m.Gradients, "optimizer": m.Optimizer, "activations": m.Activations, "logits": m.Head, "transient": m.Transient},
			p.Rows,
		})
	}
	if _, err := fmt.Fprintf(out, "%s\nstep     %v: computing %v, bubble %v, exposed: tensor %v, context %v, experts %v, stages %v, data %v; optimizer %v\nmemory   %v: parameters %v, gradients %v, optimizer %v, activations %v, logits %v, transient %v\n",
		id, t.Step, t.Compute, t.Bubble, t.TP, t.CP, t.EP, t.PP, t.DP, t.Update,
		m.Peak, m.Parameters, m.Gradients, m.Optimizer, m.Activations, m.Head, m.Transient); err != nil {
		return err
	}
	for _, r := range p.Rows {
		if r.Measured > 0 {
			if _, err := fmt.Fprintf(out, "measured %s %.4g, priced %.4g: %+.1f %%\n", r.Kind, r.Measured, r.Predicted, 100*r.Error); err != nil {
				return err
			}
		}
	}
	return nil
}

// fitEvent is what carve fit --json prints.
type fitEvent struct {
	Event  string  `json:"event"` // "fit"
	Before float64 `json:"loss_before"`
	After  float64 `json:"loss_after"`
}

// runFit fits the constants.
func runFit(out io.Writer, o fidelityOptions) error {
	if o.rounds < 1 || o.rounds > 1000 {
		return badInput(fmt.Errorf("fit: --rounds %d; use 1 to 1000", o.rounds))
	}
	runs, b, err := o.read("fit", "runs")
	if err != nil {
		return err
	}
	ready := make([]fidelity.Ready, len(runs))
	for i := range runs {
		ready[i] = fidelity.Prepare(&runs[i])
	}
	before, after := b.Fit(ready, o.rounds)
	if o.out != "" {
		err := errors.Join(os.MkdirAll(o.out, 0o755), writeIndented(filepath.Join(o.out, "constants.json"), b.Devices), writeIndented(filepath.Join(o.out, "profiles.json"), b.Profiles))
		if err != nil {
			return fmt.Errorf("fit: %w", err)
		}
	}
	if o.json {
		return printJSON(out, fitEvent{"fit", before, after})
	}
	_, err = fmt.Fprintf(out, "mean of the errors' logarithms: %.4f before, %.4f after %d rounds\n", before, after, o.rounds)
	return err
}

// writeIndented writes a file for people and programs.
func writeIndented(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}
