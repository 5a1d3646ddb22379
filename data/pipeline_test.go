package data

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// readAll runs a pass that writes down the documents: text, "|" where one ends,
// and ">" where the validation side begins.
func readAll(ctx context.Context, s *Source, l limits, tail int64, workers int) (string, Skipped, error) {
	var out strings.Builder
	side := train
	lines := newLineReader(s.field)
	p := pass{
		source: s, limits: l, tail: tail, workers: workers,
		work: func(int, *piece) error { return nil },
		collect: func(x *piece) error {
			return x.each(lines, func(d document) {
				if d.split == validation && side != validation {
					side = validation
					out.WriteByte('>')
				}
				out.Write(d.text)
				if d.ends {
					out.WriteByte('|')
				}
			})
		},
	}
	skipped, err := p.run(ctx)
	return out.String(), skipped, err
}

func TestReadingCases(t *testing.T) {
	cases := []struct {
		name  string
		files map[string]string
		tail  int64
		want  string
	}{
		{"files in order", map[string]string{"b": "two", "a": "one"}, -1, "one|two|"},
		{"long file", map[string]string{"a": "aaaa\nbbbb\ncccc\ndddd\neeee\n", "b": "x"}, -1, "aaaa\nbbbb\ncccc\ndddd\neeee\n|x|"},
		{"no place to cut", map[string]string{"a": strings.Repeat("é", 40)}, -1, strings.Repeat("é", 40) + "|"},
		{"tail at a file's edge", map[string]string{"a": "one", "b": "two"}, 3, "one|>two|"},
		{"tail inside a small file", map[string]string{"a": "one\ntwo\nthree", "b": "x"}, 4, "one\ntwo\n|>three|x|"},
		{"tail inside a long file", map[string]string{"a": "aaaa\nbbbb\ncccc\ndddd\neeee\n"}, 8, "aaaa\nbbbb\ncccc\n|>dddd\neeee\n|"},
		{"tail is all", map[string]string{"a": "one"}, 3, ">one|"},
		{"tail is nothing", map[string]string{"a": "one"}, 0, "one|"},
		{"lines", map[string]string{"a.jsonl": `{"text":"one"}` + "\n\n" + `{"id":7,"text":"two\nlines"}`}, -1, "one|two\nlines|"},
		{"empty texts", map[string]string{"a.jsonl": `{"text":""}` + "\n" + `{"text":"x"}` + "\r\n"}, -1, "x|"},
		{"tail of lines", map[string]string{"a.jsonl": `{"text":"one"}` + "\n" + `{"text":"two"}` + "\n" + `{"text":"three"}`}, 20, "one|>two|three|"},
		{"line longer than a piece", map[string]string{"a.jsonl": `{"text":"` + strings.Repeat("x", 100) + `"}` + "\n" + `{"text":"y"}`}, -1, strings.Repeat("x", 100) + "|y|"},
		{"binary files", map[string]string{"a": "\x00", "b": "two", "c": "\x00" + strings.Repeat("long\n", 9)}, -1, "two|"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, tree(t, c.files), SourceOptions{})
			got, _, err := readAll(t.Context(), s, limits{piece: 16, line: 300}, c.tail, 2)
			if err != nil || got != c.want {
				t.Errorf("%q, error %v\nwant %q", got, err, c.want)
			}
		})
	}
}

func TestReadingErrors(t *testing.T) {
	long := `{"text":"` + strings.Repeat("x", 400) + `"}`
	cases := []struct {
		name, file, text, want string
	}{
		{"no JSON", "a.jsonl", "{\"text\":\"x\"}\nhello\n", `data: ROOT/a.jsonl:2: invalid JSON: invalid character 'h' looking for beginning of value; every line must be an object with a text in field "text"`},
		{"truncated", "a.jsonl", strings.Repeat("{\"text\":\"x\"}\n", 9) + `{"text":"y`, `data: ROOT/a.jsonl:10: invalid JSON: unexpected end of JSON input; every line must be an object with a text in field "text"`},
		{"an array", "a.jsonl", "[1]", `data: ROOT/a.jsonl:1: invalid JSON: json: cannot unmarshal array into Go value of type map[string]json.RawMessage; every line must be an object with a text in field "text"`},
		{"no field", "a.jsonl", `{"id":1,"body":"x"}`, `data: ROOT/a.jsonl:1: no field "text"; the line has "body", "id"`},
		{"no fields", "a.jsonl", "{}", `data: ROOT/a.jsonl:1: no field "text"; the line has none`},
		{"a number", "a.jsonl", `{"text":12}`, `data: ROOT/a.jsonl:1: field "text" is 12; it must be a string`},
		{"null", "a.jsonl", `{"text":null}`, `data: ROOT/a.jsonl:1: field "text" is null; it must be a string`},
		{"endless line", "a.jsonl", "{\"text\":\"x\"}\n" + long, `data: ROOT/a.jsonl:2: the line is longer than 300 B; is this JSONL, one object a line?`},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			root := tree(t, map[string]string{c.file: c.text})
			_, _, err := readAll(t.Context(), open(t, root, SourceOptions{}), limits{piece: 16, line: 300}, -1, 2)
			if err == nil {
				t.Fatal("no error")
			}
			got := strings.ReplaceAll(err.Error(), root, "ROOT")
			if got != c.want {
				t.Errorf("%s\nwant %s", got, c.want)
			}
		})
	}
}

// TestFilesThatChange alters files between Open and the reading.
func TestFilesThatChange(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       error
		say        string
	}{
		{"shrinks", "x", ErrChanged, "had 40 B when the run began (it shrank); leave it alone and start again"},
		{"grows", strings.Repeat("x", 41), ErrChanged, "had 40 B when the run began (it grew); leave it alone and start again"},
	} {
		for piece := range map[int64]bool{16: true, 4096: true} {
			root := tree(t, map[string]string{"a": strings.Repeat("x", 40), "b": "y"})
			s := open(t, root, SourceOptions{})
			if err := os.WriteFile(filepath.Join(root, "a"), []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			_, _, err := readAll(t.Context(), s, limits{piece: piece, line: 300}, -1, 2)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%s, pieces of %d: %v", c.name, piece, err)
			}
		}
	}
	root := tree(t, map[string]string{"a": "x", "b": "y"})
	s := open(t, root, SourceOptions{})
	if err := os.Remove(filepath.Join(root, "a")); err != nil {
		t.Fatal(err)
	}
	got, skipped, err := readAll(t.Context(), s, defaultLimits(), -1, 2)
	if got != "y|" || skipped.Unreadable != 1 || err != nil {
		t.Errorf("one of two files gone: %q, %v, error %v", got, skipped, err)
	}
	s = open(t, filepath.Join(root, "b"), SourceOptions{})
	if err := os.Remove(filepath.Join(root, "b")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := readAll(t.Context(), s, defaultLimits(), -1, 2); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the only file gone: %v", err)
	}
}

// TestReadingEqualsTwin compares with the files simply joined.
func TestReadingEqualsTwin(t *testing.T) {
	outer := t
	rapid.Check(t, func(t *rapid.T) {
		root := outer.TempDir()
		texts := rapid.SliceOfN(rapid.StringMatching(`([a-z]{1,7}[ \n]{0,2}|é|日本\n){1,40}`), 1, 8).Draw(t, "texts")
		want := ""
		for i, text := range texts {
			if err := os.WriteFile(filepath.Join(root, fmt.Sprintf("%03d", i)), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			want += text + "|"
		}
		s, err := Open(t.Context(), root, SourceOptions{})
		if err != nil {
			t.Fatal(err)
		}
		l := limits{piece: rapid.Int64Range(8, 200).Draw(t, "piece"), line: 300}
		got, _, err := readAll(t.Context(), s, l, -1, rapid.IntRange(1, 4).Draw(t, "workers"))
		if err != nil || got != want {
			t.Fatalf("%q, error %v\nwant %q", got, err, want)
		}
		// With a tail, the bytes stay and at least that many are held out.
		tail := rapid.Int64Range(0, int64(s.bytes)).Draw(t, "tail")
		got, _, err = readAll(t.Context(), s, l, tail, 2)
		if err != nil || strings.NewReplacer(">", "", "|", "").Replace(got) != strings.ReplaceAll(want, "|", "") {
			t.Fatalf("tail %d: %q, error %v\nwant %q", tail, got, err, want)
		}
		_, held, _ := strings.Cut(got, ">")
		if n := int64(len(strings.ReplaceAll(held, "|", ""))); n < tail || n > tail+2*l.piece+8 {
			t.Fatalf("%d bytes held out of %q, want %d", n, got, tail)
		}
	})
}

// TestPassStops makes every stage fail and expects the error and no deadlock.
func TestPassStops(t *testing.T) {
	s := open(t, tree(t, manyFiles(60)), SourceOptions{})
	boom := errors.New("boom")
	for _, c := range []struct {
		name          string
		work, collect error
	}{{"worker", boom, nil}, {"collector", nil, boom}} {
		for workers := 1; workers <= 3; workers++ {
			calls := 0
			p := pass{
				source: s, limits: limits{piece: 16, line: 16}, tail: -1, workers: workers,
				work: func(int, *piece) error { return c.work },
				collect: func(*piece) error {
					calls++
					return c.collect
				},
			}
			if _, err := p.run(t.Context()); !errors.Is(err, boom) {
				t.Errorf("%s, %d workers: %v", c.name, workers, err)
			}
			if calls > 1 {
				t.Errorf("%s: %d pieces collected around an error", c.name, calls)
			}
		}
	}
}
