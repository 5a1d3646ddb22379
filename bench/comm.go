package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// called is a row of a peer's collectives, and of carve's.
type called struct {
	Op    string  `json:"op"`
	Bytes int     `json:"bytes"`
	Time  float64 `json:"us"`
}

// measuredComm is a row of carve bench comm.
type measuredComm struct {
	Op    string  `json:"op"`
	Bytes int     `json:"bytes"`
	Time  float64 `json:"time_us"`
	Wrong int     `json:"wrong"`
}

// commSizes are the sizes that peers measure, in bytes.
var commSizes = []int{1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20}

// mpiOps and glooOps are the operations that peers have.
var (
	mpiOps  = []string{"all_reduce", "all_gather", "reduce_scatter", "all_to_all"}
	glooOps = []string{"all_reduce", "all_gather", "all_to_all"}
)

// commRanks are the numbers of ranks that race.
var commRanks = []int{2, 4}

// raceComm compares the time of collectives between ranks of this machine with MPI's, and with gloo's where it has the operation. MPICH
// spins, and collapses when ranks share cores, so that it races only where they do not.
func raceComm(ctx context.Context, o options) ([]comparison, error) {
	var out []comparison
	for _, ranks := range commRanks {
		openMPI, err := mpiPeer(ctx, o, "openmpi", []string{"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-np"}, ranks)
		if err != nil {
			return nil, err
		}
		peers := []func([]called) contender{openMPI}
		if ranks <= o.cores {
			mpich, err := mpiPeer(ctx, o, "mpich", []string{"mpiexec.mpich", "-n"}, ranks)
			if err != nil {
				return nil, err
			}
			peers = append(peers, mpich)
		}
		got, err := raceCalls(ctx, o, ranks, "MPI", mpiOps, peers)
		if err != nil {
			return nil, err
		}
		bounds, err := copyBounds(ctx, o, ranks, got)
		if err != nil {
			return nil, err
		}
		out = append(append(out, got...), bounds...)
		gloo := func(cases []called) contender {
			return callsOf("gloo", cases, program{args: []string{
				"/usr/bin/python3", filepath.Join(o.peers, "collectives_gloo.py"), strconv.Itoa(ranks), o.perCall(),
			}})
		}
		if got, err = raceCalls(ctx, o, ranks, "gloo", glooOps, []func([]called) contender{gloo}); err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out, nil
}

// copyBounds compares carve's times of large operations with what the copy bandwidth of this machine allows: every source read and every
// destination written once. That bandwidth counts both sides of a copy.
func copyBounds(ctx context.Context, o options, ranks int, got []comparison) (out []comparison, err error) {
	const large = 16 << 20
	done, err := program{args: []string{o.carve, "doctor", "--json"}}.run(ctx)
	if err != nil {
		return nil, err
	}
	found, err := decodeRows[struct {
		Memory struct {
			Copy float64 `json:"copy_gbs"`
		} `json:"memory"`
	}](done.stdout)
	if err != nil {
		return nil, err
	}
	if len(found) != 1 || found[0].Memory.Copy <= 0 {
		return nil, errors.New("carve doctor says no copy bandwidth")
	}
	for _, c := range commCases(mpiOps) {
		if c.Bytes < large {
			continue
		}
		name := c.name(ranks)
		i := slices.IndexFunc(got, func(g comparison) bool { return strings.HasPrefix(g.Name, name) })
		bound := series{Name: "copy bandwidth"}
		for range got[i].Ours[0].Rounds {
			bound.Rounds = append(bound.Rounds, c.moved(ranks)/(found[0].Memory.Copy*1e9)*1e6)
		}
		out = append(out, comparison{Name: name + ", against the copy bandwidth", Unit: "µs", Theirs: []series{bound}, Ours: got[i].Ours, best: lower})
	}
	return out, nil
}

// moved is the bytes that an operation must read and write, of all ranks.
func (c called) moved(ranks int) float64 {
	if c.Op == "reduce_scatter" { // each writes a part only
		return float64(ranks+1) * float64(c.Bytes)
	}
	return 2 * float64(ranks) * float64(c.Bytes)
}

// name is what a comparison of the case is called.
func (c called) name(ranks int) string {
	return fmt.Sprintf("%s %s, %d ranks", c.Op, bytesName(c.Bytes), ranks)
}

// commCases are operations in all sizes.
func commCases(ops []string) (cases []called) {
	for _, op := range ops {
		for _, bytes := range commSizes {
			cases = append(cases, called{Op: op, Bytes: bytes})
		}
	}
	return cases
}

// perCall is the seconds of each operation and size.
func (o options) perCall() string { return strconv.FormatFloat(o.seconds/20, 'f', -1, 64) }

// raceCalls races some operations of all sizes on a number of ranks.
func raceCalls(ctx context.Context, o options, ranks int, against string, ops []string, peers []func([]called) contender) ([]comparison, error) {
	cases := commCases(ops)
	var quantities []quantity
	for _, c := range cases {
		quantities = append(quantities, quantity{c.name(ranks) + ", against " + against, "µs", lower})
	}
	contenders := []contender{carveCalls(o, ranks, cases)}
	for _, p := range peers {
		contenders = append(contenders, p(cases))
	}
	return race(ctx, o.rounds, quantities, contenders, o.progress)
}

// bytesName prints a size that is a power of 1024, or a multiple.
func bytesName(bytes int) string {
	if bytes >= 1<<20 {
		return fmt.Sprintf("%d MiB", bytes>>20)
	}
	return fmt.Sprintf("%d KiB", bytes>>10)
}

// mpiPeer compiles the peer for one MPI.
func mpiPeer(ctx context.Context, o options, name string, launcher []string, ranks int) (func([]called) contender, error) {
	binary := filepath.Join(o.build, "collectives-"+name)
	if _, err := (program{args: []string{"mpicc." + name, "-O2", filepath.Join(o.peers, "collectives_mpi.c"), "-o", binary}}).run(ctx); err != nil {
		return nil, err
	}
	return func(cases []called) contender {
		return callsOf(name, cases, program{args: append(append([]string{}, launcher...), strconv.Itoa(ranks), binary, o.perCall())})
	}, nil
}

// callsOf is a peer's times in the order of cases.
func callsOf(name string, cases []called, p program) contender {
	return contender{name, theirs, func(ctx context.Context) ([]float64, error) {
		done, err := p.run(ctx)
		if err != nil {
			return nil, err
		}
		rows, err := decodeRows[called](done.stdout)
		if err != nil {
			return nil, err
		}
		return pick(rows, cases)
	}}
}

// pick is the times of cases.
func pick(rows, cases []called) (times []float64, err error) {
	for _, c := range cases {
		found := false
		for _, r := range rows {
			if r.Op == c.Op && r.Bytes == c.Bytes {
				times, found = append(times, r.Time), true
				break
			}
		}
		if !found {
			return nil, fmt.Errorf("no row for %s of %d bytes", c.Op, c.Bytes)
		}
	}
	return times, nil
}

// carveCalls is carve's times in the order of cases.
func carveCalls(o options, ranks int, cases []called) contender {
	return contender{"carve", ours, func(ctx context.Context) ([]float64, error) {
		var rows []called
		for _, part := range []struct{ low, high, factor int }{{1 << 10, 64 << 10, 64}, {1 << 20, 16 << 20, 16}, {64 << 20, 64 << 20, 2}} {
			done, err := program{args: []string{
				o.carve, "bench", "comm", "--json", "--op", "all_reduce,all_gather,reduce_scatter,all_to_all", "--ranks", strconv.Itoa(ranks),
				"--min-bytes", strconv.Itoa(part.low), "--max-bytes", strconv.Itoa(part.high), "--factor", strconv.Itoa(part.factor), "--time", o.perCall() + "s",
			}}.run(ctx)
			if err != nil {
				return nil, err
			}
			measured, err := decodeRows[measuredComm](done.stdout)
			if err != nil {
				return nil, err
			}
			for _, m := range measured {
				if m.Wrong > 0 {
					return nil, fmt.Errorf("%s of %d bytes: %d elements are wrong", m.Op, m.Bytes, m.Wrong)
				}
				rows = append(rows, called{m.Op, m.Bytes, m.Time})
			}
		}
		return pick(rows, cases)
	}}
}
