package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
)

// trained is what a training run prints: carve's contract, and the peer's.
type trained struct {
	TokensPerSecond float64 `json:"tokens_per_second"`
	GFlops          float64 `json:"gflops"`
	PeakRSSBytes    float64 `json:"peak_rss_bytes"`
}

// arrangement is how a training run fills the cores: ranks that each hold the model, and threads of each.
type arrangement struct{ ranks, threads int }

func (a arrangement) String() string { return fmt.Sprintf("%d×%d", a.ranks, a.threads) }

// arrangements are the two ends of what fills the cores: one rank with all of them, and one core a rank.
func arrangements(cores int) []arrangement {
	if cores == 1 {
		return []arrangement{{1, 1}}
	}
	return []arrangement{{1, cores}, {cores, 1}}
}

// raceTraining compares tokens per second, and memory, of carve and of PyTorch at its best, for every shape.
func raceTraining(ctx context.Context, o options) ([]comparison, error) {
	blas, err := library("/usr/lib/*/openblas-openmp/libblas.so.3", "libopenblas0-openmp")
	if err != nil {
		return nil, err
	}
	var out []comparison
	for _, shape := range o.shapes {
		peers, err := torchAtItsBest(ctx, o, shape, filepath.Dir(blas))
		if err != nil {
			return nil, err
		}
		got, err := race(ctx, o.rounds, []quantity{
			{shape + " " + o.precision + " training", "tokens/s", higher},
			{shape + " " + o.precision + " arithmetic", "GF/s", higher},
			{shape + " " + o.precision + " peak memory", "MiB", lower},
		}, append(peers, carveTraining(o, shape)...), o.progress)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
		if ranks, ok := ranksAgainstThreads(got[0]); ok {
			out = append(out, ranks)
		}
	}
	return out, nil
}

// torchAtItsBest tries every arrangement with every kernel set once and returns what is worth racing: the fastest, and
// the one with the least memory if that is another.
func torchAtItsBest(ctx context.Context, o options, shape, blas string) ([]contender, error) {
	var all []contender
	for _, a := range arrangements(o.cores) {
		for _, core := range o.coreTypes {
			all = append(all, torch(o, shape, blas, core, a))
		}
	}
	fastest, leanest := 0, 0
	var best []float64
	for i, c := range all {
		got, err := c.run(ctx)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
		fmt.Fprintf(o.progress, "bench: tuning %s: %-40s %s tokens/s\n", shape, c.name, number(got[0]))
		if i == 0 {
			best = got
			continue
		}
		if got[0] > best[0] {
			fastest, best[0] = i, got[0]
		}
		if got[2] < best[2] {
			leanest, best[2] = i, got[2]
		}
	}
	if fastest == leanest {
		return []contender{all[fastest]}, nil
	}
	return []contender{all[fastest], all[leanest]}, nil
}

// torch is one arrangement of PyTorch with one set of BLAS kernels, and huge pages for what it allocates.
func torch(o options, shape, blas, core string, a arrangement) contender {
	return trainer(fmt.Sprintf("PyTorch %v %s", a, core), theirs, program{
		args: []string{
			"/usr/bin/python3", filepath.Join(o.peers, "train_torch.py"), shape, o.precision, "--ranks", strconv.Itoa(a.ranks),
			"--threads", strconv.Itoa(a.threads), "--seconds", strconv.FormatFloat(o.seconds, 'g', -1, 64),
		},
		env: []string{"LD_LIBRARY_PATH=" + blas, "OPENBLAS_CORETYPE=" + core, "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"},
	})
}

// carveTraining is carve in every arrangement.
func carveTraining(o options, shape string) []contender {
	var out []contender
	for _, a := range arrangements(o.cores) {
		out = append(out, trainer("carve "+a.String(), ours, program{args: []string{
			o.carve, "bench", "train", "--shape", shape, "--ranks", strconv.Itoa(a.ranks),
			"--threads", strconv.Itoa(a.threads), "--precision", o.precision, "--time", fmt.Sprintf("%gs", o.seconds), "--json",
		}}))
	}
	return out
}

// trainer runs a program that prints a trained. The memory of the largest process, as the kernel reports it, counts when the program
// claims less.
func trainer(name string, of side, p program) contender {
	return contender{name, of, func(ctx context.Context) ([]float64, error) {
		done, err := p.run(ctx)
		if err != nil {
			return nil, err
		}
		rows, err := decodeRows[trained](done.stdout)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 || rows[len(rows)-1].TokensPerSecond <= 0 {
			return nil, fmt.Errorf("no tokens_per_second in %q", tail(string(done.stdout), 3))
		}
		last := rows[len(rows)-1]
		return []float64{last.TokensPerSecond, last.GFlops, max(last.PeakRSSBytes, done.peak) / (1 << 20)}, nil
	}}
}

// ranksAgainstThreads compares carve with itself: as many ranks as cores against one rank with as many threads.
func ranksAgainstThreads(c comparison) (comparison, bool) {
	if len(c.Ours) != 2 {
		return comparison{}, false
	}
	return comparison{Name: c.Name + ", ranks against threads", Unit: c.Unit, Theirs: c.Ours[:1], Ours: c.Ours[1:], best: c.best}, true
}
