package data

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOpenErrors(t *testing.T) {
	root := tree(t, map[string]string{
		"empty.txt": "", "x.bin": "\x00\x01\x02", "only/.hidden": "x", "only/a.dat": "x", "nothing/a.txt": "",
	})
	if err := os.MkdirAll(filepath.Join(root, "void"), 0o755); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, path string
		extensions []string
		is         error
		want       string // with ROOT for the folder
	}{
		{"missing", "absent", nil, os.ErrNotExist, "data: stat ROOT/absent: no such file or directory; name a folder, a text file, a .jsonl file or token shards (.bin)"},
		{"empty folder", "void", nil, ErrNoText, "data: folder ROOT/void is empty: no text; name a folder with text files"},
		{"empty file", "empty.txt", nil, ErrNoText, "data: ROOT/empty.txt is empty: no text; name a file with text"},
		{"only an empty file", "nothing", nil, ErrNoText, "data: no text in ROOT/nothing: skipped 1 empty; choose another path or other extensions"},
		{"no such extension", "only", []string{"go"}, ErrNoText, "data: no text in ROOT/only: skipped 1 with another extension, 1 hidden; choose another path or other extensions"},
		{"binary file", "x.bin", nil, ErrBinary, "data: ROOT/x.bin: not a text file; convert it to UTF-8 text"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(t.Context(), filepath.Join(root, c.path), SourceOptions{Extensions: c.extensions})
			if err == nil || strings.ReplaceAll(err.Error(), root, "ROOT") != c.want {
				t.Errorf("error %v\nwant  %s", err, c.want)
			}
			if !errors.Is(err, c.is) {
				t.Errorf("%v is not %v", err, c.is)
			}
		})
	}
	if _, err := Open(t.Context(), os.DevNull, SourceOptions{}); err == nil || !strings.Contains(err.Error(), "neither a folder nor a regular file") {
		t.Errorf("device: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, root, SourceOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// names lists the files of a source.
func names(s *Source) (out []string) {
	for _, f := range s.files {
		out = append(out, f.name)
	}
	return out
}

func TestOpenFolder(t *testing.T) {
	root := tree(t, map[string]string{
		"b.go": "b", "a.go": "a", "a/z.go": "az", "a/b/c.go": "abc", "note.md": "n", ".git/x.go": "x", "empty.go": "", "lines.jsonl": "{}",
	})
	links := map[string]string{
		"loop.go":    "loop.go",     // to itself
		"dangling":   "absent",      //
		"up":         ".",           // to a folder: would be walked for ever
		"linked.go":  "a/b/c.go",    // to a file: read
		"a/other.go": "../note.md",  // to a file of another kind
		"sock":       "/dev/null",   // to a device
		"a/b/far.go": "../../b.go/", // not a folder
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, root, SourceOptions{})
	want := []string{"a/b/c.go", "a/other.go", "a/z.go", "a.go", "b.go", "lines.jsonl", "linked.go", "note.md"}
	if diff := cmp.Diff(want, names(s)); diff != "" {
		t.Error(diff)
	}
	k := s.Skipped()
	k.Example = ""
	if diff := cmp.Diff(Skipped{Hidden: 1, Empty: 1, Links: 1, Special: 1, Unreadable: 3}, k); diff != "" {
		t.Error(diff)
	}
	if got := s.Skipped().String(); !strings.HasPrefix(got, "1 hidden, 1 empty, 1 links to folders, 1 not regular files, 3 unreadable (stat ") {
		t.Error(got)
	}
	if s.Files() != 8 || s.Bytes() != 1+1+2+3+3+1+1+2 || s.Path() != root {
		t.Errorf("%d files, %d bytes, path %s", s.Files(), s.Bytes(), s.Path())
	}
	s = open(t, root, SourceOptions{Extensions: []string{"go", ".jsonl"}})
	if diff := cmp.Diff([]string{"a/b/c.go", "a/other.go", "a/z.go", "a.go", "b.go", "lines.jsonl", "linked.go"}, names(s)); diff != "" {
		t.Error(diff)
	}
}

func TestFormatGoesByName(t *testing.T) {
	root := tree(t, map[string]string{"a.JSONL": "{}", "b.ndjson": "{}", "c.txt": "x"})
	for name, want := range map[string]Format{"a.JSONL": JSONL, "b.ndjson": JSONL, "c.txt": Text} {
		if got := open(t, filepath.Join(root, name), SourceOptions{}).files[0].format; got != want {
			t.Errorf("%s is read as %v, want %v", name, got, want)
		}
	}
	if got := open(t, filepath.Join(root, "c.txt"), SourceOptions{Format: JSONL}).files[0].format; got != JSONL {
		t.Errorf("a format that was asked for becomes %v", got)
	}
}

func TestIdentity(t *testing.T) {
	files := map[string]string{"a.txt": "one", "b.txt": "two"}
	root := tree(t, files)
	base := open(t, root, SourceOptions{}).identity()
	if again := open(t, root, SourceOptions{}).identity(); again != base {
		t.Error("the same files have two identities")
	}
	if other := open(t, root, SourceOptions{Field: "body"}).identity(); other == base {
		t.Error("the field makes no difference")
	}
	changes := map[string]func() error{
		"content": func() error { return os.WriteFile(filepath.Join(root, "a.txt"), []byte("longer"), 0o644) },
		"name":    func() error { return os.Rename(filepath.Join(root, "a.txt"), filepath.Join(root, "c.txt")) },
		"missing": func() error { return os.Remove(filepath.Join(root, "b.txt")) },
	}
	for _, what := range []string{"content", "name", "missing"} {
		if err := changes[what](); err != nil {
			t.Fatal(err)
		}
		now := open(t, root, SourceOptions{}).identity()
		if now == base {
			t.Errorf("a change of %s makes no difference", what)
		}
		base = now
	}
}

func TestIsBinary(t *testing.T) {
	cases := []struct {
		name, head string
		want       bool
	}{
		{"nothing", "", false},
		{"ASCII", "hello\tworld\r\n", false},
		{"UTF-8", "größe 日本語 👍", false},
		{"ends inside a character", "größe 日本\xe8", false},
		{"Latin-1", "Die Gr\xf6\xdfe des Hauses, das sehr gro\xdf ist", false},
		{"colour codes", "\x1b[31mthis text is red\x1b[0m", false},
		{"NUL", "text\x00", true},
		{"UTF-16", "\xff\xfeh\x00i\x00", true},
		{"controls", "\x01\x02\x03abc", true},
		{"invalid", "\x80\x81\x82\x83abcdef", true},
		{"NUL behind the head", strings.Repeat("a", headBytes) + "\x00", false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if got := isBinary([]byte(c.head)); got != c.want {
				t.Errorf("%q: %t", c.head, got)
			}
		})
	}
}
