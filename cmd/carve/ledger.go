package main

import (
	"errors"
	"fmt"
	"io"

	"carve/cluster"
	"carve/ledger"
	"carve/parallel"
	"carve/plan"
	"carve/tensor"

	"github.com/spf13/cobra"
)

// ledgerOptions are the flags of carve ledger.
type ledgerOptions struct {
	plan    string
	threads int
	json    bool
}

func newLedger() *cobra.Command {
	var o ledgerOptions
	cmd := &cobra.Command{
		Use:   "ledger",
		Short: "Account for a plan's memory, line by line",
		Long: `Account for a plan's memory, line by line.

The plan's own program is run without numbers on one rank of every pipeline stage, at the full size, and every tensor that
is in use at the stage's peak has its place in a line: what it is for, its dtype and shape, the module that made it, and how
long it lives. A run of the plan measures the same peak, to the byte.

The memory is that of carve's own engine. What the program itself and other processes take is not in it.`,
		Example: `  carve ledger --plan plan.yaml
  carve ledger --plan plan.yaml --json`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runLedger(cmd.OutOrStdout(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.plan, "plan", "", "plan to account for")
	f.IntVar(&o.threads, "threads", 1, "threads of a rank: each has workspace")
	jsonFlag(cmd, &o.json)
	completeFiles(cmd, map[string][]string{"plan": {"yaml", "yml"}})
	return cmd
}

func (o ledgerOptions) check() error {
	if o.plan == "" {
		return errors.New("ledger: there is nothing to account for; name a plan with --plan")
	}
	if o.threads < 1 || o.threads > maxRanks {
		return fmt.Errorf("ledger: --threads %d; use 1 to %d", o.threads, maxRanks)
	}
	return nil
}

// runLedger accounts for one plan.
func runLedger(out io.Writer, o ledgerOptions) error {
	if err := o.check(); err != nil {
		return badInput(err)
	}
	p, err := readPlan(o.plan)
	if err != nil {
		return badInput(err)
	}
	if err := parallel.Check(p); err != nil {
		return badInput(inFile(o.plan, err))
	}
	l, err := ledger.Of(p, ledger.Options{Threads: o.threads, Kernels: kernelsOf(p)})
	if err != nil {
		return badInput(inFile(o.plan, err)) // a model that no layer is there for
	}
	if o.json {
		return printLedgerJSON(out, p, l)
	}
	return printLedger(out, p, l)
}

// kernelsOf says whose workspace counts: this CPU's where the plan runs here, else that of every CPU.
func kernelsOf(p plan.Plan) tensor.Kernels {
	if p.Cluster.Preset == cluster.ThisMachine {
		return tensor.NativeKernels
	}
	return tensor.PortableKernels
}
