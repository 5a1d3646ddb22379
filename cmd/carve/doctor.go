package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"carve/cmd/carve/internal/terminal"
	"carve/machine"
	"carve/tensor"
	"carve/unit"

	"github.com/spf13/cobra"
)

// doctorReport is what carve doctor --json prints. Rates are measured; 0 and empty texts are not known.
type doctorReport struct {
	CPU struct {
		Model      string   `json:"model"`
		Features   []string `json:"features"`
		Cores      int      `json:"cores"`
		Threads    int      `json:"threads"`
		Usable     int      `json:"usable_threads"`
		CacheBytes int      `json:"cache_bytes"`
	} `json:"cpu"`
	Memory struct {
		Total     int64   `json:"total_bytes"`
		Available int64   `json:"available_bytes"`
		Limit     int64   `json:"limit_bytes"`
		HugePages string  `json:"huge_pages"`
		ReadGBs   float64 `json:"read_gbs"`
		CopyGBs   float64 `json:"copy_gbs"`
	} `json:"memory"`
	Peak  []doctorPeak `json:"peak"`
	MPI   []doctorMPI  `json:"mpi"`
	Go    string       `json:"go"`
	Notes []string     `json:"notes"`
}

// doctorPeak is a dtype's arithmetic: the ceiling of one thread, and what a large product reaches on one and on all.
type doctorPeak struct {
	DType         string  `json:"dtype"`
	FMAGFLOPS     float64 `json:"fma_gflops"`
	GEMMGFLOPS    float64 `json:"gemm_gflops"`
	AllGEMMGFLOPS float64 `json:"gemm_all_threads_gflops"`
}

// doctorMPI is an MPI that carve can use.
type doctorMPI struct {
	Name     string `json:"name"`
	Version  string `json:"version"`
	Library  string `json:"library"`
	Launcher string `json:"launcher"`
}

func newDoctor() *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Tell what this machine has and reaches, and what would help",
		Long: `Show the processor, memory and MPI of this machine, measure what its arithmetic and memory reach, and say what would make
training faster. It takes a few seconds.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := examine(cmd.Context())
			if json {
				return printJSON(cmd.OutOrStdout(), r)
			}
			return r.print(cmd.OutOrStdout())
		},
	}
	jsonFlag(cmd, &json)
	return cmd
}

// examine looks at this machine and measures it.
func examine(ctx context.Context) *doctorReport {
	r := &doctorReport{Go: runtime.Version(), MPI: []doctorMPI{}, Notes: []string{}}
	cpu, memory := machine.ReadCPU(), machine.ReadMemory()
	r.CPU.Model, r.CPU.Features, r.CPU.CacheBytes = cpu.Model, cpu.Features, cpu.Cache
	r.CPU.Cores, r.CPU.Threads, r.CPU.Usable = cpu.Cores, cpu.Threads, cpu.Usable
	r.Memory.Total, r.Memory.Available = int64(memory.Total), int64(memory.Available)
	r.Memory.Limit, r.Memory.HugePages = int64(memory.Limit), memory.HugePages
	for _, m := range machine.FindMPI(ctx, os.Getenv("LD_LIBRARY_PATH")) {
		r.MPI = append(r.MPI, doctorMPI(m))
	}
	r.measure(cpu.Usable)
	r.advise()
	return r
}

// measure fills in the rates.
func (r *doctorReport) measure(threads int) {
	const budget = 200 * time.Millisecond
	ceiling := tensor.MeasureCeiling(budget)
	for _, d := range []tensor.DType{tensor.FP32, tensor.BF16} {
		product := tensor.Product{M: 1024, N: 1024, K: 1024, DType: d, Threads: 1}
		peak := doctorPeak{DType: d.String(), FMAGFLOPS: float64(ceiling.Of(d)) / 1e9}
		peak.GEMMGFLOPS = float64(product.Measure(budget)) / 1e9
		product.Threads = threads
		peak.AllGEMMGFLOPS = float64(product.Measure(budget)) / 1e9
		r.Peak = append(r.Peak, peak)
	}
	bandwidth := tensor.MeasureBandwidth(threads, 2*budget)
	r.Memory.ReadGBs, r.Memory.CopyGBs = float64(bandwidth.Read)/1e9, float64(bandwidth.Copy)/1e9
}

// advise writes the notes: what is missing, and the remedy.
func (r *doctorReport) advise() {
	note := func(format string, args ...any) { r.Notes = append(r.Notes, fmt.Sprintf(format, args...)) }
	if r.CPU.Usable < r.CPU.Threads {
		note("%d of %d hardware threads are used; raise GOMAXPROCS or the container's limit for more", r.CPU.Usable, r.CPU.Threads)
	}
	if runtime.GOARCH == "amd64" && !strings.Contains(strings.Join(r.CPU.Features, " "), "avx2") {
		note("the processor has no AVX2: kernels run in portable Go, about ten times slower")
	}
	if r.Memory.HugePages == "never" {
		note("transparent huge pages are off; for faster large matrices: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
	}
	if len(r.MPI) == 0 {
		note("no Open MPI or MPICH found; it is needed to leave one machine only: apt-get install openmpi-bin")
	}
}

// print writes the report for people.
func (r *doctorReport) print(out io.Writer) error {
	bytes := func(n int64) string {
		if n == 0 {
			return "not known"
		}
		return unit.Bytes(n).String()
	}
	rows := [][]string{
		{"processor", r.CPU.Model},
		{"features", strings.Join(r.CPU.Features, " ")},
		{"cores", fmt.Sprintf("%d, %d threads, %d usable", r.CPU.Cores, r.CPU.Threads, r.CPU.Usable)},
		{"last-level cache", bytes(int64(r.CPU.CacheBytes))},
		{"memory", fmt.Sprintf("%s, %s available", bytes(r.Memory.Total), bytes(r.Memory.Available))},
	}
	if r.Memory.Limit > 0 {
		rows = append(rows, []string{"memory limit", bytes(r.Memory.Limit) + " of the control group"})
	}
	rows = append(rows,
		[]string{"huge pages", r.Memory.HugePages},
		[]string{"memory bandwidth", fmt.Sprintf("read %.1f GB/s, copy %.1f GB/s, %d threads", r.Memory.ReadGBs, r.Memory.CopyGBs, r.CPU.Usable)})
	for _, p := range r.Peak {
		rows = append(rows, []string{"arithmetic " + p.DType, fmt.Sprintf("peak %.0f GFLOP/s a thread; products %.0f on one, %.0f on %d",
			p.FMAGFLOPS, p.GEMMGFLOPS, p.AllGEMMGFLOPS, r.CPU.Usable)})
	}
	for _, m := range r.MPI {
		rows = append(rows, []string{"MPI", strings.Join(strings.Fields(m.Name+" "+m.Version+" "+m.Library+" "+m.Launcher), " ")})
	}
	rows = append(rows, []string{"Go", r.Go})
	for _, n := range r.Notes {
		rows = append(rows, []string{"note", n})
	}
	_, err := fmt.Fprint(out, terminal.Table([]string{"what", "found"}, rows))
	return err
}
