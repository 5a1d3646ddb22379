package data

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"carve/token"

	"github.com/google/go-cmp/cmp"
)

// writeShard writes a shard of ours with one document per three tokens.
func writeShard(t testing.TB, folder, name string, vocab int, ids ...int32) string {
	t.Helper()
	s := shardSet{disk: osDisk{}, folder: folder, name: name, header: header{vocab: vocab}, limit: 1 << 40}
	for i := 0; i < len(ids); i += 3 {
		if err := errors.Join(s.begin(), s.add(ids[i:min(i+3, len(ids))])); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.finish(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder, s.written[0].File)
}

func TestShardRoundTrip(t *testing.T) {
	for _, vocab := range []int{10, 1 << 16, 1<<16 + 1, 1 << 20} {
		ids := []int32{0, 1, int32(vocab - 1), 5, 9, 3, 2}
		path := writeShard(t, t.TempDir(), "x", vocab, ids...)
		s, err := openShard(path)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]int32, len(ids))
		if err := s.tokens(got, 0); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(ids, got); diff != "" {
			t.Error(diff)
		}
		starts, err := s.documentsIn(nil, 1, 7)
		if diff := cmp.Diff([]int64{3, 6}, starts); diff != "" || err != nil {
			t.Error(diff, err)
		}
		if err := errors.Join(s.check(), s.index.check()); err != nil {
			t.Error(err)
		}
		if err := errors.Join(s.close(), s.close()); err != nil {
			t.Error(err)
		}
		if err := s.tokens(got, 0); !errors.Is(err, ErrClosed) {
			t.Errorf("after close: %v", err)
		}
	}
}

func TestBadShards(t *testing.T) {
	le := binary.LittleEndian
	cases := []struct {
		name   string
		damage func(b []byte) []byte
		want   string
	}{
		{"empty", func(b []byte) []byte { return nil }, "not a file with tokens"},
		{"short", func(b []byte) []byte { return b[:20] }, "20 bytes, too short for a header"},
		{"magic", func(b []byte) []byte { b[0] = 'C'; return b }, `begins with "Carvetok", not "carvetok"`},
		{"version", func(b []byte) []byte { b[8] = 9; return b }, "version 9; this carve reads 1"},
		{"width", func(b []byte) []byte { b[12] = 3; return b }, "3 bytes an entry"},
		{"no vocabulary", func(b []byte) []byte { le.PutUint32(b[16:], 0); return b }, "vocabulary of 0 in 2 bytes a token"},
		{"huge vocabulary", func(b []byte) []byte { le.PutUint32(b[16:], 1<<31); return b }, "vocabulary of 2147483648 in 2 bytes a token"},
		{"end of text", func(b []byte) []byte { le.PutUint32(b[20:], 100); return b }, "end-of-text id 100 in a vocabulary of 100"},
		{"truncated", func(b []byte) []byte { return b[:len(b)-1] }, "75 bytes, but its header promises 6 entries of 2 bytes; it is truncated or was not written whole"},
		{"too long", func(b []byte) []byte { return append(b, 0) }, "77 bytes, but its header promises 6 entries of 2 bytes"},
		{"absurd count", func(b []byte) []byte { le.PutUint64(b[24:], 1<<63+6); return b }, "promises -9223372036854775802 entries"},
		{"count that wraps", func(b []byte) []byte { le.PutUint64(b[24:], 1<<62+6); return b }, "promises 4611686018427387910 entries"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			path := writeShard(t, t.TempDir(), "x", 100, 1, 2, 3, 4, 5, 6)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, c.damage(b), 0o644); err != nil {
				t.Fatal(err)
			}
			_, err = OpenShards(path, ShardOptions{Format: Carve})
			if !errors.Is(err, ErrShard) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v\nwant  %s", err, c.want)
			}
		})
	}
}

// TestFlippedBitsAreSeen flips bits of the ids, which only Verify reads.
func TestFlippedBitsAreSeen(t *testing.T) {
	for _, ext := range []string{shardExt, indexExt} {
		path := writeShard(t, t.TempDir(), "x", 100, 1, 2, 3, 4, 5, 6)
		flipped := strings.TrimSuffix(path, shardExt) + ext
		b, err := os.ReadFile(flipped)
		if err != nil {
			t.Fatal(err)
		}
		b[headerBytes+2] ^= 1
		if err := os.WriteFile(flipped, b, 0o644); err != nil {
			t.Fatal(err)
		}
		ds, err := OpenShards(path, ShardOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if err := ds.Verify(t.Context()); !errors.Is(err, ErrShard) || !strings.Contains(err.Error(), "checksum") {
			t.Errorf("%s: %v", ext, err)
		}
		shut(t, ds)
	}
}

func TestIDsOutsideTheVocabulary(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.bin")
	ids := make([]uint16, 4<<16)
	ids[2<<16] = 100 // where only a sample looks
	raw(t, path, ids...)
	ds, err := OpenShards(path, ShardOptions{Format: Uint16, Vocab: 100})
	if err != nil {
		t.Fatal(err)
	}
	cleanup(t, ds)
	want := "data: " + path + ": bad token shard: token 131072 has id 100, outside the vocabulary of 100; use a model with the vocabulary of its tokenizer, or is the file damaged?"
	if err := ds.Train.Read(make([]int32, 3), 1<<16); err == nil || err.Error() != want {
		t.Error(err)
	}
	if err := ds.Train.Read(make([]int32, 3), 0); err != nil {
		t.Errorf("a sample without it: %v", err)
	}
	if err := ds.Verify(t.Context()); err == nil || err.Error() != want {
		t.Error(err)
	}
	ids[len(ids)-1] = 101 // where opening looks
	raw(t, path, ids...)
	if _, err := OpenShards(path, ShardOptions{Vocab: 100}); !errors.Is(err, ErrShard) || !strings.Contains(err.Error(), "has id 101, outside") {
		t.Error(err)
	}
	// Ids of four bytes that are negative as int32.
	path = writeShard(t, t.TempDir(), "x", 1<<17, 1, 2, 3)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	binary.LittleEndian.PutUint32(b[headerBytes+4:], 1<<31)
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	wide, err := OpenShards(path, ShardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cleanup(t, wide)
	if err := wide.Train.Read(make([]int32, 3), 0); err == nil || !strings.Contains(err.Error(), "id 2147483648, outside") {
		t.Error(err)
	}
}

// TestFileCutShortInUse truncates a file that is mapped.
func TestFileCutShortInUse(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // a mapped file cannot be truncated
	}
	path := filepath.Join(t.TempDir(), "x.bin")
	raw(t, path, make([]uint16, 64<<10)...)
	ds, err := OpenShards(path, ShardOptions{Format: Uint16, Vocab: 10})
	if err != nil {
		t.Fatal(err)
	}
	cleanup(t, ds)
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := ds.Train.Read(make([]int32, 17), 3000); !errors.Is(err, ErrShard) || !strings.Contains(err.Error(), "cut short or became unreadable while in use") {
		t.Error(err)
	}
}

func TestFaultLetsOtherPanicsThrough(t *testing.T) {
	m := &mapped{path: "x", bytes: make([]byte, 1)}
	defer func() {
		if fmt.Sprint(recover()) != "bug" {
			t.Error("a panic that is no fault was swallowed")
		}
	}()
	t.Error(m.access(func([]byte) error { panic("bug") }))
}

func TestOpenShards(t *testing.T) {
	folder := t.TempDir()
	raw(t, filepath.Join(folder, "train.bin"), 1, 2, 3, 4, 5)
	raw(t, filepath.Join(folder, "val.bin"), 6, 7, 8)
	raw(t, filepath.Join(folder, "odd.dat"), 9)
	single := filepath.Join(folder, "train.bin")
	cases := []struct {
		name        string
		path        string
		validation  float64
		train, held []int32
	}{
		{"by name", folder, 0.3, []int32{1, 2, 3, 4, 5}, []int32{6, 7, 8}},
		{"one file", single, 0.4, []int32{1, 2, 3}, []int32{4, 5}},
		{"nothing held out", single, 0, []int32{1, 2, 3, 4, 5}, nil},
		{"a val file alone is for training", filepath.Join(folder, "val.bin"), 0, []int32{6, 7, 8}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			ds, err := OpenShards(c.path, ShardOptions{Format: Uint16, Vocab: 10, Validation: c.validation})
			if err != nil {
				t.Fatal(err)
			}
			cleanup(t, ds)
			if diff := cmp.Diff(c.train, ds.Train.all(t)); diff != "" {
				t.Error("train", diff)
			}
			if diff := cmp.Diff(c.held, ds.Validation.all(t)); diff != "" {
				t.Error("validation", diff)
			}
			if starts, err := ds.Train.Documents(nil, 0, 2); len(starts) != 0 || err != nil {
				t.Errorf("bare ids have documents at %d, error %v", starts, err)
			}
		})
	}
}

func TestOpenShardsErrors(t *testing.T) {
	folder := t.TempDir()
	raw(t, filepath.Join(folder, "a.bin"), 1, 2, 3)
	if err := os.WriteFile(filepath.Join(folder, "odd.bin"), []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	mixed := t.TempDir()
	writeShard(t, mixed, "a", 100, 1)
	writeShard(t, mixed, "b", 200, 1)
	lone := writeShard(t, t.TempDir(), "x", 100, 1)
	if err := os.Remove(indexName(lone)); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, path string
		opts       ShardOptions
		want       string
	}{
		{"missing", filepath.Join(folder, "absent"), ShardOptions{}, "no such file or directory; name a .bin file or a folder of them"},
		{"no shards", t.TempDir(), ShardOptions{}, "has no .bin files; name a folder of token shards"},
		{"no vocabulary", filepath.Join(folder, "a.bin"), ShardOptions{Format: Uint16}, "a.bin does not tell its vocabulary, and it was given as 0; give 1 to 16777216"},
		{"vocabulary too large", filepath.Join(folder, "a.bin"), ShardOptions{Format: Uint16, Vocab: 1 << 30}, "given as 1073741824"},
		{"odd size", filepath.Join(folder, "odd.bin"), ShardOptions{Format: Uint16, Vocab: 10}, "3 bytes are no whole number of 16-bit ids"},
		{"bare ids taken for ours", filepath.Join(folder, "a.bin"), ShardOptions{Format: Carve}, "6 bytes, too short for a header"},
		{"fraction", filepath.Join(folder, "a.bin"), ShardOptions{Validation: 2}, "validation fraction 2; use 0 to 0.5"},
		{"format", filepath.Join(folder, "a.bin"), ShardOptions{Format: 7}, "unknown shard format 7"},
		{"two vocabularies", mixed, ShardOptions{}, "vocabulary of 200, expected 100; do not mix tokenizers"},
		{"a larger vocabulary than asked for", mixed, ShardOptions{Vocab: 50}, "vocabulary of 100 and the model one of 50; use a model with a vocab of 100 or more"},
		{"bare ids taken for llm.c's", filepath.Join(folder, "a.bin"), ShardOptions{Format: LLMC, Vocab: 9}, "6 bytes, too short for a header"},
		{"short of llm.c's ids", llmcFile(t, folder, "short.bin", 20240520, 1, 9, make([]byte, 10)), ShardOptions{Vocab: 9}, "promises 9 ids of 2 bytes; it is truncated"},
		{"another version of llm.c's", llmcFile(t, folder, "version.bin", 20240801, 1, 1, make([]byte, 4)), ShardOptions{Vocab: 9}, "magic 20240801, version 1; llm.c's are 20240520, 1 and 20240801, 7"},
		{"index missing", lone, ShardOptions{}, "x-00000.idx: no such file"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := OpenShards(c.path, c.opts); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v\nwant  %s", err, c.want)
			}
		})
	}
}

// llmcFile writes a file as llm.c does.
func llmcFile(t *testing.T, folder, name string, magic, version, count uint32, ids []byte) string {
	t.Helper()
	b := make([]byte, 1024, 1024+len(ids))
	for i, word := range []uint32{magic, version, count} {
		binary.LittleEndian.PutUint32(b[4*i:], word)
	}
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, append(b, ids...), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestShardFormats holds that every format is known by how it begins, and that a folder of them is told from text.
func TestShardFormats(t *testing.T) {
	narrow, wide := []byte{1, 0, 2, 0, 3, 0, 4, 0}, []byte{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0}
	for name, write := range map[string]func(folder string) string{
		"carve": func(folder string) string { return writeShard(t, folder, "x", 9, 1, 2, 3, 4) },
		"nanoGPT": func(folder string) string {
			raw(t, filepath.Join(folder, "train.bin"), 1, 2, 3, 4)
			return filepath.Join(folder, "train.bin")
		},
		"llm.c GPT-2":  func(folder string) string { return llmcFile(t, folder, "a_train.bin", 20240520, 1, 4, narrow) },
		"llm.c Llama3": func(folder string) string { return llmcFile(t, folder, "a_train.bin", 20240801, 7, 4, wide) },
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			path := write(folder)
			if !IsShards(path) || !IsShards(folder) {
				t.Errorf("shards: file %v, folder %v", IsShards(path), IsShards(folder))
			}
			for _, from := range []string{path, folder} {
				ds, err := OpenShards(from, ShardOptions{Vocab: 9})
				if err != nil {
					t.Fatal(err)
				}
				cleanup(t, ds)
				if diff := cmp.Diff([]int32{1, 2, 3, 4}, ds.Train.all(t)); diff != "" || ds.Info().Vocab != 9 {
					t.Errorf("vocabulary %d, %s", ds.Info().Vocab, diff)
				}
			}
		})
	}
	text := tree(t, map[string]string{"a.txt": "x", "b.bin": "some bytes"})
	if IsShards(text) || IsShards(filepath.Join(text, "a.txt")) || IsShards(filepath.Join(text, "absent")) {
		t.Error("text is taken for shards")
	}
}

func TestRawIdentity(t *testing.T) {
	folder := t.TempDir()
	identity := func(name string, ids ...uint16) string {
		path := filepath.Join(folder, name)
		raw(t, path, ids...)
		ds, err := OpenShards(path, ShardOptions{Format: Uint16, Vocab: 10})
		if err != nil {
			t.Fatal(err)
		}
		cleanup(t, ds)
		return ds.Train.Identity()
	}
	a := identity("a.bin", 1, 2, 3)
	if identity("b.bin", 1, 2, 3) != a {
		t.Error("equal tokens have two identities")
	}
	if identity("c.bin", 1, 2, 4) == a || identity("d.bin", 1, 2) == a {
		t.Error("other tokens have the same identity")
	}
}

// FuzzShard opens damaged shards and reads whatever opens.
func FuzzShard(f *testing.F) {
	folder := f.TempDir()
	path := writeShard(f, folder, "x", 100, 1, 2, 3, 4, 5, 6)
	tokens, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	index, err := os.ReadFile(indexName(path))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(tokens, index)
	f.Add(bytes.Repeat([]byte{0xff}, 80), index)
	f.Add(append([]byte{0x08, 0xda, 0x34, 0x01, 1, 0, 0, 0, 4, 0, 0, 0}, make([]byte, 1020)...), index) // of llm.c
	f.Fuzz(func(t *testing.T, tokens, index []byte) {
		folder := t.TempDir()
		path := filepath.Join(folder, "x.bin")
		if err := errors.Join(os.WriteFile(path, tokens, 0o644), os.WriteFile(indexName(path), index, 0o644)); err != nil {
			t.Fatal(err)
		}
		ds, err := OpenShards(path, ShardOptions{Vocab: 100})
		if err != nil {
			return
		}
		cleanup(t, ds)
		row := make([]int32, 4)
		for i := range min(ds.Train.Samples(3), 10) {
			if err := ds.Train.Read(row, i); err != nil && !errors.Is(err, ErrShard) {
				t.Error(err)
			}
			starts, err := ds.Train.Documents(nil, i, 3)
			if err != nil {
				t.Error(err)
			}
			for _, at := range starts {
				if at < 0 || at >= 3 {
					t.Errorf("a document begins at %d of 3", at)
				}
			}
		}
		if err := ds.Verify(t.Context()); err != nil && !errors.Is(err, ErrShard) {
			t.Error(err)
		}
	})
}

// FuzzManifest decodes hostile manifests.
func FuzzManifest(f *testing.F) {
	s, err := Open(f.Context(), tree(f, map[string]string{"a": "x"}), SourceOptions{})
	if err != nil {
		f.Fatal(err)
	}
	b := smallBuilder(f, s, token.Bytes{}, PrepareOptions{})
	b.mustBuild(f)
	f.Add([]byte(contents(f, b.path)[manifestName]))
	f.Add([]byte(`{"version":1,"vocab":5,"train":[{"file":"../x.bin"}]}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		m, err := decodeManifest(content)
		if err != nil {
			return
		}
		for _, i := range append(m.Train, m.Validation...) {
			if strings.ContainsAny(i.File, `/\`) {
				t.Errorf("shard %q lies outside its folder", i.File)
			}
		}
	})
}

func TestManifestErrors(t *testing.T) {
	for content, want := range map[string]string{
		"":                        "EOF",
		"{}":                      "version 0; this carve reads 1",
		`{"version":1}`:           "vocabulary of 0",
		`{"version":1,"vocab":9}`: "no shards",
		`{"surprise":1}`:          `unknown field "surprise"`,
		`{"version":1,"vocab":9,"train":[{"file":"../x.bin"}]}`: `shard name "../x.bin"`,
		`{"version":1,"vocab":9,"train":[{"file":"x.exe"}]}`:    `shard name "x.exe"`,
	} {
		if _, err := decodeManifest([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", content, err, want)
		}
	}
}
