package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"carve/unit"
)

// limits bound what is held in memory. A document longer than a piece is taken
// apart; a line of JSONL longer than line is an error.
type limits struct{ piece, line int64 }

func defaultLimits() limits { return limits{piece: 1 << 20, line: 64 << 20} }

// split is the side that a document is on.
type split int

const (
	byHash split = iota // not decided by its place
	train
	validation
)

// piece is a buffer of text with the parts of documents in it, and what a worker
// made of it. Pieces are recycled.
type piece struct {
	text  []byte
	parts []part
	read  int64 // bytes of the source up to the end of this piece

	ids   []int32
	units []encoded
	err   error
	done  chan struct{} // holds a value once a worker is finished
}

// part is text[lo:hi]: a document, a part of one, or lines of JSONL.
type part struct {
	file         *file
	lo, hi       int
	line         int // JSONL: the number of the first line
	split        split
	begins, ends bool // the document's first and last part
}

// encoded is what a document, or part of one, became: the next tokens of ids.
type encoded struct {
	tokens int
	split  split // of a document that begins here
	begins bool
}

func newPiece() *piece { return &piece{done: make(chan struct{}, 1)} }

// reset empties the piece and keeps its memory.
func (p *piece) reset() {
	p.text, p.parts, p.ids, p.units = p.text[:0], p.parts[:0], p.ids[:0], p.units[:0]
	p.read, p.err = 0, nil
}

// document is the text of a document or of a part of one.
type document struct {
	text         []byte
	split        split
	begins, ends bool
}

// each calls do for every document in the piece, in order. The text is only
// valid during the call.
func (p *piece) each(lines *lineReader, do func(document)) error {
	for _, part := range p.parts {
		text := p.text[part.lo:part.hi]
		if part.file.format != JSONL {
			do(document{text, part.split, part.begins, part.ends})
			continue
		}
		if err := lines.each(part, text, do); err != nil {
			return err
		}
	}
	return nil
}

// lineReader takes the text out of lines of JSONL, for one goroutine.
type lineReader struct {
	field  string
	object map[string]json.RawMessage
}

func newLineReader(field string) *lineReader {
	return &lineReader{field: field, object: make(map[string]json.RawMessage)}
}

// each calls do for every line with text. Blank lines and empty texts are no
// documents.
func (r *lineReader) each(p part, lines []byte, do func(document)) error {
	for number := p.line; len(lines) > 0; number++ {
		var line []byte
		line, lines, _ = bytes.Cut(lines, []byte("\n"))
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		text, err := r.text(line)
		if err != nil {
			return fmt.Errorf("data: %s:%d: %w", p.file.path, number, err)
		}
		if text != "" {
			do(document{[]byte(text), p.split, true, true})
		}
	}
	return nil
}

// text is the field of one object.
func (r *lineReader) text(line []byte) (string, error) {
	clear(r.object)
	if err := json.Unmarshal(line, &r.object); err != nil {
		return "", fmt.Errorf("invalid JSON: %w; every line must be an object with a text in field %q", err, r.field)
	}
	raw, ok := r.object[r.field]
	if !ok {
		return "", fmt.Errorf("no field %q; the line has %s", r.field, r.fields())
	}
	var text *string
	if err := json.Unmarshal(raw, &text); err != nil || text == nil {
		return "", fmt.Errorf("field %q is %.40s; it must be a string", r.field, raw)
	}
	return *text, nil
}

// fields lists the fields of the present object, a few of them.
func (r *lineReader) fields() string {
	names := slices.Sorted(maps.Keys(r.object))
	if len(names) == 0 {
		return "none"
	}
	for i, n := range names {
		names[i] = fmt.Sprintf("%.40q", n)
	}
	if len(names) > 8 {
		names = append(names[:8], "…")
	}
	return strings.Join(names, ", ")
}

// errLine reports a line over the limit.
func errLine(f *file, line int, limit int64) error {
	return fmt.Errorf("data: %s:%d: the line is longer than %v; is this JSONL, one object a line?", f.path, line, unit.Bytes(limit))
}

// errChanged reports a file that is not as long as when the source was opened.
func errChanged(f *file, err error) error {
	if err == nil {
		err = errors.New("it grew")
	}
	return fmt.Errorf("data: %w: %s had %v when the run began (%w); leave it alone and start again", ErrChanged, f.path, unit.Bytes(f.size), err)
}
