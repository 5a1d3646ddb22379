package data

import (
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carve/token"
)

// tree writes files, whose names may have folders, and returns their root.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "corpus")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// open opens a source that must be there.
func open(t testing.TB, path string, opts SourceOptions) *Source {
	t.Helper()
	s, err := Open(t.Context(), path, opts)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// smallBuilder prepares with pieces and shards of a few bytes, so that small
// texts meet every seam.
func smallBuilder(t testing.TB, s *Source, tok token.Tokenizer, opts PrepareOptions) *builder {
	t.Helper()
	if opts.Cache == "" {
		opts.Cache = t.TempDir()
	}
	b, err := newBuilder(s, tok, opts)
	if err != nil {
		t.Fatal(err)
	}
	b.limits, b.shard = limits{piece: 48, line: 300}, 200
	b.disk = hastyDisk{}
	return b
}

// hastyDisk does not wait until bytes are durable.
type hastyDisk struct{ osDisk }

func (d hastyDisk) create(path string) (diskFile, error) {
	f, err := d.osDisk.create(path)
	return hastyFile{f}, err
}

func (hastyDisk) syncFolder(string) error { return nil }

type hastyFile struct{ diskFile }

func (hastyFile) Sync() error { return nil }

// shut closes c at once, cleanup when the test ends.
func shut(t testing.TB, c io.Closer) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

func cleanup(t testing.TB, c io.Closer) { t.Cleanup(func() { shut(t, c) }) }

// mustBuild makes b's dataset.
func (b *builder) mustBuild(t testing.TB) *Dataset {
	t.Helper()
	ds, err := b.dataset(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cleanup(t, ds)
	return ds
}

// all reads every token of a split, shard after shard.
func (t *Tokens) all(tb testing.TB) (ids []int32) {
	tb.Helper()
	for _, s := range t.spans {
		part := make([]int32, s.hi-s.lo)
		if err := s.shard.tokens(part, s.lo); err != nil {
			tb.Fatal(err)
		}
		ids = append(ids, part...)
	}
	return ids
}

// text decodes a split of byte tokens; documents end with "|".
func (t *Tokens) text(tb testing.TB) string {
	tb.Helper()
	var out strings.Builder
	for _, id := range t.all(tb) {
		if id == 256 {
			out.WriteByte('|')
		} else {
			out.WriteByte(byte(id))
		}
	}
	return out.String()
}

// entries lists a folder, "" when there is none.
func entries(t testing.TB, folder string) string {
	t.Helper()
	list, err := os.ReadDir(folder)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// raw writes bare 16-bit ids.
func raw(t testing.TB, path string, ids ...uint16) {
	t.Helper()
	var b []byte
	for _, id := range ids {
		b = binary.LittleEndian.AppendUint16(b, id)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

// manyFiles is n small files, all different.
func manyFiles(n int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("d%d/f%03d.txt", i%7, i)] = fmt.Sprintf("document %d\nof many\n", i)
	}
	return files
}

// memoryCorpus is a corpus in memory whose reads can be held up or fail.
type memoryCorpus struct {
	ids  []int32
	gate chan struct{} // a read takes one value, when there is a gate
	err  error
}

func numbers(n int) *memoryCorpus {
	m := &memoryCorpus{ids: make([]int32, n)}
	for i := range m.ids {
		m.ids[i] = int32(i)
	}
	return m
}

func (m *memoryCorpus) Samples(sequence int) int64 { return int64(max(len(m.ids)-1, 0) / sequence) }
func (m *memoryCorpus) Tokens() int64              { return int64(len(m.ids)) }
func (m *memoryCorpus) Vocab() int                 { return len(m.ids) }
func (m *memoryCorpus) Identity() string           { return fmt.Sprint("memory ", len(m.ids)) }

func (m *memoryCorpus) Read(dst []int32, i int64) error {
	if m.gate != nil {
		<-m.gate
	}
	copy(dst, m.ids[int(i)*(len(dst)-1):])
	return m.err
}
