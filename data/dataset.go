package data

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"carve/unit"
)

// Dataset is prepared text: the tokens to train on and those held out.
type Dataset struct {
	Train      *Tokens
	Validation *Tokens // may be empty

	info   Info
	shards []*shard
}

// Info describes a dataset. What is not known of files that others made is zero.
type Info struct {
	Folder    string     // or file
	Vocab     int        // ids are below it
	EndOfText int32      // -1: not known
	Tokenizer string     // hash
	Files     int        // of the source
	Bytes     unit.Bytes // of the source
	Skipped   Skipped    // files of the source
}

// Info describes the dataset.
func (d *Dataset) Info() Info { return d.info }

// Close unmaps the shards. Whoever reads afterwards gets ErrClosed.
func (d *Dataset) Close() error {
	var err error
	for _, s := range d.shards {
		err = errors.Join(err, s.close())
	}
	return err
}

// Verify reads everything and checks it: checksums, and every id against the
// vocabulary.
func (d *Dataset) Verify(ctx context.Context) error {
	buffer := make([]int32, 1<<16)
	for _, s := range d.shards {
		if s.index != nil { // raw files have no checksums
			if err := errors.Join(s.check(), s.index.check()); err != nil {
				return err
			}
		}
		for at := int64(0); at < s.header.count; at += int64(len(buffer)) {
			if err := ctx.Err(); err != nil {
				return fmt.Errorf("data: verifying %s: %w", s.path, err)
			}
			if err := s.tokens(buffer[:min(int64(len(buffer)), s.header.count-at)], at); err != nil {
				return err
			}
		}
	}
	return nil
}

// openPrepared opens a folder that Prepare made. The error wraps fs.ErrNotExist
// when there is none.
func openPrepared(folder string) (*Dataset, error) {
	m, err := readManifest(folder)
	if err != nil {
		return nil, err
	}
	d := &Dataset{info: Info{
		Folder: folder, Vocab: m.Vocab, EndOfText: m.EndOfText, Tokenizer: m.Tokenizer,
		Files: m.Files, Bytes: unit.Bytes(m.Bytes), Skipped: m.Skipped,
	}}
	if d.Train, err = d.open(folder, m, m.Train); err == nil {
		d.Validation, err = d.open(folder, m, m.Validation)
	}
	if err != nil {
		_ = d.Close() // the error of opening is the one to tell
		return nil, err
	}
	return d, nil
}

// open opens the shards of one split and checks them against the manifest.
func (d *Dataset) open(folder string, m manifest, infos []shardInfo) (*Tokens, error) {
	t := &Tokens{vocab: m.Vocab}
	for _, i := range infos {
		path := filepath.Join(folder, i.File)
		s, err := openShard(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("data: %s: %w: the manifest lists it, but it is missing", path, ErrShard)
		}
		if err != nil {
			return nil, err
		}
		d.shards = append(d.shards, s)
		h := s.header
		if h.count != i.Tokens || h.vocab != m.Vocab || s.index.header.count != i.Documents || fmt.Sprintf("%016x", h.sum) != i.Sum {
			return nil, fmt.Errorf("data: %s: %w: it is not the file that the manifest describes", path, ErrShard)
		}
		t.spans = append(t.spans, span{s, 0, h.count})
	}
	return t, nil
}
