package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"carve/token"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestPrepareText(t *testing.T) {
	s := open(t, tree(t, map[string]string{"a.txt": "one", "b.txt": "two", "c.jsonl": `{"text":"three"}` + "\n" + `{"text":"four"}`}), SourceOptions{})
	ds := smallBuilder(t, s, token.Bytes{}, PrepareOptions{}).mustBuild(t)
	if got := ds.Train.text(t); got != "one|two|three|four|" {
		t.Errorf("train %q", got)
	}
	if n := ds.Validation.Tokens(); n != 0 {
		t.Errorf("%d tokens held out", n)
	}
	info := ds.Info()
	info.Folder = ""
	want := Info{Vocab: 257, EndOfText: 256, Tokenizer: token.Bytes{}.Hash(), Files: 3, Bytes: 3 + 3 + 32}
	if diff := cmp.Diff(want, info); diff != "" {
		t.Error(diff)
	}
	if ds.Train.Vocab() != 257 {
		t.Errorf("vocabulary %d", ds.Train.Vocab())
	}
}

func TestPrepareOptionErrors(t *testing.T) {
	s := open(t, tree(t, map[string]string{"a": "x"}), SourceOptions{})
	if _, err := Prepare(t.Context(), s, token.Bytes{}, PrepareOptions{Cache: t.TempDir(), Validation: 0.6}); err == nil || err.Error() != "data: validation fraction 0.6; use 0 to 0.5" {
		t.Error(err)
	}
	if _, err := Prepare(t.Context(), s, mute{}, PrepareOptions{Cache: t.TempDir()}); err == nil || !strings.Contains(err.Error(), "no end-of-text token") {
		t.Error(err)
	}
	s = open(t, tree(t, map[string]string{"a": "\x00", "b": "\x01\x00"}), SourceOptions{})
	_, err := Prepare(t.Context(), s, token.Bytes{}, PrepareOptions{Cache: t.TempDir()})
	if !errors.Is(err, ErrNoText) || !strings.Contains(err.Error(), "skipped 2 binary; choose another path") {
		t.Error(err)
	}
	s = open(t, tree(t, map[string]string{"a.jsonl": "\n" + `{"text":""}` + "\n\n"}), SourceOptions{})
	_, err = Prepare(t.Context(), s, token.Bytes{}, PrepareOptions{Cache: t.TempDir()})
	if !errors.Is(err, ErrNoText) || !strings.HasSuffix(err.Error(), "every document is empty; choose another path") {
		t.Error(err)
	}
}

// mute is a tokenizer without an end-of-text token.
type mute struct{ token.Bytes }

func (mute) EndOfText() (int32, bool) { return 0, false }

// TestPrepareEqualsTwin compares the shards with every document encoded whole,
// and across numbers of workers.
func TestPrepareEqualsTwin(t *testing.T) {
	counts, err := token.NewCounter(token.Llama3)
	if err != nil {
		t.Fatal(err)
	}
	counts.Add([]byte(strings.Repeat("line of words\nand more words\n", 9)))
	tok, err := token.Train(t.Context(), counts, token.TrainOptions{VocabSize: 280})
	if err != nil {
		t.Fatal(err)
	}
	end, _ := tok.EndOfText()
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfN(rapid.StringMatching(`([a-z]{1,7}( [a-z]{1,7}){0,3}\n){1,12}`), 1, 6).Draw(rt, "texts")
		files := map[string]string{}
		var want []int32
		for i, text := range texts {
			files[fmt.Sprintf("%03d", i)] = text
			want = append(tok.Encode(want, []byte(text)), end)
		}
		s := open(t, tree(t, files), SourceOptions{})
		var first map[string]string
		for _, workers := range []int{1, 3} {
			b := smallBuilder(t, s, tok, PrepareOptions{Workers: workers})
			ds := b.mustBuild(t)
			if got := ds.Train.all(t); !slices.Equal(got, want) {
				rt.Fatalf("%d workers: %d\nwant %d", workers, got, want)
			}
			if err := ds.Verify(t.Context()); err != nil {
				rt.Fatal(err)
			}
			if content := contents(t, b.path); first == nil {
				first = content
			} else if diff := cmp.Diff(first, content); diff != "" {
				rt.Fatalf("%d workers: other bytes\n%s", workers, diff)
			}
		}
	})
}

// contents reads all files of a folder.
func contents(t testing.TB, folder string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(folder), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(folder, name))
		out[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDocumentBoundaries(t *testing.T) {
	s := open(t, tree(t, manyFiles(40)), SourceOptions{})
	ds := smallBuilder(t, s, token.Bytes{}, PrepareOptions{}).mustBuild(t)
	if len(ds.Train.spans) < 3 {
		t.Fatalf("%d shards: the test wants several", len(ds.Train.spans))
	}
	const sequence = 16
	row := make([]int32, sequence+1)
	documents := 0
	for i := range ds.Train.Samples(sequence) {
		got, err := ds.Train.Documents(nil, i, sequence)
		if err != nil {
			t.Fatal(err)
		}
		if err := ds.Train.Read(row, i); err != nil {
			t.Fatal(err)
		}
		for _, at := range got {
			if row[at] != 'd' { // "document 7"
				t.Errorf("sample %d: a document begins at %d of %d", i, at, row)
			}
		}
		for k, id := range row[:sequence-1] {
			if after := int64(k + 1); id == 256 && !slices.Contains(got, after) {
				t.Errorf("sample %d: no document begins at %d of %d", i, after, row)
			}
		}
		documents += len(got)
	}
	if documents < 35 {
		t.Errorf("%d documents found", documents)
	}
	if _, err := ds.Train.Documents(nil, 1<<40, sequence); err == nil {
		t.Error("a sample that does not exist has documents")
	}
}

func TestSplitByHash(t *testing.T) {
	files := manyFiles(400)
	for i := range 50 {
		files[fmt.Sprintf("copy/%d.txt", i)] = files[fmt.Sprintf("d%d/f%03d.txt", i%7, i)]
	}
	build := func(files map[string]string, fraction float64) (train, held []string) {
		s := open(t, tree(t, files), SourceOptions{})
		ds := smallBuilder(t, s, token.Bytes{}, PrepareOptions{Validation: fraction}).mustBuild(t)
		return strings.Split(ds.Train.text(t), "|"), strings.Split(ds.Validation.text(t), "|")
	}
	train, held := build(files, 0.2)
	train, held = train[:len(train)-1], held[:len(held)-1]
	if len(train)+len(held) != 450 || len(held) < 60 || len(held) > 120 {
		t.Errorf("%d and %d documents, want about 90 of 450 held out", len(train), len(held))
	}
	for _, text := range held {
		if slices.Contains(train, text) {
			t.Errorf("%q is on both sides", text)
		}
	}
	// A document keeps its side when others come and go.
	for name := range manyFiles(100) {
		delete(files, name)
	}
	_, fewer := build(files, 0.2)
	for _, text := range fewer[:len(fewer)-1] {
		if !slices.Contains(held, text) {
			t.Errorf("%q changed its side", text)
		}
	}
}

func TestSplitOfFewFiles(t *testing.T) {
	text := strings.Repeat("one line of text\n", 100)
	cases := []struct {
		name      string
		files     map[string]string
		wantTrain int
		wantHeld  int // bytes
	}{
		{"one file", map[string]string{"a": text}, 1513, 187},
		{"few files", map[string]string{"a": text, "b": text, "c": "x\n"}, 3060, 342},
		{"lines whose hashes hold out nothing", map[string]string{"a.jsonl": strings.Repeat(`{"text":"one line"}`+"\n", 10)}, 72, 8},
		{"one line", map[string]string{"a.jsonl": `{"text":"one line"}`}, 8, 0},
		{"next to nothing", map[string]string{"a": "x"}, 1, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, tree(t, c.files), SourceOptions{})
			ds := smallBuilder(t, s, token.Bytes{}, PrepareOptions{Validation: 0.1}).mustBuild(t)
			count := func(x *Tokens) int { return len(strings.ReplaceAll(x.text(t), "|", "")) }
			if train, held := count(ds.Train), count(ds.Validation); train != c.wantTrain || held != c.wantHeld {
				t.Errorf("%d and %d bytes, want %d and %d", train, held, c.wantTrain, c.wantHeld)
			}
		})
	}
}

func TestPrepareIsCached(t *testing.T) {
	root := tree(t, manyFiles(20))
	cache := t.TempDir()
	calls := 0
	prepare := func(tok token.Tokenizer, fraction float64) *Dataset {
		t.Helper()
		calls = 0
		ds, err := Prepare(t.Context(), open(t, root, SourceOptions{}), tok, PrepareOptions{Cache: cache, Validation: fraction, Progress: func(Progress) { calls++ }})
		if err != nil {
			t.Fatal(err)
		}
		cleanup(t, ds)
		return ds
	}
	first := prepare(token.Bytes{}, 0)
	if calls == 0 {
		t.Error("no progress")
	}
	if again := prepare(token.Bytes{}, 0); calls != 0 || again.Train.Identity() != first.Train.Identity() {
		t.Errorf("%d progress calls the second time", calls)
	}
	if other := prepare(token.Bytes{}, 0.3); calls == 0 || other.Train.Identity() == first.Train.Identity() {
		t.Error("another fraction comes from the cache")
	}
	if prepare(renamed{}, 0); calls == 0 {
		t.Error("another tokenizer comes from the cache")
	}
	if err := os.WriteFile(filepath.Join(root, "d0/f000.txt"), []byte("document 1\nof many\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if changed := prepare(token.Bytes{}, 0); calls == 0 || changed.Train.Identity() == first.Train.Identity() {
		t.Error("other text of the same length comes from the cache")
	}
}

// renamed is another tokenizer.
type renamed struct{ token.Bytes }

func (renamed) Hash() string { return "other" }

// TestDamagedCacheIsRebuilt damages every file of an entry in several ways.
func TestDamagedCacheIsRebuilt(t *testing.T) {
	s := open(t, tree(t, manyFiles(20)), SourceOptions{})
	b := smallBuilder(t, s, token.Bytes{}, PrepareOptions{})
	want := b.mustBuild(t).Train.Identity()
	damages := map[string]func(path string) error{
		"missing":   os.Remove,
		"empty":     func(p string) error { return os.Truncate(p, 0) },
		"truncated": func(p string) error { return os.Truncate(p, 70) },
		"foreign":   func(p string) error { return os.WriteFile(p, bytes.Repeat([]byte("x"), 100), 0o644) },
	}
	for name := range contents(t, b.path) {
		for what, damage := range damages {
			if err := damage(filepath.Join(b.path, name)); err != nil {
				t.Fatal(err)
			}
			ds, err := b.dataset(t.Context())
			if err != nil {
				t.Fatalf("%s %s: %v", name, what, err)
			}
			if got := ds.Train.Identity(); got != want {
				t.Errorf("%s %s: other tokens", name, what)
			}
			shut(t, ds)
		}
	}
	if got := entries(t, b.opts.Cache); got != filepath.Base(b.path) {
		t.Errorf("the cache holds %s", got)
	}
}

func TestInterruptLeavesNothing(t *testing.T) {
	s := open(t, tree(t, manyFiles(60)), SourceOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	b := smallBuilder(t, s, token.Bytes{}, PrepareOptions{Progress: func(p Progress) {
		if p.Done > p.Total/2 {
			cancel()
		}
	}})
	_, err := b.dataset(ctx)
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "stopped and nothing was kept") {
		t.Error(err)
	}
	if got := entries(t, b.opts.Cache); got != "" {
		t.Errorf("the cache holds %s", got)
	}
}

func TestUnwritableCache(t *testing.T) {
	root := tree(t, map[string]string{"a": "x"})
	s := open(t, root, SourceOptions{})
	_, err := Prepare(t.Context(), s, token.Bytes{}, PrepareOptions{Cache: filepath.Join(root, "a", "cache")})
	if err == nil || !strings.HasSuffix(err.Error(), "not a directory; make it writable or choose another cache folder") {
		t.Errorf("below a file: %v", err)
	}
	// Root may write everywhere, so the message is tried by itself.
	err = errCache("/cache", 0, &fs.PathError{Op: "mkdir", Path: "/cache", Err: syscall.EACCES})
	if err.Error() != "data: cache folder /cache: mkdir /cache: permission denied; make it writable or choose another cache folder" {
		t.Error(err)
	}
}
