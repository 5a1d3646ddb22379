package data

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// shardTokens is the number of tokens after which a shard ends with the document
// at hand: half a gigabyte of a small vocabulary.
const shardTokens = 1 << 28

// shardSet writes the shards of one split.
type shardSet struct {
	disk   disk
	folder string
	name   string // of the split
	header header
	limit  int64

	tokens  *entryWriter
	starts  *entryWriter
	written []shardInfo
}

// shardInfo is a shard as the manifest lists it.
type shardInfo struct {
	File      string `json:"file"`
	Tokens    int64  `json:"tokens"`
	Documents int64  `json:"documents"`
	Sum       string `json:"xxh64"`
}

// begin marks the beginning of a document, in the next shard if this one is full.
func (s *shardSet) begin() error {
	if s.tokens != nil && s.tokens.header.count >= s.limit {
		if err := s.finish(); err != nil {
			return err
		}
	}
	if s.tokens == nil {
		if err := s.open(); err != nil {
			return err
		}
	}
	return s.starts.put(uint64(s.tokens.header.count))
}

// add writes tokens of the document that was begun.
func (s *shardSet) add(ids []int32) error {
	for _, id := range ids {
		if err := s.tokens.put(uint64(id)); err != nil {
			return err
		}
	}
	return nil
}

// file is the name of the shard at hand, without its ending.
func (s *shardSet) file() string { return fmt.Sprintf("%s-%05d", s.name, len(s.written)) }

// open begins the next shard.
func (s *shardSet) open() error {
	path := filepath.Join(s.folder, s.file())
	h := s.header
	h.magic, h.width = shardMagic, widthOf(h.vocab)
	tokens, err := newEntryWriter(s.disk, path+shardExt, h)
	if err != nil {
		return err
	}
	h.magic, h.width = indexMagic, 8
	starts, err := newEntryWriter(s.disk, path+indexExt, h)
	if err != nil {
		tokens.abandon()
		return err
	}
	s.tokens, s.starts = tokens, starts
	return nil
}

// finish ends the shard at hand, if there is one.
func (s *shardSet) finish() error {
	if s.tokens == nil {
		return nil
	}
	tokens, starts := s.tokens, s.starts
	s.tokens, s.starts = nil, nil
	if err := tokens.finish(); err != nil {
		starts.abandon()
		return err
	}
	if err := starts.finish(); err != nil {
		return err
	}
	s.written = append(s.written, shardInfo{
		File:      s.file() + shardExt,
		Tokens:    tokens.header.count,
		Documents: starts.header.count,
		Sum:       fmt.Sprintf("%016x", tokens.header.sum),
	})
	return nil
}

// abandon gives up the shard at hand.
func (s *shardSet) abandon() {
	if s.tokens != nil {
		s.tokens.abandon()
		s.starts.abandon()
		s.tokens, s.starts = nil, nil
	}
}

// remove deletes the finished shards.
func (s *shardSet) remove() error {
	for _, i := range s.written {
		for _, name := range []string{i.File, indexName(i.File)} {
			if err := os.Remove(filepath.Join(s.folder, name)); err != nil {
				return err
			}
		}
	}
	s.written = nil
	return nil
}

// indexName is the name of a shard's index.
func indexName(shard string) string { return strings.TrimSuffix(shard, shardExt) + indexExt }
