package main

import (
	"context"
	"fmt"
	"path/filepath"
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

// products are squares, the layers of GPT-2 small and of a billion-parameter Llama over 512 tokens, a vocabulary of 50,257, and the
// forward, input-gradient and weight-gradient products of the shape tiny.
var products = []product{
	{"nn", 512, 512, 512},
	{"nn", 1024, 1024, 1024},
	{"nn", 512, 3072, 768},
	{"nn", 512, 768, 3072},
	{"nn", 512, 8192, 2048},
	{"nn", 256, 50257, 768},
	{"nt", 512, 3072, 768},
	{"tn", 3072, 768, 512},
	{"nt", 2048, 1376, 256},
	{"nn", 2048, 256, 1376},
	{"tn", 1376, 256, 2048},
}

// multiplied is a row of carve's kernel benchmark, and of the peers' program.
type multiplied struct {
	product
	DType      string  `json:"dtype"`
	Threads    int     `json:"threads"`
	GFlops     float64 `json:"gflops"`
	PeakGFlops float64 `json:"peak_gflops"`
}

// raceGEMM compares the rate of every product on one core and on all, with OpenBLAS's kernel sets and oneDNN.
func raceGEMM(ctx context.Context, o options) ([]comparison, error) {
	peers, err := compilePeers(ctx, o)
	if err != nil {
		return nil, err
	}
	counts := slices.Compact([]int{1, o.cores})
	var out []comparison
	for _, threads := range counts {
		var quantities []quantity
		for _, p := range products {
			quantities = append(quantities, quantity{fmt.Sprintf("%v, %d thread(s)", p, threads), "GF/s", higher})
		}
		contenders := []contender{carveProducts(o, threads)}
		for _, p := range peers {
			contenders = append(contenders, p.on(o, threads))
		}
		got, err := race(ctx, o.rounds, quantities, contenders, o.progress)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out, nil
}

// blas is a compiled peer with the kernels it is told to use.
type blas struct {
	name, binary string
	env          []string
}

// compilePeers compiles the peers' program against each library.
func compilePeers(ctx context.Context, o options) ([]blas, error) {
	openblas, err := library("/usr/lib/*/openblas-openmp/libopenblas.so.0", "libopenblas0-openmp")
	if err != nil {
		return nil, err
	}
	onednn, err := library("/usr/lib/*/libdnnl.so.[2-9]", "libdnnl2")
	if err != nil {
		return nil, err
	}
	var out []blas
	for _, lib := range []struct{ name, define, path string }{{"oneDNN", "USE_ONEDNN", onednn}, {"OpenBLAS", "USE_OPENBLAS", openblas}} {
		binary := filepath.Join(o.build, lib.name)
		compile := program{args: []string{
			"cc", "-O2", "-D" + lib.define, filepath.Join(o.peers, "gemm.c"), lib.path, "-Wl,-rpath," + filepath.Dir(lib.path), "-o", binary,
		}}
		if _, err := compile.run(ctx); err != nil {
			return nil, err
		}
		if lib.name == "oneDNN" {
			out = append(out, blas{lib.name, binary, nil})
			continue
		}
		for _, core := range o.coreTypes {
			out = append(out, blas{lib.name + " " + core, binary, []string{"OPENBLAS_CORETYPE=" + core}})
		}
	}
	return out, nil
}

// on is the peer on a number of threads: every product after the other, a fortieth of the budget each.
func (b blas) on(o options, threads int) contender {
	p := program{args: []string{b.binary, strconv.FormatFloat(o.seconds/40, 'g', -1, 64)}, env: b.env}
	for _, shape := range products {
		p.args = append(p.args, fmt.Sprintf("%s:%d:%d:%d", shape.Op, shape.M, shape.N, shape.K))
	}
	p.env = append(p.env, "OMP_NUM_THREADS="+strconv.Itoa(threads), "OPENBLAS_NUM_THREADS="+strconv.Itoa(threads))
	return contender{b.name, theirs, func(ctx context.Context) ([]float64, error) { return rates(ctx, p, 0) }}
}

// carveProducts is carve's own kernel benchmark, of which the rows with our products and threads count.
func carveProducts(o options, threads int) contender {
	p := program{args: []string{o.carve, "bench", "kernels", "--json"}}
	return contender{"carve", ours, func(ctx context.Context) ([]float64, error) { return rates(ctx, p, threads) }}
}

// rates runs a program and returns the rate of every product, in the order of products. With threads above 0 only the fp32 rows of that
// many threads count.
func rates(ctx context.Context, p program, threads int) ([]float64, error) {
	done, err := p.run(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := decodeRows[multiplied](done.stdout)
	if err != nil {
		return nil, err
	}
	var out []float64
	for _, want := range products {
		i := slices.IndexFunc(rows, func(r multiplied) bool {
			return r.is(want) && (threads == 0 || r.Threads == threads && r.DType == "fp32")
		})
		if i < 0 {
			return nil, fmt.Errorf("no row for %v in the output of %s", want, strings.Join(p.args[:1], " "))
		}
		out = append(out, rows[i].GFlops)
	}
	return out, nil
}

// is tells whether a row measures the product; carve's operations are called gemm_nn and the like.
func (r multiplied) is(p product) bool {
	return strings.TrimPrefix(r.Op, "gemm_") == p.Op && r.M == p.M && r.N == p.N && r.K == p.K
}
