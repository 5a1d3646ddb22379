package data

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// library is the Go standard library's source, the text of the default run.
func library(b *testing.B) *Source {
	b.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	return open(b, filepath.Join(strings.TrimSpace(string(root)), "src"), SourceOptions{Extensions: []string{".go"}})
}

// workers are the numbers of goroutines to measure.
func workers() []int {
	if n := runtime.GOMAXPROCS(0); n > 1 {
		return []int{1, n}
	}
	return []int{1}
}

// BenchmarkLearn reads, counts and merges the whole library.
func BenchmarkLearn(b *testing.B) {
	s := library(b)
	for _, n := range workers() {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			b.SetBytes(int64(s.bytes))
			for b.Loop() {
				if _, err := learn(b.Context(), s, LearnOptions{VocabSize: 4096, Workers: n, Progress: func(Progress) {}}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkPrepare reads, encodes and writes the whole library.
func BenchmarkPrepare(b *testing.B) {
	s := library(b)
	tok, err := learn(b.Context(), s, LearnOptions{VocabSize: 4096, Workers: runtime.GOMAXPROCS(0), Progress: func(Progress) {}})
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range workers() {
		b.Run(fmt.Sprintf("workers=%d", n), func(b *testing.B) {
			b.SetBytes(int64(s.bytes))
			tokens := int64(0)
			for b.Loop() {
				cache := b.TempDir()
				ds, err := Prepare(b.Context(), s, tok, PrepareOptions{Cache: cache, Validation: DefaultValidation, Workers: n})
				if err != nil {
					b.Fatal(err)
				}
				tokens += ds.Train.Tokens() + ds.Validation.Tokens()
				shut(b, ds)
				if err := os.RemoveAll(cache); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

// BenchmarkNext hands out steps of 16 samples of 256 tokens.
func BenchmarkNext(b *testing.B) {
	path := writeShard(b, b.TempDir(), "x", 4096, make([]int32, 1<<22)...)
	ds, err := OpenShards(path, ShardOptions{})
	if err != nil {
		b.Fatal(err)
	}
	cleanup(b, ds)
	synthetic, err := NewSynthetic(4096, 1)
	if err != nil {
		b.Fatal(err)
	}
	const rows, sequence = 16, 256
	x, y := make([]int32, rows*sequence), make([]int32, rows*sequence)
	for _, c := range []struct {
		name   string
		corpus Corpus
		ahead  int
	}{{"shards/ahead=0", ds.Train, 0}, {"shards/ahead=2", ds.Train, 2}, {"synthetic/ahead=0", synthetic, 0}} {
		b.Run(c.name, func(b *testing.B) {
			l := loader(b, c.corpus, LoaderOptions{Sequence: sequence, GlobalBatch: rows})
			defer l.Close()
			if c.ahead > 0 {
				if err := l.Start(b.Context(), c.ahead); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := l.Next(b.Context(), Batch{Tokens: x, Targets: y}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N*rows*sequence)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}
