package main

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"carve/tensor"

	"github.com/spf13/cobra"
)

// benchKernelsOptions are the flags of carve bench kernels.
type benchKernelsOptions struct {
	time time.Duration
	json bool
}

// kernelRow is a line of carve bench kernels --json.
type kernelRow struct {
	Op         string  `json:"op"`
	DType      string  `json:"dtype"`
	M          int     `json:"m"`
	N          int     `json:"n"`
	K          int     `json:"k"`
	Threads    int     `json:"threads"`
	GFLOPS     float64 `json:"gflops"`
	PeakGFLOPS float64 `json:"peak_gflops"`
}

func newBenchKernels() *cobra.Command {
	var o benchKernelsOptions
	cmd := &cobra.Command{
		Use:   "kernels",
		Short: "Measure matrix products against the peak of the arithmetic",
		Long: `Multiply matrices of the shapes that language models have, in fp32 and bf16, on one thread and on all cores, and
report the middle repetition beside the peak: independent multiply-adds in registers, times the threads.`,
		Example: `  carve bench kernels
  carve bench kernels --json --time 1s`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBenchKernels(cmd.OutOrStdout(), o)
		},
	}
	cmd.Flags().DurationVar(&o.time, "time", 300*time.Millisecond, "about how long to measure each product")
	jsonFlag(cmd, &o.json)
	return cmd
}

func runBenchKernels(out io.Writer, o benchKernelsOptions) error {
	if o.time <= 0 || o.time > time.Hour {
		return badInput(errors.New("--time must be above 0 and at most 1h"))
	}
	ceiling := tensor.MeasureCeiling(min(o.time, 50*time.Millisecond))
	if !o.json {
		if _, err := fmt.Fprintf(out, kernelLine, "op", "dtype", "m", "n", "k", "threads", "GFLOP/s", "peak", "of peak"); err != nil {
			return err
		}
	}
	for _, p := range kernelProducts(runtime.GOMAXPROCS(0)) {
		r := kernelRow{
			Op: p.Op(), DType: p.DType.String(), M: p.M, N: p.N, K: p.K, Threads: p.Threads,
			GFLOPS:     float64(p.Measure(o.time)) / 1e9,
			PeakGFLOPS: float64(ceiling.Of(p.DType)) / 1e9 * float64(p.Threads),
		}
		if err := r.print(out, o); err != nil {
			return err
		}
	}
	return nil
}

// kernelProducts are the standard products in both precisions, on one thread and on all cores.
func kernelProducts(cores int) (list []tensor.Product) {
	threads := []int{1}
	if cores > 1 {
		threads = append(threads, cores)
	}
	for _, d := range []tensor.DType{tensor.FP32, tensor.BF16} {
		for _, n := range threads {
			list = append(list, tensor.StandardProducts(d, n)...)
		}
	}
	return list
}

// kernelLine lays a row out. Rows are printed as they are measured, so their widths are fixed.
const kernelLine = "%-8s  %-5s  %6v  %6v  %6v  %7v  %8v  %8v  %8v\n"

// print writes the row.
func (r kernelRow) print(out io.Writer, o benchKernelsOptions) error {
	if o.json {
		return printJSON(out, r)
	}
	_, err := fmt.Fprintf(out, kernelLine, r.Op, r.DType, r.M, r.N, r.K, r.Threads,
		fmt.Sprintf("%.1f", r.GFLOPS), fmt.Sprintf("%.1f", r.PeakGFLOPS), fmt.Sprintf("%.0f %%", 100*r.GFLOPS/r.PeakGFLOPS))
	return err
}
