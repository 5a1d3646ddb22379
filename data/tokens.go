package data

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// Corpus is a sequence of tokens that can be read a sample at a time, in any
// order. It is safe for concurrent use.
type Corpus interface {
	// Samples is the number of samples of sequence tokens and their targets.
	Samples(sequence int) int64

	// Read copies sample i, below Samples(len(dst)-1), into dst: len(dst)-1
	// tokens and the one that follows them, so that dst[1:] are the targets of
	// dst[:len(dst)-1]. It allocates nothing.
	Read(dst []int32, i int64) error

	// Vocab is the size of the vocabulary: all ids are below it.
	Vocab() int

	// Tokens is the number of tokens.
	Tokens() int64

	// Identity tells one corpus from another: equal identities have equal tokens.
	Identity() string
}

// Tokens is a Corpus on disk. Sample i of a shard is the tokens from i·S to
// (i+1)·S, so that samples share only the token at their seam; less than a
// sequence at the end of a shard is left over.
type Tokens struct {
	vocab int
	spans []span
}

// span is the part [lo, hi) of a shard.
type span struct {
	shard  *shard
	lo, hi int64
}

// add appends a part of a shard, unless it is empty.
func (t *Tokens) add(s *shard, lo, hi int64) {
	if lo < hi {
		t.spans = append(t.spans, span{s, lo, hi})
	}
}

// samples is the number of samples in the span.
func (s span) samples(sequence int) int64 { return max(s.hi-s.lo-1, 0) / int64(sequence) }

// Samples is the number of samples of sequence tokens.
func (t *Tokens) Samples(sequence int) (n int64) {
	for _, s := range t.spans {
		n += s.samples(sequence)
	}
	return n
}

// Vocab is the size of the vocabulary.
func (t *Tokens) Vocab() int { return t.vocab }

// Tokens is the number of tokens.
func (t *Tokens) Tokens() (n int64) {
	for _, s := range t.spans {
		n += s.hi - s.lo
	}
	return n
}

// find is the span of sample i and the position of its first token there.
func (t *Tokens) find(i int64, sequence int) (span, int64, error) {
	rest := i
	for _, s := range t.spans {
		n := s.samples(sequence)
		if rest < n && rest >= 0 {
			return s, s.lo + rest*int64(sequence), nil
		}
		rest -= n
	}
	return span{}, 0, fmt.Errorf("data: sample %d of %d does not exist", i, t.Samples(sequence))
}

// Read copies sample i into dst.
func (t *Tokens) Read(dst []int32, i int64) error {
	s, at, err := t.find(i, len(dst)-1)
	if err != nil {
		return err
	}
	return s.shard.tokens(dst, at)
}

// Documents appends the positions within sample i, 0 to sequence-1, at which a
// document begins. Files without an index have none.
func (t *Tokens) Documents(dst []int64, i int64, sequence int) ([]int64, error) {
	s, at, err := t.find(i, sequence)
	if err != nil {
		return dst, err
	}
	n := len(dst)
	dst, err = s.shard.documentsIn(dst, at, at+int64(sequence))
	for k := range dst[n:] {
		dst[n+k] -= at
	}
	return dst, err
}

// Identity is a hash of the shards' lengths and checksums. A file without a
// checksum is told by its length and its first and last tokens.
func (t *Tokens) Identity() string {
	h := sha256.New()
	fmt.Fprintf(h, "carve tokens 1\n%d\n", t.vocab)
	for _, s := range t.spans {
		fmt.Fprintf(h, "%d %d %d\n", s.lo, s.hi, s.shard.header.count)
		s.shard.identify(h)
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// identify writes what tells the shard's contents from others.
func (s *shard) identify(w io.Writer) {
	if s.index != nil {
		fmt.Fprintf(w, "%016x\n", s.header.sum)
		return
	}
	const edge = 64 << 10
	err := s.access(func(entries []byte) error {
		head, tail := entries[:min(edge, len(entries))], entries[max(0, len(entries)-edge):]
		fmt.Fprintf(w, "%016x %016x\n", xxhash.Sum64(head), xxhash.Sum64(tail))
		return nil
	})
	if err != nil {
		fmt.Fprintln(w, err) // an unreadable file equals none
	}
}
