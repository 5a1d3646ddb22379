package data

import (
	"bytes"
	"strings"
	"testing"
)

// FuzzLines reads hostile lines of JSONL: whatever they hold, each gives a text or an error with file and line.
func FuzzLines(f *testing.F) {
	for _, seed := range []string{
		"{\"text\": \"a\"}\n\n{\"text\": \"b\", \"id\": 3}\n", `{"text": "unfinished`, `{"text": 3}`, `{"text": null}`, `{"body": "a"}`,
		"[1, 2]\n", "null\n", "{\"text\": \"\\ud800\"}", "\x00\n\xff{\"text\": 1}", strings.Repeat("[", 20000), `{"text":"a","text":"b"}`,
	} {
		f.Add([]byte(seed), "text")
	}
	f.Fuzz(func(t *testing.T, lines []byte, field string) {
		r := newLineReader(field)
		p := part{file: &file{path: "x.jsonl", format: JSONL}, line: 1}
		documents := 0
		err := r.each(p, lines, func(d document) {
			documents++
			if len(d.text) == 0 || !d.begins || !d.ends {
				t.Errorf("document %+v", d)
			}
		})
		if most := bytes.Count(lines, []byte("\n")) + 1; documents > most {
			t.Errorf("%d documents in %d lines", documents, most)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "data: x.jsonl:") {
			t.Error(err)
		}
	})
}
