package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"carve/cost"
	"carve/parallel"
	"carve/plan"
	"carve/record"
	"carve/sim"
	"carve/trace"
	"carve/unit"

	"github.com/spf13/cobra"
)

// simulateOptions are the flags of carve simulate.
type simulateOptions struct {
	plan       string
	trace      string
	slow       []string
	mtbf       float64 // hours of one device
	restart    float64 // seconds
	pause      float64 // seconds
	json       bool
	stragglers []sim.Straggler
}

func newSimulate() *cobra.Command {
	var o simulateOptions
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Say how long a step of a plan takes on its cluster, and where the time goes",
		Long: `Say how long a step of a plan takes on its cluster, and where the time goes.

The plan's own program is executed without numbers, with seconds that follow from the cluster's data sheet and a few
constants of its kind of device. Ranks that do the same are simulated once, so any number of ranks takes a moment.

Over a whole run, devices fail: goodput is the part of the time that lasts, with the checkpoints
of the plan; the best interval is shown beside. Energy counts every device at its limit of board power, which no step exceeds.`,
		Example: `  carve simulate --plan plan.yaml
  carve simulate --plan plan.yaml --trace step.json     # for ui.perfetto.dev
  carve simulate --plan plan.yaml --slow 3=1.2          # ranks of stage 3 take 20 % longer`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return runSimulate(cmd.OutOrStdout(), o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.plan, "plan", "", "plan to simulate")
	f.StringVar(&o.trace, "trace", "", "file for the timeline of a step")
	f.StringArrayVar(&o.slow, "slow", nil, "stage=factor: a rank of a stage that computes so many times longer")
	f.Float64Var(&o.mtbf, "mtbf-hours", float64(sim.LlamaFailures/3600), "hours between failures of one device")
	f.Float64Var(&o.restart, "restart-seconds", 600, "from a failure to the next step")
	f.Float64Var(&o.pause, "checkpoint-seconds", 30, "that a checkpoint stops the job")
	jsonFlag(cmd, &o.json)
	completeFiles(cmd, map[string][]string{"plan": {"yaml", "yml"}})
	return cmd
}

func (o *simulateOptions) check() error {
	if o.plan == "" {
		return errors.New("simulate: there is nothing to simulate; name a plan with --plan")
	}
	for _, text := range o.slow {
		stage, factor, ok := strings.Cut(text, "=")
		s, err1 := strconv.Atoi(stage)
		f, err2 := strconv.ParseFloat(factor, 64)
		if !ok || err1 != nil || err2 != nil {
			return fmt.Errorf("simulate: --slow %q; use a stage and a factor, such as 3=1.2", text)
		}
		o.stragglers = append(o.stragglers, sim.Straggler{Stage: s, Factor: f})
	}
	return nil
}

// runSimulate simulates one plan.
func runSimulate(out io.Writer, o simulateOptions) error {
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
	s, err := o.simulate(p)
	if err != nil {
		return badInput(inFile(o.plan, err))
	}
	if o.trace != "" {
		if err := writeTrace(o.trace, s.timeline); err != nil {
			return err
		}
	}
	if o.json {
		return printJSON(out, s.event())
	}
	return s.print(out)
}

// simulated is a plan and what was found.
type simulated struct {
	plan     plan.Plan
	machine  cost.Machine
	result   *sim.Result
	timeline *sim.Timeline
	goodput  sim.Goodput // with the checkpoints of the plan
	best     sim.Goodput // with the best ones
}

// simulate runs a step and the failures of the whole run.
func (o simulateOptions) simulate(p plan.Plan) (s simulated, err error) {
	s.plan = p
	if s.machine, err = cost.New(p.Cluster.Machine); err != nil {
		return s, err
	}
	ranks, err := record.Representatives(p)
	if err != nil {
		return s, err
	}
	s.timeline = sim.NewTimeline(ranks)
	if s.result, err = sim.Of(p, s.machine, sim.Options{Stragglers: o.stragglers, Watch: s.timeline.Watch}); err != nil {
		return s, err
	}
	f := sim.Failures{
		Between: unit.Seconds(o.mtbf * 3600), Restart: unit.Seconds(o.restart), Pause: unit.Seconds(o.pause),
		Every: unit.Seconds(p.Checkpoint.Every) * s.result.Step,
	}
	if s.goodput, err = f.Goodput(p.Layout.World()); err != nil {
		return s, err
	}
	f.Every = 0
	s.best, err = f.Goodput(p.Layout.World())
	return s, err
}

// writeTrace writes the timeline of a step.
func writeTrace(path string, t *sim.Timeline) error {
	f, err := os.Create(path)
	if err != nil {
		return badInput(fmt.Errorf("simulate: %w; name a file in an existing folder that you may write to with --trace", err))
	}
	w := bufio.NewWriter(f)
	return errors.Join(trace.WriteChrome(w, trace.Perfetto, t.Recorders()...), w.Flush(), f.Close())
}
