package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// options are what the flags say; every measure reads what it needs.
type options struct {
	carve     string  // path of the carve binary
	peers     string  // folder of the peers' sources
	build     string  // folder for compiled peers
	rounds    int     // rounds of a race
	seconds   float64 // budget of one run of one contender
	cores     int     // cores to fill: threads × ranks of every contender
	shapes    list    // training shapes
	coreTypes list    // OpenBLAS kernels to try
	precision string  // of training
	progress  io.Writer
}

// list is a flag that holds words separated by commas.
type list []string

func (l *list) String() string { return strings.Join(*l, ",") }

func (l *list) Set(text string) error {
	*l = strings.Split(text, ",")
	return nil
}

// measure is one race, or several that share their contenders.
type measure struct {
	name string
	run  func(context.Context, options) ([]comparison, error)
}

// measures are listed in the order in which they run.
var measures = []measure{
	{"train", raceTraining},
	{"gemm", raceGEMM},
	{"comm", raceComm},
}

// run parses the arguments, runs the named measures and prints their table; with -json it also writes every number to a file.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	o := options{
		shapes: list{"tiny", "small", "gpt2"}, coreTypes: list{"SKYLAKEX", "COOPERLAKE", "ZEN", "HASWELL"}, progress: progress,
	}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.StringVar(&o.carve, "carve", "bin/carve", "path of the carve `binary`")
	flags.StringVar(&o.peers, "peers", "bench/peers", "`folder` of the peers' sources")
	flags.IntVar(&o.rounds, "rounds", 5, "rounds of each race")
	flags.Float64Var(&o.seconds, "seconds", 10, "budget of one training run; a GEMM gets a fortieth, a collective of one size a twentieth")
	flags.IntVar(&o.cores, "cores", runtime.NumCPU(), "cores that every contender fills")
	flags.Var(&o.shapes, "shapes", "training `shapes`")
	flags.Var(&o.coreTypes, "coretypes", "OpenBLAS `kernels` to try")
	flags.StringVar(&o.precision, "precision", "fp32", "`precision` of training: fp32 or bf16")
	jsonFile := flags.String("json", "", "write every number to this `file`")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if err := o.check(flags.Args()); err != nil {
		return err
	}
	build, err := os.MkdirTemp("", "carve-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(build)
	o.build = build
	report, err := measureAll(ctx, o, flags.Args())
	if err != nil {
		return err
	}
	report.Command = "go run ./bench " + strings.Join(args, " ")
	if *jsonFile != "" {
		if err := report.writeFile(*jsonFile); err != nil {
			return err
		}
	}
	return report.writeTable(out)
}

// check returns every fault of the options and of the names of measures.
func (o options) check(names []string) error {
	var faults []error
	if len(names) == 0 {
		faults = append(faults, errors.New("bench: name a measure: train, gemm, comm"))
	}
	for _, name := range names {
		if !slices.ContainsFunc(measures, func(m measure) bool { return m.name == name }) {
			faults = append(faults, fmt.Errorf("bench: no measure %q; use train, gemm, comm", name))
		}
	}
	if o.rounds < 1 || o.cores < 1 || !(o.seconds > 0) {
		faults = append(faults, errors.New("bench: rounds, cores and seconds must be positive"))
	}
	if o.precision != "fp32" && o.precision != "bf16" {
		faults = append(faults, fmt.Errorf("bench: precision %q is neither fp32 nor bf16", o.precision))
	}
	return errors.Join(faults...)
}

// measureAll runs the named measures one after another.
func measureAll(ctx context.Context, o options, names []string) (report, error) {
	r := report{Machine: describeMachine(), Rounds: o.rounds}
	for _, m := range measures {
		if !slices.Contains(names, m.name) {
			continue
		}
		comparisons, err := m.run(ctx, o)
		if err != nil {
			return report{}, fmt.Errorf("bench %s: %w", m.name, err)
		}
		r.Comparisons = append(r.Comparisons, comparisons...)
	}
	return r, nil
}
