package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"carve/internal/document"
	"carve/model"
	"carve/tensor"
	"carve/train"
	"carve/unit"

	"github.com/spf13/cobra"
)

// trainOptions are the flags of carve train.
type trainOptions struct {
	plan, model, data  string // what to compute
	steps, ranks       int
	time               time.Duration
	seed               uint64
	precision          string
	out, resume, cache string // where
	cores              int
	arenaLimit         string
	json, noSample     bool
	hangLimit          time.Duration
	links              linkOptions
	given              func(flag string) bool
}

func newTrain() *cobra.Command {
	var o trainOptions
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Train a model, by default a small one on Go's own source",
		Long: `Train a model under a plan, over several ranks.

Without flags it trains a Llama-style model of about 5 million parameters on the source of Go, with a rank on each
core, for about a minute and a half, and then lets the model write a little.

What to compute comes from the plan; flags say where and how to show it. The flags --model, --data, --steps, --time,
--seed, --ranks and --precision change the plan that is used; the run's folder has it whole, in plan.yaml.

With --emulate the operations between ranks take the time that their messages would take on the links of a cluster, times
--time-scale; what is computed is the same to the bit.

With --time the number of steps depends on the speed of this machine. plan.yaml then names the number, and
--plan plan.yaml repeats the run to the bit.

Interrupt (Ctrl-C) finishes the step, saves, and ends with exit code 3; a second one ends at once.`,
		Example: `  carve train
  carve train --time 10m --data notes/
  carve train --plan plan.yaml --steps 100 --json
  carve train --emulate dgx-h100 --time-scale 1000
  carve train --resume runs/llama-5m-001`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.given = func(flag string) bool { return cmd.Flags().Changed(flag) }
			return runTrain(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
		},
	}
	o.flags(cmd)
	return cmd
}

func (o *trainOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.plan, "plan", "", "plan to train")
	f.StringVar(&o.model, "model", "", "model: a preset, or the path of a config.json")
	f.StringVar(&o.data, "data", "", "a folder of text, a text file, a .jsonl file, or token shards: a .bin file or a folder of them")
	f.IntVar(&o.steps, "steps", 0, "number of optimizer steps")
	f.DurationVar(&o.time, "time", 0, "train for about this long; measures a few steps to choose their number")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the initial weights and of the order of the samples")
	f.IntVar(&o.ranks, "ranks", 0, "data-parallel ranks")
	f.StringVar(&o.precision, "precision", "", "fp32, bf16 or fp64")
	f.StringVar(&o.out, "out", "", "folder of the run (default: the next free one below runs)")
	f.StringVar(&o.resume, "resume", "", "go on with the run in this folder")
	f.StringVar(&o.cache, "cache", "", "folder for prepared text (default: $CARVE_CACHE, or carve in the user's cache folder)")
	f.IntVar(&o.cores, "cores", 0, "cores to use, shared by the ranks (default: all)")
	f.StringVar(&o.arenaLimit, "arena-limit", "", "most memory of a rank, such as 2GiB")
	f.DurationVar(&o.hangLimit, "hang-limit", 10*time.Minute, "end the run when a rank waits this long for another; 0s for never")
	o.links.flags(cmd)
	f.BoolVar(&o.noSample, "no-sample", false, "write no sample at the end")
	jsonFlag(cmd, &o.json)
	completeWords(cmd, "precision", precisionNames()...)
	completeWords(cmd, "model", model.Presets()...)
	completeFiles(cmd, map[string][]string{"plan": {"yaml", "yml"}, "out": nil, "resume": nil, "cache": nil})
}

// check holds that the flags go together.
func (o trainOptions) check() error {
	var faults []error
	for _, flag := range []string{"plan", "model", "data", "steps", "time", "seed", "ranks", "precision", "out"} {
		if o.given("resume") && o.given(flag) {
			faults = append(faults, fmt.Errorf("--resume goes on with the plan of the run; leave --%s out", flag))
		}
	}
	for _, pair := range [][2]string{{"plan", "model"}, {"steps", "time"}} {
		if o.given(pair[0]) && o.given(pair[1]) {
			faults = append(faults, fmt.Errorf("--%s and --%s exclude each other; give one of them", pair[0], pair[1]))
		}
	}
	return errors.Join(faults...)
}

// runTrain trains, shows how it goes, and ends with what was learned.
func runTrain(ctx context.Context, out, errOut io.Writer, o trainOptions) (err error) {
	run, err := o.prepare()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, run.Directory.Close()) }()
	stop := newStop()
	show := newShow(out, errOut, o.json, stop.ask)
	ctx, release := stop.onSignals(ctx, show.say)
	defer release()
	run.Stop, run.Sink = stop.asked, show
	start := train.Run
	if o.resume != "" {
		start = train.Resume
	}
	sum, err := start(ctx, run)
	if lost := show.end(); err == nil {
		err = lost
	}
	if err != nil {
		return trainError(ctx, err)
	}
	if sum.Outcome == train.Interrupted {
		return fmt.Errorf("%w after step %d; go on with: carve train --resume %s", errSaved, sum.Steps, sum.Path)
	}
	if o.json {
		return nil
	}
	return printEnd(ctx, out, sum, o)
}

// trainError sorts errors by whose they are.
func trainError(ctx context.Context, err error) error {
	var input *train.InputError
	switch {
	case ctx.Err() != nil, errors.Is(err, train.ErrStopped):
		return errStopped
	case errors.As(err, &input):
		return badInput(err)
	}
	return err
}

// prepare turns the flags into what is to be run, and takes the run's folder.
func (o trainOptions) prepare() (train.Options, error) {
	if err := o.check(); err != nil {
		return train.Options{}, badInput(err)
	}
	cache, err := cacheFolder(o.cache)
	if err != nil {
		return train.Options{}, err
	}
	if err := coresFault(o.cores); err != nil {
		return train.Options{}, badInput(err)
	}
	run := train.Options{Cache: cache, Cores: o.cores, Peak: tensor.MeasureCeiling(20 * time.Millisecond), Memory: availableMemory()}
	if o.hangLimit < 0 || o.hangLimit > 0 && o.hangLimit < time.Second {
		return run, badInput(fmt.Errorf("--hang-limit %v; use 1s or more, or 0s for no limit", o.hangLimit))
	}
	run.HangLimit = unit.Seconds(o.hangLimit.Seconds())
	if run.Emulate, err = o.links.emulated(cache); err != nil {
		return run, badInput(err)
	}
	if o.arenaLimit != "" {
		if run.ArenaLimit, err = unit.ParseBytes(o.arenaLimit); err != nil || run.ArenaLimit == 0 {
			return run, badInput(fmt.Errorf("--arena-limit %q; use a size such as 2GiB", document.Clip(o.arenaLimit)))
		}
	}
	if o.resume != "" {
		run.Directory, err = train.OpenDirectory(o.resume)
		return run, badInput(err)
	}
	if run.Plan, run.Time, err = o.makePlan(); err != nil {
		return run, badInput(err)
	}
	if o.out != "" {
		run.Directory, err = train.CreateDirectory(o.out)
	} else {
		run.Directory, err = train.CreateNumbered("runs", train.NameOf(run.Plan))
	}
	return run, badInput(err)
}
