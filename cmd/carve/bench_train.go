package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"time"

	"carve/cmd/carve/internal/terminal"
	"carve/machine"
	"carve/train"
	"carve/unit"

	"github.com/spf13/cobra"
)

// benchTrainOptions are the flags of carve bench train.
type benchTrainOptions struct {
	shape          string
	ranks, threads int
	precision      string
	time           time.Duration
	json           bool
}

// benchTrainReport is what carve bench train --json prints.
type benchTrainReport struct {
	Shape           string  `json:"shape"`
	Ranks           int     `json:"ranks"`
	Threads         int     `json:"threads"`
	Precision       string  `json:"precision"`
	TokensPerSecond float64 `json:"tokens_per_second"`
	GFLOPS          float64 `json:"gflops"`
	PeakRSS         int64   `json:"peak_rss_bytes"`
	Steps           int     `json:"steps"`
	StepSeconds     float64 `json:"step_seconds"`
	Loss            float64 `json:"loss"`
}

func newBenchTrain() *cobra.Command {
	var o benchTrainOptions
	cmd := &cobra.Command{
		Use:   "train",
		Short: "Measure the speed of training on random tokens",
		Long: `Train a plain Llama-style model of a fixed shape on random tokens and report the speed of the middle step. Each rank
has its own batch, so twice the ranks are twice the tokens. FLOPs are six per parameter and token without the
embedding, and half of full attention.`,
		Example: `  carve bench train --shape small --ranks 2 --json`,
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBenchTrain(cmd.Context(), cmd.OutOrStdout(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.shape, "shape", "tiny", "tiny, small or gpt2")
	f.IntVar(&o.ranks, "ranks", 1, "data-parallel ranks")
	f.IntVar(&o.threads, "threads", 0, "threads of each rank (default: its share of the cores)")
	f.StringVar(&o.precision, "precision", "fp32", "fp32, bf16 or fp64")
	f.DurationVar(&o.time, "time", 15*time.Second, "about how long to measure")
	jsonFlag(cmd, &o.json)
	var shapes []string
	for _, s := range train.Shapes() {
		shapes = append(shapes, s.Name)
	}
	completeWords(cmd, "shape", shapes...)
	completeWords(cmd, "precision", precisionNames()...)
	return cmd
}

func runBenchTrain(ctx context.Context, out io.Writer, o benchTrainOptions) error {
	b, err := o.bench()
	if err != nil {
		return badInput(err)
	}
	ctx, release := signal.NotifyContext(ctx, os.Interrupt)
	defer release()
	r, err := train.Bench(ctx, b)
	if err != nil {
		return trainError(ctx, err)
	}
	report := benchTrainReport{
		Shape: o.shape, Ranks: b.Ranks, Threads: b.Threads, Precision: b.Precision.String(),
		TokensPerSecond: r.TokensPerSecond, GFLOPS: float64(r.FLOPsPerSecond) / 1e9, PeakRSS: int64(machine.PeakResident()),
		Steps: r.Steps, StepSeconds: float64(r.Step), Loss: r.Loss,
	}
	if o.json {
		return printJSON(out, report)
	}
	_, err = fmt.Fprint(out, report.table())
	return err
}

// bench turns the flags into what is measured.
func (o benchTrainOptions) bench() (train.BenchOptions, error) {
	b := train.BenchOptions{Ranks: o.ranks, Threads: o.threads, Time: unit.Seconds(o.time.Seconds()), Memory: availableMemory()}
	var shapeErr, precisionErr error
	b.Shape, shapeErr = train.FindShape(o.shape)
	b.Precision, precisionErr = precision(o.precision)
	var faults []error
	if o.ranks < 1 || o.ranks > maxRanks {
		faults = append(faults, fmt.Errorf("--ranks %d; use 1 to %d", o.ranks, maxRanks))
	}
	if o.threads < 0 || o.threads > 1024 {
		faults = append(faults, fmt.Errorf("--threads %d; use 1 to 1024, or 0 for the share of the cores", o.threads))
	}
	if o.time <= 0 || o.time > time.Hour {
		faults = append(faults, fmt.Errorf("--time %v; use more than 0s, and at most 1h", o.time))
	}
	if o.threads == 0 {
		b.Threads = max(1, runtime.GOMAXPROCS(0)/max(o.ranks, 1))
	}
	return b, errors.Join(append(faults, shapeErr, precisionErr)...)
}

func (r benchTrainReport) table() string {
	return terminal.Table(
		[]string{"shape", " ranks", " threads", "precision", " tokens/s", " GFLOP/s", " step", " peak RSS", " steps"},
		[][]string{{
			r.Shape, fmt.Sprint(r.Ranks), fmt.Sprint(r.Threads), r.Precision, terminal.Thousands(int64(r.TokensPerSecond)),
			fmt.Sprintf("%.1f", r.GFLOPS), unit.Seconds(r.StepSeconds).String(), unit.Bytes(r.PeakRSS).String(), fmt.Sprint(r.Steps),
		}})
}
