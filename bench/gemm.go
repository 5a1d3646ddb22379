package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// product is one matrix product C[m n] = A[m k] B[k n]; op says which operand is stored transposed: nn, nt or tn.
type product struct {
	Op string `json:"op"`
	M  int    `json:"m"`
	N  int    `json:"n"`
	K  int    `json:"k"`
}

func (p product) String() string { return fmt.Sprintf("%s %d×%d×%d", p.Op, p.M, p.N, p.K) }

// multiplied is a row of carve's kernel benchmark, and of the peers' program.
type multiplied struct {
	product
	DType      string  `json:"dtype"`
	Threads    int     `json:"threads"`
	GFlops     float64 `json:"gflops"`
	PeakGFlops float64 `json:"peak_gflops"`
}

// raceGEMM compares the rate of every fp32 product that carve's own benchmark lists with OpenBLAS's kernel sets and oneDNN, and with the
// peak of multiply-adds that carve measures beside it.
func raceGEMM(ctx context.Context, o options) ([]comparison, error) {
	peers, err := compilePeers(ctx, o)
	if err != nil {
		return nil, err
	}
	cases, err := carveCases(ctx, o)
	if err != nil {
		return nil, err
	}
	var quantities []quantity
	for _, c := range cases {
		quantities = append(quantities, quantity{c.name(), "GF/s", higher})
	}
	var peaks [][]float64 // [round][case]
	contenders := []contender{carveProducts(o, cases, &peaks)}
	for _, p := range peers {
		contenders = append(contenders, p.contender(o, cases))
	}
	out, err := race(ctx, o.rounds, quantities, contenders, o.progress)
	if err != nil {
		return nil, err
	}
	for i := range cases {
		peak := series{Name: "FMA peak"}
		for _, round := range peaks {
			peak.Rounds = append(peak.Rounds, round[i])
		}
		out = append(out, comparison{Name: out[i].Name + ", of the peak", Unit: "GF/s", Theirs: []series{peak}, Ours: out[i].Ours})
	}
	return out, nil
}

// gemmCase is one product on a number of threads.
type gemmCase struct {
	product
	threads int
}

func (c gemmCase) name() string {
	if c.threads == 1 {
		return c.String() + ", 1 thread"
	}
	return fmt.Sprintf("%v, %d threads", c.product, c.threads)
}

// carveBenchmark runs carve's kernel benchmark and returns its rows of fp32 products, with the operation named as ours.
func carveBenchmark(ctx context.Context, o options) ([]multiplied, error) {
	done, err := program{args: []string{o.carve, "bench", "kernels", "--json"}}.run(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := decodeRows[multiplied](done.stdout)
	if err != nil {
		return nil, err
	}
	var out []multiplied
	for _, r := range rows {
		op, ok := strings.CutPrefix(r.Op, "gemm_")
		if ok && r.DType == "fp32" && slices.Contains([]string{"nn", "nt", "tn"}, op) {
			r.Op = op
			out = append(out, r)
		}
	}
	return out, nil
}

// carveCases asks carve which products it measures, on one core and on all.
func carveCases(ctx context.Context, o options) ([]gemmCase, error) {
	rows, err := carveBenchmark(ctx, o)
	if err != nil {
		return nil, err
	}
	var cases []gemmCase
	for _, threads := range slices.Compact([]int{1, o.cores}) {
		for _, r := range rows {
			if c := (gemmCase{r.product, threads}); r.Threads == threads && !slices.Contains(cases, c) {
				cases = append(cases, c)
			}
		}
	}
	if len(cases) == 0 {
		return nil, errors.New("carve bench kernels has no fp32 rows named gemm_nn, gemm_nt or gemm_tn")
	}
	return cases, nil
}

// carveProducts returns carve's rates, and appends its peaks, in the order of cases.
func carveProducts(o options, cases []gemmCase, peaks *[][]float64) contender {
	return contender{"carve", ours, func(ctx context.Context) ([]float64, error) {
		rows, err := carveBenchmark(ctx, o)
		if err != nil {
			return nil, err
		}
		var rates, peak []float64
		for _, c := range cases {
			i := slices.IndexFunc(rows, func(r multiplied) bool { return r.product == c.product && r.Threads == c.threads })
			if i < 0 {
				return nil, fmt.Errorf("no row for %s", c.name())
			}
			rates, peak = append(rates, rows[i].GFlops), append(peak, rows[i].PeakGFlops)
		}
		*peaks = append(*peaks, peak)
		return rates, nil
	}}
}

// contender is the peer on every case, a fortieth of the budget each: one process for each number of threads, and the cases are
// ordered by threads.
func (b blas) contender(o options, cases []gemmCase) contender {
	return contender{b.name, theirs, func(ctx context.Context) ([]float64, error) {
		var out []float64
		for rest := cases; len(rest) > 0; {
			n := 0
			for n < len(rest) && rest[n].threads == rest[0].threads {
				n++
			}
			rates, err := b.rates(ctx, o.seconds/40, rest[:n])
			if err != nil {
				return nil, err
			}
			out, rest = append(out, rates...), rest[n:]
		}
		return out, nil
	}}
}

// rates runs cases that all have the same number of threads.
func (b blas) rates(ctx context.Context, seconds float64, cases []gemmCase) ([]float64, error) {
	threads := strconv.Itoa(cases[0].threads)
	p := program{
		args: []string{b.binary, strconv.FormatFloat(seconds, 'g', -1, 64)},
		env:  append([]string{"OMP_NUM_THREADS=" + threads, "OPENBLAS_NUM_THREADS=" + threads}, b.env...),
	}
	for _, c := range cases {
		p.args = append(p.args, fmt.Sprintf("%s:%d:%d:%d", c.Op, c.M, c.N, c.K))
	}
	done, err := p.run(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := decodeRows[multiplied](done.stdout)
	if err != nil {
		return nil, err
	}
	var out []float64
	for i, r := range rows {
		if i >= len(cases) || r.product != cases[i].product {
			return nil, fmt.Errorf("%s measured %v, which was not asked for", b.name, r.product)
		}
		out = append(out, r.GFlops)
	}
	return out, nil
}
