package data

import (
	"encoding/binary"
	"fmt"
)

// Packing is what becomes of the seams between documents within a sample.
type Packing uint8

// The kinds.
const (
	// Joined lets text run on: the last token of a document, its end-of-text, has the first of the next as its target.
	Joined Packing = iota
	// ByDocument keeps documents apart: tokens are numbered by document, positions begin anew with each, and the last token
	// of a document has no target.
	ByDocument
)

// Documents is a Corpus that knows where documents begin.
type Documents interface {
	Corpus

	// Number sets dst, one longer than a sample like that of Read, to the number of the document of each token of sample
	// i: 0 for what the sample begins with, and so on. It allocates nothing.
	Number(dst []int32, i int64) error

	// Targets is how many tokens of sample i are followed by one of the same document.
	Targets(i int64, sequence int) (int, error)
}

// Number implements [Documents]. Files without an index are one document.
func (t *Tokens) Number(dst []int32, i int64) error {
	s, at, err := t.find(i, len(dst)-1)
	if err != nil {
		return err
	}
	return s.shard.number(dst, at)
}

// Targets implements [Documents].
func (t *Tokens) Targets(i int64, sequence int) (int, error) {
	s, at, err := t.find(i, sequence)
	if err != nil || s.shard.index == nil {
		return sequence, err
	}
	lo, err := s.shard.index.after(at + 1)
	if err != nil {
		return 0, err
	}
	hi, err := s.shard.index.after(at + int64(sequence) + 1)
	return sequence - int(hi-lo), err
}

// number sets dst to the numbers of the documents of the tokens from position at on.
func (s *shard) number(dst []int32, at int64) error {
	clear(dst)
	if s.index == nil {
		return nil
	}
	entry, err := s.index.after(at + 1)
	if err != nil {
		return err
	}
	return s.index.access(func(entries []byte) error {
		document, done := int32(0), int64(0)
		for ; entry < s.index.header.count; entry++ {
			start := int64(binary.LittleEndian.Uint64(entries[8*entry:])) - at
			if start >= int64(len(dst)) {
				break
			}
			if start < done {
				return fmt.Errorf("data: %s: %w: documents do not begin in order; delete it and prepare the text again", s.index.path, ErrShard)
			}
			fill(dst[done:start], document)
			document, done = document+1, start
		}
		fill(dst[done:], document)
		return nil
	})
}

func fill(dst []int32, v int32) {
	for i := range dst {
		dst[i] = v
	}
}

// Batch is buffers for some samples, [B S] each. Positions and Documents may be nil; they are what Packing says, or else the
// positions in the sample and zeros.
type Batch struct{ Tokens, Targets, Positions, Documents []int32 }

// part is samples [lo, hi) of a batch.
func (b Batch) part(lo, hi, sequence int) Batch {
	cut := func(v []int32) []int32 {
		if v == nil {
			return nil
		}
		return v[lo*sequence : hi*sequence]
	}
	return Batch{cut(b.Tokens), cut(b.Targets), cut(b.Positions), cut(b.Documents)}
}

// check holds the buffers to the number of ids that they need.
func (b Batch) check(samples, sequence int) error {
	want := samples * sequence
	if len(b.Tokens) != want || len(b.Targets) != want {
		return fmt.Errorf("data: buffers of %d and %d ids; a step has %d samples of %d", len(b.Tokens), len(b.Targets), samples, sequence)
	}
	if b.Positions != nil && len(b.Positions) != want || b.Documents != nil && len(b.Documents) != want {
		return fmt.Errorf("data: buffers of %d positions and %d documents; a step has %d samples of %d", len(b.Positions), len(b.Documents), samples, sequence)
	}
	return nil
}

// unpack spreads a row of S+1 ids, and of as many numbers of documents or none, over the buffers of one sample.
func (b Batch) unpack(ids, documents []int32) {
	s := len(b.Tokens)
	copy(b.Tokens, ids[:s])
	copy(b.Targets, ids[1:s+1])
	for i := range s {
		if len(documents) > 0 && documents[i+1] != documents[i] {
			b.Targets[i] = NoTarget
		}
	}
	if b.Documents != nil {
		clear(b.Documents)
		copy(b.Documents, documents)
	}
	start := 0
	for i := range b.Positions {
		if i > 0 && len(documents) > 0 && documents[i] != documents[i-1] {
			start = i
		}
		b.Positions[i] = int32(i - start)
	}
}

// sampler reads samples of a corpus as packing wants them.
type sampler struct {
	corpus    Corpus
	documents Documents // nil for Joined
	sequence  int
}

func newSampler(c Corpus, p Packing, sequence int) (sampler, error) {
	s := sampler{corpus: c, sequence: sequence}
	if p == Joined {
		return s, nil
	}
	var ok bool
	if s.documents, ok = c.(Documents); !ok {
		return s, fmt.Errorf("data: this corpus does not know where documents begin; use packing none")
	}
	return s, nil
}

// width is the number of ids that a sample takes in a row: S+1 tokens, and as many numbers of documents.
func (s *sampler) width() int {
	if s.documents == nil {
		return s.sequence + 1
	}
	return 2 * (s.sequence + 1)
}

// read fills a row with sample i.
func (s *sampler) read(row []int32, i int64) error {
	if err := s.corpus.Read(row[:s.sequence+1], i); err != nil || s.documents == nil {
		return err
	}
	return s.documents.Number(row[s.sequence+1:], i)
}

// unpack spreads rows over the buffers of a batch.
func (s *sampler) unpack(b Batch, rows []int32) {
	for k := range len(b.Tokens) / s.sequence {
		row := rows[k*s.width():][:s.width()]
		b.part(k, k+1, s.sequence).unpack(row[:s.sequence+1], row[s.sequence+1:])
	}
}

// targets is the number of targets of sample i.
func (s *sampler) targets(i int64) (int, error) {
	if s.documents == nil {
		return s.sequence, nil
	}
	return s.documents.Targets(i, s.sequence)
}
