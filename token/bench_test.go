package token

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// library is the beginning of the Go standard library's source, the text of the
// default run.
func library(b *testing.B) (docs [][]byte) {
	b.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	src := filepath.Join(strings.TrimSpace(string(root)), "src")
	limit := benchBytes
	err = filepath.WalkDir(src, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || limit < 0 {
			return err
		}
		text, err := os.ReadFile(path)
		docs = append(docs, text)
		limit -= len(text)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return docs
}

const benchBytes = 16 << 20

// total is the bytes of docs.
func total(docs [][]byte) (n int64) {
	for _, d := range docs {
		n += int64(len(d))
	}
	return n
}

func countAll(b *testing.B, docs [][]byte) *Counter {
	c, err := NewCounter(Llama3)
	if err != nil {
		b.Fatal(err)
	}
	for _, d := range docs {
		c.Add(d)
	}
	return c
}

func BenchmarkCount(b *testing.B) {
	docs := library(b)
	b.SetBytes(total(docs))
	for b.Loop() {
		countAll(b, docs)
	}
}

func BenchmarkTrain(b *testing.B) {
	counts := countAll(b, library(b))
	b.SetBytes(counts.Bytes())
	for b.Loop() {
		if _, err := Train(b.Context(), counts, TrainOptions{VocabSize: 4096}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(counts.Words()), "words")
}

func BenchmarkEncode(b *testing.B) {
	docs := library(b)
	tok, err := Train(b.Context(), countAll(b, docs), TrainOptions{VocabSize: 4096})
	if err != nil {
		b.Fatal(err)
	}
	var ids []int32
	tokens := 0
	b.SetBytes(total(docs))
	b.ReportAllocs()
	for b.Loop() {
		for _, d := range docs {
			ids = tok.Encode(ids[:0], d)
			tokens += len(ids)
		}
	}
	b.ReportMetric(float64(tokens)/b.Elapsed().Seconds(), "tokens/s")
}

func BenchmarkDecode(b *testing.B) {
	docs := library(b)
	tok, err := Train(b.Context(), countAll(b, docs), TrainOptions{VocabSize: 4096})
	if err != nil {
		b.Fatal(err)
	}
	ids := tok.Encode(nil, docs[0])
	var text []byte
	b.SetBytes(int64(len(docs[0])))
	for b.Loop() {
		if text, err = tok.Decode(text[:0], ids); err != nil {
			b.Fatal(err)
		}
	}
}
