package data

import (
	"context"
	"math"

	"carve/token"

	"github.com/cespare/xxhash/v2"
)

// encoding is one pass that writes a source as shards into a folder.
type encoding struct {
	source    *Source
	limits    limits
	tokenizer token.Tokenizer
	endOfText int32
	workers   int
	tail      int64
	threshold uint64 // documents with a smaller hash are for validation
	progress  func(Progress)
	explain   func(error) error // says what to do about an error of writing

	sets    [2]*shardSet // train, validation
	side    int          // of the document at hand
	skipped Skipped
}

// thresholdOf is fraction of all hashes.
func thresholdOf(fraction float64) uint64 {
	return uint64(fraction * math.MaxUint64)
}

// run does the pass. After an error the shards are unfinished.
func (e *encoding) run(ctx context.Context) error {
	lines := make([]*lineReader, e.workers)
	for i := range lines {
		lines[i] = newLineReader(e.source.field)
	}
	p := pass{source: e.source, limits: e.limits, workers: e.workers, tail: e.tail, collect: e.collect}
	p.work = func(worker int, x *piece) error {
		return x.each(lines[worker], func(d document) { e.encode(x, d) })
	}
	var err error
	if e.skipped, err = p.run(ctx); err != nil {
		return err
	}
	for _, s := range e.sets {
		if err := s.finish(); err != nil {
			return e.explain(err)
		}
	}
	return nil
}

// encode appends the tokens of a document to its piece, and end-of-text behind
// its last part.
func (e *encoding) encode(x *piece, d document) {
	lo := len(x.ids)
	x.ids = e.tokenizer.Encode(x.ids, d.text)
	if d.ends {
		x.ids = append(x.ids, e.endOfText)
	}
	u := encoded{tokens: len(x.ids) - lo, split: d.split, begins: d.begins}
	if u.begins && u.split == byHash {
		u.split = train
		// Equal text has an equal hash, so a copy of a document is never on
		// the other side.
		if xxhash.Sum64(d.text) < e.threshold {
			u.split = validation
		}
	}
	x.units = append(x.units, u)
}

// collect writes a piece.
func (e *encoding) collect(x *piece) error {
	ids := x.ids
	for _, u := range x.units {
		if err := e.write(u, ids[:u.tokens]); err != nil {
			return e.explain(err)
		}
		ids = ids[u.tokens:]
	}
	e.progress(Progress{Stage: Encoding, Done: x.read, Total: int64(e.source.bytes)})
	return nil
}

// write adds a document, or a part of one, to its side.
func (e *encoding) write(u encoded, ids []int32) error {
	if u.begins {
		e.side = sideIndex(u.split)
		if err := e.sets[e.side].begin(); err != nil {
			return err
		}
	}
	return e.sets[e.side].add(ids)
}

// sideIndex is the index of a split in sets.
func sideIndex(s split) int {
	if s == validation {
		return 1
	}
	return 0
}

// abandon gives up unfinished shards.
func (e *encoding) abandon() {
	for _, s := range e.sets {
		s.abandon()
	}
}
