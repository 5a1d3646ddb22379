package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// execute runs one command line and returns its exit code.
func execute(args []string, in io.Reader, out, errOut io.Writer) int {
	failingWrites()
	results := &checkedWriter{to: out}
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(results)
	root.SetErr(errOut)
	err := root.ExecuteContext(context.Background())
	if err == nil && results.err != nil {
		err = fmt.Errorf("the output could not be written: %w", results.err)
	}
	printError(errOut, err)
	return exitCode(err)
}

// checkedWriter remembers the first error of writing, so that output that is lost fails the verb even where the writer of
// the moment, such as the printer of helps, does not look.
type checkedWriter struct {
	to  io.Writer
	err error
}

// Write implements [io.Writer].
func (w *checkedWriter) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if w.err == nil {
		w.err = err
	}
	return n, err
}

// newRoot makes the command tree.
func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "carve",
		Short: "Plan, prove, run and serve language models that are split over many devices",
		Long: `carve decides how a large language model is split over many devices, proves the split equal to one
device, runs it and serves it.

Start with "carve train": it trains a small Transformer on Go's own source, on every core of this machine.`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownVerb,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(newTrain(), newVerify(), newExplain(), newPlan(), newLedger(), newSimulate(), newPrice(), newFidelity(), newFit(), newGenerate(), newBench(), newTrace(), newDoctor(), newVersion())
	root.SetHelpCommand(newHelp())
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Name() == "completion" {
			c.Args, c.RunE = knownVerb, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
		}
	}
	return root
}

// newHelp is the verb that prints the help of another.
func newHelp() *cobra.Command {
	return &cobra.Command{
		Use:   "help [command]",
		Short: "Help about any command",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return knownVerb(found, rest)
			}
			return found.Help()
		},
	}
}

// newGroup makes a verb that only holds other verbs.
func newGroup(use, short string, verbs ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  knownVerb,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(verbs...)
	return group
}
