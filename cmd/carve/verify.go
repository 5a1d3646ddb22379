package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"carve/parallel"
	"carve/plan"
	"carve/verify"

	"github.com/spf13/cobra"
)

// verifyOptions are the flags of carve verify.
type verifyOptions struct {
	plan   string
	steps  int
	inject string
	json   bool

	matrix bool
	sample int
	seed   uint64
	only   string

	runs      []string // two folders
	first     string   // of them, the flag's value
	tolerance float64

	given func(flag string) bool
}

func newVerify() *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove that a plan computes what one device computes",
		Long: `Prove that a plan computes what one device computes.

The plan is made small: sizes shrink, what makes it a layout stays. A few steps of it run in fp64 on local ranks, and on one
rank; the loss, every gradient after reduction, and every updated parameter are compared by name on every rank that holds a
piece. The pipeline's schedule and the groups of ranks are proved at the full size, without running.

Exit code 0 means equal, 1 that something differs or failed: then the first bad tensor is named, its rank, and what probably
went wrong.

--inject plants a fault, to see it caught:
` + faultList() + `

--matrix proves a built-in set of layouts instead of a plan: every two features that can occur together do in one of them.

--runs compares the losses and gradient norms that two runs have logged, step by step.`,
		Example: `  carve verify --plan plan.yaml
  carve verify --plan plan.yaml --steps 5 --json
  carve verify --plan plan.yaml --inject dropped-reduction
  carve verify --matrix
  carve verify --matrix --sample 20 --seed 7
  carve verify --matrix --only "zero 3"
  carve verify --runs runs/one runs/other`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.first == "" {
				return noArguments(cmd, args)
			}
			if o.runs = append([]string{o.first}, args...); len(o.runs) != 2 {
				return badInput(fmt.Errorf("verify: --runs compares 2 folders and was given %d; give two", len(o.runs)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, release := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer release()
			o.given = func(flag string) bool { return cmd.Flags().Changed(flag) }
			err := runVerify(ctx, cmd.OutOrStdout(), o)
			if ctx.Err() != nil {
				return errStopped
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.plan, "plan", "", "plan to prove")
	f.IntVar(&o.steps, "steps", verify.Steps, "steps to compare")
	f.StringVar(&o.inject, "inject", "", "fault to plant")
	f.BoolVar(&o.matrix, "matrix", false, "prove the built-in set of layouts")
	f.IntVar(&o.sample, "sample", 0, "of the matrix, prove as many layouts, chosen by --seed (default: all)")
	f.Uint64Var(&o.seed, "seed", 1, "seed of --sample")
	f.StringVar(&o.only, "only", "", "of the matrix, prove the layouts whose description has this text")
	f.StringVar(&o.first, "runs", "", "compare the run in this folder with that in the folder that follows")
	f.Float64Var(&o.tolerance, "tolerance", verify.CurveTolerance, "largest relative difference of the losses of --runs")
	jsonFlag(cmd, &o.json)
	completeWords(cmd, "inject", faultWords()...)
	completeFiles(cmd, map[string][]string{"plan": {"yaml", "yml"}, "runs": nil})
	return cmd
}

// faultWords are the names of the faults.
func faultWords() (words []string) {
	for _, f := range verify.Faults() {
		words = append(words, f.String())
	}
	return words
}

// faultList is a line a fault.
func faultList() string {
	var b strings.Builder
	for _, f := range verify.Faults() {
		fmt.Fprintf(&b, "  %-18s %s\n", f, f.What())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// maxVerifySteps bounds --steps: the batches of all steps are made at once.
const maxVerifySteps = 1000

func (o verifyOptions) check() error {
	switch {
	case o.runs != nil && (o.plan != "" || o.matrix || o.inject != ""):
		return errors.New("verify: --runs compares what was logged; leave --plan, --matrix and --inject out")
	case o.runs != nil:
		return nil
	case o.given("tolerance"):
		return errors.New("verify: --tolerance is that of --runs; leave it out")
	case o.plan == "" && !o.matrix:
		return errors.New("verify: there is nothing to prove; name a plan with --plan, or use --matrix")
	case o.plan != "" && o.matrix:
		return errors.New("verify: --plan and --matrix exclude each other; give one of them")
	case o.steps < 1 || o.steps > maxVerifySteps:
		return fmt.Errorf("verify: --steps %d; use 1 to %d", o.steps, maxVerifySteps)
	case o.matrix && o.inject != "":
		return errors.New("verify: --inject plants a fault into a plan; leave --matrix out")
	case o.given("sample") && o.sample < 1:
		return fmt.Errorf("verify: --sample %d; use 1 or more", o.sample)
	}
	for _, flag := range []string{"sample", "seed", "only"} {
		if o.given(flag) && !o.matrix {
			return fmt.Errorf("verify: --%s chooses among the layouts of --matrix; leave it out", flag)
		}
	}
	return nil
}

// runVerify proves one plan.
func runVerify(ctx context.Context, out io.Writer, o verifyOptions) error {
	if err := o.check(); err != nil {
		return badInput(err)
	}
	if o.runs != nil {
		return runCurves(out, o)
	}
	if o.matrix {
		return runMatrix(ctx, out, o)
	}
	p, err := readPlan(o.plan)
	if err != nil {
		return badInput(err)
	}
	small, options := verify.Shrink(p), verify.Options{Steps: o.steps}
	if o.inject != "" {
		if options.Fault, err = verify.ParseFault(o.inject); err != nil {
			return badInput(err)
		}
	}
	if err := errors.Join(parallel.Check(small), options.Fault.Place(small)); err != nil {
		return badInput(inFile(o.plan, err))
	}
	proof := proof{full: p, small: small, static: verify.Check(p)}
	if proof.report, err = verify.Run(ctx, small, options); err != nil {
		return err
	}
	if o.json {
		err = proof.printJSON(out)
	} else {
		err = proof.print(out)
	}
	return errors.Join(err, proof.verdict())
}

// proof is what was found about a plan.
type proof struct {
	full, small plan.Plan
	static      verify.Static
	report      *verify.Report
}

// verdict is nil when all is equal, and else an error that says what is not.
func (p proof) verdict() error { return errors.Join(p.static.Fault, p.report.Verdict()) }
