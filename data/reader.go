package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"carve/token"
)

// reader reads the files of a source in order into pieces.
type reader struct {
	source  *Source
	limits  limits
	tail    int64 // bytes at the end of the source that are for validation; -1: by hash
	free    <-chan *piece
	emit    func(*piece)
	skipped Skipped // what turned out binary or unreadable

	cur   *piece // being filled, or nil
	read  int64  // bytes of the source so far
	carry []byte // of the file at hand, read and not yet in a piece
}

// all reads every file.
func (r *reader) all(ctx context.Context) error {
	for i := range r.source.files {
		if err := r.file(ctx, &r.source.files[i]); err != nil {
			return err
		}
	}
	r.flush()
	return nil
}

// file reads one file. One that cannot be opened is skipped if there are others.
func (r *reader) file(ctx context.Context, f *file) error {
	start := r.read
	in, err := os.Open(f.path)
	if err != nil && len(r.source.files) > 1 {
		r.skipped.unreadable(err)
		r.read += f.size
		return nil
	}
	if err != nil {
		return fmt.Errorf("data: %w; make the file readable", err)
	}
	defer func() { _ = in.Close() }() // only read
	cut := r.cut(f)
	if f.format == Text && f.size <= r.limits.piece && (cut == 0 || cut == f.size) {
		err = r.small(ctx, f, in, cut)
	} else {
		err = r.large(ctx, f, in, cut)
	}
	r.read = start + f.size
	return err
}

// cut is how many bytes of the file come before those for validation.
func (r *reader) cut(f *file) int64 {
	if r.tail < 0 {
		return f.size
	}
	return min(max(int64(r.source.bytes)-r.tail-r.read, 0), f.size)
}

// side is the split of bytes before or after the cut.
func (r *reader) side(before bool) split {
	switch {
	case r.tail < 0:
		return byHash
	case before:
		return train
	}
	return validation
}

// small adds a whole file to the piece at hand.
func (r *reader) small(ctx context.Context, f *file, in io.Reader, cut int64) error {
	if r.cur != nil && int64(len(r.cur.text))+f.size > r.limits.piece {
		r.flush()
	}
	if err := r.need(ctx); err != nil {
		return err
	}
	lo := len(r.cur.text)
	text, err := readInto(r.cur.text, f, in, f.size)
	if err == nil {
		err = atEnd(f, in)
	}
	if err != nil {
		return err
	}
	if isBinary(text[lo:]) {
		r.skipped.Binary++
		return nil
	}
	r.cur.text = text
	r.cur.read = r.read + f.size
	r.cur.parts = append(r.cur.parts, part{file: f, lo: lo, hi: len(text), split: r.side(cut > 0), begins: true, ends: true})
	return nil
}

// large reads a file piece by piece, each with one part, in two sections when it
// is cut inside.
func (r *reader) large(ctx context.Context, f *file, in io.Reader, cut int64) error {
	s := section{reader: r, file: f, in: in, line: 1}
	r.carry = r.carry[:0]
	for _, end := range []int64{cut, f.size} {
		if end <= s.pos && len(r.carry) == 0 {
			continue
		}
		s.split, s.begins = r.side(end == cut), true
		if done, err := s.through(ctx, end); err != nil || done {
			return err
		}
	}
	return atEnd(f, in)
}

// section is the state of reading a large file.
type section struct {
	*reader
	file   *file
	in     io.Reader
	pos    int64 // bytes of the file read
	line   int
	split  split
	begins bool
}

// through emits the file up to end, or a little before or beyond, where it can be
// cut. It is done, early, when the file turns out to be binary.
func (s *section) through(ctx context.Context, end int64) (done bool, err error) {
	for s.pos < end || end == s.file.size && len(s.carry) > 0 {
		s.flush()
		if err := s.need(ctx); err != nil {
			return false, err
		}
		if err := s.fill(s.next(end)); err != nil {
			return false, err
		}
		if s.pos == int64(len(s.cur.text)) && s.file.format == Text && isBinary(s.cur.text) {
			s.skipped.Binary++
			s.cur.text = s.cur.text[:0]
			return true, nil
		}
		if err := s.take(end); err != nil {
			return false, err
		}
	}
	s.flush()
	return false, nil
}

// next is how many bytes to read towards end. The last piece is one to two pieces
// long, so that there is most likely a good place to cut in it.
func (s *section) next(end int64) int64 {
	if n := end - s.pos; n < 2*s.limits.piece {
		return max(n, 0)
	}
	return s.limits.piece
}

// fill moves the carried bytes and n more of the file into the piece.
func (s *section) fill(n int64) error {
	s.cur.text = append(s.cur.text, s.carry...)
	s.carry = s.carry[:0]
	text, err := readInto(s.cur.text, s.file, s.in, n)
	s.cur.text = text
	s.pos += n
	return err
}

// take makes a part of the piece's text up to where it can be cut and carries
// the rest.
func (s *section) take(end int64) error {
	n := len(s.cur.text)
	for s.pos < s.file.size {
		if n = cutText(s.file, s.cur.text); n > 0 {
			break
		}
		if int64(len(s.cur.text)) > s.limits.line {
			return errLine(s.file, s.line, s.limits.line)
		}
		if err := s.fill(min(s.limits.piece, s.file.size-s.pos)); err != nil {
			return err
		}
		n = len(s.cur.text)
	}
	s.carry = append(s.carry, s.cur.text[n:]...)
	s.cur.text = s.cur.text[:n]
	s.cur.read = s.read + s.pos
	s.cur.parts = append(s.cur.parts, part{file: s.file, hi: n, line: s.line, split: s.split, begins: s.begins, ends: s.pos >= end})
	s.line += bytes.Count(s.cur.text, []byte("\n"))
	s.begins = false
	return nil
}

// cutText is where text that goes on may be cut: behind a line of JSONL, where
// no token is changed, or at least behind a line or a character. It is 0 when a
// line of JSONL is longer than text.
func cutText(f *file, text []byte) int {
	if f.format != JSONL {
		if n := token.SafeCut(text); n > 0 {
			return n
		}
	}
	if n := bytes.LastIndexByte(text, '\n') + 1; n > 0 || f.format == JSONL {
		return n
	}
	for n := len(text) - 1; n > 0 && n > len(text)-utf8.UTFMax; n-- {
		if utf8.RuneStart(text[n]) {
			return n
		}
	}
	return len(text)
}

// need makes sure that there is a piece to fill.
func (r *reader) need(ctx context.Context) error {
	if r.cur != nil {
		return nil
	}
	select {
	case r.cur = <-r.free:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// flush hands on the piece at hand.
func (r *reader) flush() {
	if r.cur != nil && len(r.cur.parts) > 0 {
		r.emit(r.cur)
		r.cur = nil
	}
}

// readInto appends the next n bytes of f to dst.
func readInto(dst []byte, f *file, in io.Reader, n int64) ([]byte, error) {
	lo := len(dst)
	if need := lo + int(n); need <= cap(dst) {
		dst = dst[:need]
	} else {
		dst = append(dst, make([]byte, n)...)
	}
	if _, err := io.ReadFull(in, dst[lo:]); err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return dst[:lo], errChanged(f, errors.New("it shrank"))
		}
		return dst[:lo], fmt.Errorf("data: reading %w", err)
	}
	return dst, nil
}

// atEnd checks that f has no more bytes than it had.
func atEnd(f *file, in io.Reader) error {
	var one [1]byte
	if n, _ := in.Read(one[:]); n > 0 {
		return errChanged(f, nil)
	}
	return nil
}
