package data

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

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

// ShardFormat says what a .bin file is.
type ShardFormat int

const (
	// Carve is a shard with carve's header and index.
	Carve ShardFormat = iota
	// Uint16 is bare 16-bit ids, little endian, as nanoGPT writes them.
	Uint16
)

// ShardOptions says how to read files of tokens. Vocab is needed for Uint16,
// whose files do not tell it. Validation is the fraction held out at the end when
// no file is there for it.
type ShardOptions struct {
	Format     ShardFormat
	Vocab      int
	Validation float64
}

// OpenShards opens files of tokens: one .bin file, or all of a folder in the
// order of their names. In a folder, files whose names begin with "val" are held
// out; else the last fraction of the tokens is.
func OpenShards(path string, opts ShardOptions) (*Dataset, error) {
	names, err := shardNames(path)
	if err != nil {
		return nil, err
	}
	if opts.Format == Uint16 && (opts.Vocab < 1 || opts.Vocab > 1<<16) {
		return nil, fmt.Errorf("data: %s: bare 16-bit ids do not tell their vocabulary, and it was given as %d; give 1 to 65536", path, opts.Vocab)
	}
	if !(opts.Validation >= 0 && opts.Validation <= 0.5) {
		return nil, fmt.Errorf("data: validation fraction %v; use 0 to 0.5", opts.Validation)
	}
	d := &Dataset{info: Info{Folder: path, EndOfText: -1, Vocab: opts.Vocab, Files: len(names)}}
	for _, name := range names {
		if err := d.addShard(name, opts); err != nil {
			_ = d.Close() // the error of opening is the one to tell
			return nil, err
		}
	}
	d.split(opts.Validation)
	return d, nil
}

// shardNames lists the .bin files at path.
func shardNames(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("data: %w; name a .bin file or a folder of them", err)
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("data: %w; make the folder readable", err)
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() && filepath.Ext(e.Name()) == shardExt && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, filepath.Join(path, e.Name()))
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("data: folder %s has no .bin files; name a folder of token shards", path)
	}
	return names, nil
}

// addShard opens one file; all must have one vocabulary.
func (d *Dataset) addShard(path string, opts ShardOptions) error {
	var s *shard
	switch opts.Format {
	case Carve:
		var err error
		if s, err = openShard(path); err != nil {
			return err
		}
		d.info.Vocab = cmp.Or(d.info.Vocab, s.header.vocab)
		d.info.EndOfText = s.header.endOfText
	case Uint16:
		m, err := openRaw(path, opts.Vocab)
		if err != nil {
			return err
		}
		s = &shard{mapped: m}
	default:
		return fmt.Errorf("data: unknown shard format %d; use Carve or Uint16", int(opts.Format))
	}
	d.shards = append(d.shards, s)
	if s.header.vocab != d.info.Vocab {
		return fmt.Errorf("data: %s: %w: vocabulary of %d, expected %d; do not mix tokenizers", path, ErrShard, s.header.vocab, d.info.Vocab)
	}
	return nil
}

// split sorts the shards to their sides by name, or cuts the last fraction off.
func (d *Dataset) split(fraction float64) {
	d.Train, d.Validation = &Tokens{vocab: d.info.Vocab}, &Tokens{vocab: d.info.Vocab}
	heldOut := func(s *shard) bool { return strings.HasPrefix(filepath.Base(s.path), "val") }
	named := len(d.shards) > 1 && slices.ContainsFunc(d.shards, heldOut)
	total := int64(0)
	for _, s := range d.shards {
		total += s.header.count
	}
	first := total - int64(fraction*float64(total)) // of the tokens held out
	for _, s := range d.shards {
		n := s.header.count
		cut := min(max(first, 0), n)
		if named {
			cut = n
			if heldOut(s) {
				cut = 0
			}
		}
		d.Train.add(s, 0, cut)
		d.Validation.add(s, cut, n)
		first -= n
	}
}
