package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"time"

	"carve/collective"
	"carve/comm"
	"carve/comm/timing"
	"carve/internal/document"
	"carve/unit"

	"github.com/spf13/cobra"
)

// benchCommOptions are the flags of carve bench comm.
type benchCommOptions struct {
	op, dtype, engine  string
	ranks              int
	minBytes, maxBytes string
	factor             int
	time               time.Duration
	links              linkOptions
	algorithm          string
	cache              string
	save, json, fit    bool
}

// commRow is a line of carve bench comm --json.
type commRow struct {
	Op      string   `json:"op"`
	Ranks   int      `json:"ranks"`
	Bytes   int64    `json:"bytes"`
	DType   string   `json:"dtype"`
	Engine  string   `json:"engine"`
	Time    float64  `json:"time_us"`
	AlgBW   float64  `json:"algbw_gbs"`
	BusBW   float64  `json:"busbw_gbs"`
	Wrong   int      `json:"wrong"`
	Count   int      `json:"count"`
	RedOp   string   `json:"redop"`
	Rounds  int      `json:"rounds"`
	InPlace *commIn  `json:"in_place"`            // null where the operation has one way only
	Theory  *float64 `json:"theory_us,omitempty"` // on emulated links
}

// commIn is the same in place.
type commIn struct {
	Time  float64 `json:"time_us"`
	AlgBW float64 `json:"algbw_gbs"`
	BusBW float64 `json:"busbw_gbs"`
	Wrong int     `json:"wrong"`
}

// commFit is a line of carve bench comm --json --fit.
type commFit struct {
	Op    string  `json:"op"`
	Ranks int     `json:"ranks"`
	DType string  `json:"dtype"`
	Fit   fitLine `json:"fit"`
}

type fitLine struct {
	Latency  float64 `json:"latency_us"`
	PerByte  float64 `json:"ns_per_byte"`
	BusBW    float64 `json:"busbw_gbs"`
	Residual float64 `json:"residual"`
}

// The engines' names.
const (
	engineLocal    = "local"
	engineMPI      = "mpi"
	engineEmulated = "emulated"
)

func newBenchComm() *cobra.Command {
	var o benchCommOptions
	cmd := &cobra.Command{
		Use:   "comm",
		Short: "Measure collectives between ranks, in the table of nccl-tests",
		Long: `Measure operations between ranks and print the table of nccl-tests: sizes are those of the whole array, algbw is size /
time, busbw what the busiest link must have carried. Each operation is checked element by element first ("wrong"), and then timed in rounds
of a barrier and the operation; the time is that of the slowest rank in the middle round. The line below each table is the fit of
α + β·size.

With --emulate the operations take the time of a cluster's links, and "theory" is what the formulas of docs/communication.md give.

With --algorithm the emulated links carry the messages of that algorithm. Without --emulate the operations are carried out as its messages, by
sends and receives, which is slower than the engine's own way and gives the same bits.

With --save the measurement of this machine is kept: the links between its ranks, memory bandwidth, and what matrix products reach. Plans
whose cluster is this-machine use it from then on.`,
		Example: `  carve bench comm --op all_reduce --ranks 4
  carve bench comm --op all --min-bytes 8 --max-bytes 1GiB --factor 8 --json
  carve bench comm --emulate dgx-h100 --ranks 16 --op all_to_all
  carve bench comm --save`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBenchComm(cmd.Context(), cmd.OutOrStdout(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.op, "op", "all_reduce", "operation, several separated by commas, or all")
	f.IntVar(&o.ranks, "ranks", 0, "ranks (default: one for each core, 2 at the least)")
	f.StringVar(&o.minBytes, "min-bytes", "1KiB", "smallest size")
	f.StringVar(&o.maxBytes, "max-bytes", "16MiB", "largest size")
	f.IntVar(&o.factor, "factor", 4, "factor from one size to the next")
	f.StringVar(&o.dtype, "dtype", "float", "float, bf16, double or int32")
	f.StringVar(&o.engine, "engine", engineLocal, "local or mpi")
	f.DurationVar(&o.time, "time", 200*time.Millisecond, "about how long to measure each size")
	o.links.flags(cmd)
	f.StringVar(&o.algorithm, "algorithm", "best", "how: best, "+strings.Join(algorithmNames(), ", "))
	f.StringVar(&o.cache, "cache", "", "folder where --save keeps the measurement (default: $CARVE_CACHE, or carve in the user's cache folder)")
	f.BoolVar(&o.save, "save", false, "keep the measurement of this machine for plans")
	f.BoolVar(&o.fit, "fit", false, "with --json: a line with the fit after the rows of each operation")
	jsonFlag(cmd, &o.json)
	completeWords(cmd, "op", append(opNames(), "all")...)
	completeWords(cmd, "dtype", dtypeNames()...)
	completeWords(cmd, "engine", engineLocal, engineMPI)
	completeWords(cmd, "algorithm", append(algorithmNames(), "best")...)
	return cmd
}

// commBench is a measurement that is to be made.
type commBench struct {
	benchCommOptions
	timing  timing.Options
	emulate comm.EmulateOptions   // without levels: the algorithm only
	place   *collective.Placement // of all ranks on the emulated links
}

// runBenchComm measures and prints as it goes.
func runBenchComm(ctx context.Context, out io.Writer, o benchCommOptions) error {
	b, err := o.bench()
	if err != nil {
		return badInput(err)
	}
	ctx, release := signal.NotifyContext(ctx, os.Interrupt)
	defer release()
	if err := b.run(ctx, out); err != nil {
		if ctx.Err() != nil {
			return errStopped
		}
		return err
	}
	if o.save {
		return b.saveMachine(ctx, out)
	}
	return nil
}

// run measures one operation after the other.
func (b *commBench) run(ctx context.Context, out io.Writer) error {
	for _, op := range b.timing.Ops {
		if err := b.heading(out, op); err != nil {
			return err
		}
		o := b.timing
		o.Ops = []comm.Op{op}
		var rows []timing.Row
		err := b.inWorld(ctx, o, func(r timing.Row) error {
			rows = append(rows, r)
			return b.print(out, r)
		})
		if err != nil {
			return err
		}
		if err := b.printFit(out, rows); err != nil {
			return err
		}
	}
	return nil
}

// inWorld measures on the ranks of this process.
func (b *commBench) inWorld(ctx context.Context, o timing.Options, each func(timing.Row) error) error {
	world := comm.NewLocal(b.ranks, comm.LocalOptions{})
	ends := world.Endpoints()
	if b.links.cluster != "" {
		net, err := comm.NewEmulated(b.ranks, b.emulate)
		if err != nil {
			return err
		}
		for i := range ends {
			ends[i] = net.Emulate(ends[i])
		}
	} else if a := b.emulate.Algorithm; a != nil {
		for i := range ends {
			ends[i] = comm.Route(ends[i], comm.RouteOptions{Algorithm: a})
		}
	}
	return errors.Join(timing.Run(ctx, ends, o, each), world.Close())
}

// bench turns the flags into what is measured; the error names every fault.
func (o benchCommOptions) bench() (*commBench, error) {
	b := &commBench{benchCommOptions: o}
	var faults []error
	fault := func(err error) {
		if err != nil {
			faults = append(faults, err)
		}
	}
	if b.ranks == 0 {
		b.ranks = max(2, runtime.GOMAXPROCS(0))
	}
	if b.ranks < 1 || b.ranks > maxRanks {
		fault(fmt.Errorf("--ranks %d; use 1 to %d", o.ranks, maxRanks))
	}
	var err error
	b.timing.Ops, err = findOps(o.op)
	fault(err)
	b.timing.DType, err = findDType(o.dtype)
	fault(err)
	b.timing.Sizes, err = o.sizes()
	fault(err)
	if b.timing.Time = o.time; o.time <= 0 || o.time > time.Hour {
		fault(fmt.Errorf("--time %v; use more than 0s, and at most 1h", o.time))
	}
	fault(b.findEngine())
	if len(faults) == 0 {
		fault(b.fits())
	}
	return b, errors.Join(faults...)
}

// findEngine checks engine and links.
func (b *commBench) findEngine() (err error) {
	switch {
	case b.engine == engineMPI:
		return errors.New("--engine mpi is not in this program; use local")
	case b.engine != engineLocal:
		return fmt.Errorf("--engine %q is not known%s", document.Clip(b.engine), document.Suggest(b.engine, []string{engineLocal, engineMPI}))
	case b.save && b.links.cluster != "":
		return errors.New("--save measures this machine; leave --emulate out")
	}
	if b.emulate.Algorithm, err = findAlgorithm(b.algorithm); err != nil {
		return err
	}
	if b.cache, err = cacheFolder(b.cache); err != nil {
		return err
	}
	links, err := b.links.emulated(b.cache)
	if err != nil || b.links.cluster == "" {
		return err
	}
	b.emulate.Levels, b.emulate.Scale = links.Levels, links.Scale
	ranks := make([]int, max(1, b.ranks))
	for i := range ranks {
		ranks[i] = i
	}
	if b.place, err = collective.Place(b.emulate.Levels, ranks); err == nil {
		_, err = comm.NewEmulated(max(1, b.ranks), b.emulate)
	}
	return err
}

// fits checks that the operands fit in memory.
func (b *commBench) fits() error {
	largest := b.timing.Sizes[len(b.timing.Sizes)-1]
	need, have := 2*largest*unit.Bytes(b.ranks), availableMemory()
	if have > 0 && need > have {
		return fmt.Errorf("--max-bytes %s on %d ranks needs %v and %v is available; use a smaller size or fewer ranks", b.maxBytes, b.ranks, need, have)
	}
	return nil
}

// sizes are those from the smallest to the largest.
func (o benchCommOptions) sizes() (list []unit.Bytes, err error) {
	low, err := unit.ParseBytes(o.minBytes)
	if err != nil || low == 0 {
		return nil, fmt.Errorf("--min-bytes %q; use a size such as 8 or 1KiB", document.Clip(o.minBytes))
	}
	high, err := unit.ParseBytes(o.maxBytes)
	if err != nil || high < low || high > unit.TiB {
		return nil, fmt.Errorf("--max-bytes %q; use a size from --min-bytes on, such as 64MiB", document.Clip(o.maxBytes))
	}
	if o.factor < 2 || o.factor > 1<<20 {
		return nil, fmt.Errorf("--factor %d; use 2 or more", o.factor)
	}
	for s := low; s <= high; s *= unit.Bytes(o.factor) {
		list = append(list, s)
	}
	return list, nil
}
