package main

import (
	"context"
	"io"

	"github.com/spf13/cobra"
)

// execute runs one command line and returns its exit code.
func execute(args []string, in io.Reader, out, errOut io.Writer) int {
	failingWrites()
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(context.Background())
	printError(errOut, err)
	return exitCode(err)
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
	root.AddCommand(newTrain(), newGenerate(), newBench(), newDoctor(), newVersion())
	return root
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
