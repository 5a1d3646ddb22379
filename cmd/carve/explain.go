package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"carve/explain"

	"github.com/spf13/cobra"
)

// explainOptions are the flags of carve explain.
type explainOptions struct {
	plan string
	json bool
	svg  string
}

func newExplain() *cobra.Command {
	var o explainOptions
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Say what a plan splits, sends and holds",
		Long: `Say what a plan splits, sends and holds, at its full size, without running it.

For every axis above 1: what is split, what stays replicated, which collectives restore the single-device result, over which
links, and whether they are hidden behind computing. Then the state graph (every class of tensors: shape, split,
replication, bytes, lifetime), the communication graph (every kind of operation: group, phase, calls, bytes, link), the peak of
memory of every recorded stage, the pipeline's schedule, and the ranks on the nodes.

The numbers are counted on the plan's own program, recorded on one rank of every stage (of eight at the most) with shapes in
place of tensors. Workspace is that of carve's portable kernels on one thread. docs/explain.md explains the words and the JSON.`,
		Example: `  carve explain --plan plan.yaml
  carve explain --plan plan.yaml --json
  carve explain --plan plan.yaml --svg plan.svg`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runExplain(cmd.OutOrStdout(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.plan, "plan", "", "plan to explain")
	f.StringVar(&o.svg, "svg", "", "write a drawing to this file instead")
	jsonFlag(cmd, &o.json)
	completeFiles(cmd, map[string][]string{"plan": {"yaml", "yml"}, "svg": {"svg"}})
	return cmd
}

// runExplain explains one plan.
func runExplain(out io.Writer, o explainOptions) error {
	switch {
	case o.plan == "":
		return badInput(errors.New("explain: there is nothing to explain; name a plan with --plan"))
	case o.json && o.svg != "":
		return badInput(errors.New("explain: --json and --svg write two different things; ask for one at a time"))
	}
	p, err := readPlan(o.plan)
	if err != nil {
		return badInput(err)
	}
	r, err := explain.Explain(p)
	if err != nil {
		return badInput(inFile(o.plan, err))
	}
	switch {
	case o.json:
		return printJSON(out, r)
	case o.svg != "":
		return writeDrawing(o.svg, explain.SVG(r))
	}
	_, err = io.WriteString(out, explanation(r))
	return err
}

// writeDrawing writes a file. A name that cannot be written to is the user's to correct; a full disk is not.
func writeDrawing(path, drawing string) error {
	f, err := os.Create(path)
	if err != nil {
		return badInput(fmt.Errorf("explain: %w; name a file in an existing folder that you may write to with --svg", err))
	}
	_, err = io.WriteString(f, drawing)
	if err := errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("explain: %w; free some space, or name a file elsewhere with --svg", err)
	}
	return nil
}
