package data

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"carve/unit"
)

// ShardFormat says what a .bin file is.
type ShardFormat int

const (
	// AnyShard goes by how the file begins: Carve, LLMC, and else Uint16.
	AnyShard ShardFormat = iota
	// Carve is a shard with carve's header and index.
	Carve
	// Uint16 is bare 16-bit ids, little endian, as nanoGPT writes them.
	Uint16
	// LLMC is ids of 16 bits (GPT-2) or 32 bits (Llama 3) behind 256 words of 32 bits, as llm.c writes them.
	LLMC
)

// ShardOptions says how to read files of tokens. Vocab is the model's, for files that do not tell their own: all but
// Carve's. Validation is the fraction held out at the end when no file is there for it.
type ShardOptions struct {
	Format     ShardFormat
	Vocab      int
	Validation float64
}

// OpenShards opens files of tokens: one .bin file, or all of a folder in the order of their names. In a folder, files
// whose names begin with "val" or hold "_val" are held out; else the last fraction of the tokens is. Ids that are
// outside the vocabulary are found at both ends of a file that does not tell it, and elsewhere when they are read.
func OpenShards(path string, opts ShardOptions) (*Dataset, error) {
	names, err := shardNames(path)
	if err != nil {
		return nil, err
	}
	if !(opts.Validation >= 0 && opts.Validation <= 0.5) {
		return nil, fmt.Errorf("data: validation fraction %v; use 0 to 0.5", opts.Validation)
	}
	d := &Dataset{info: Info{Folder: path, EndOfText: -1, Files: len(names)}}
	for _, name := range names {
		if err := d.addShard(name, opts); err != nil {
			_ = d.Close() // the error of opening is the one to tell
			return nil, err
		}
	}
	d.split(opts.Validation)
	return d, nil
}

// IsShards tells whether a path is that of token shards rather than text: a .bin file, or a folder with a train.bin or with
// a .bin file that begins as Carve's or llm.c's do.
func IsShards(path string) bool {
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return err == nil && filepath.Ext(path) == shardExt
	}
	names, err := shardNames(path)
	return err == nil && slices.ContainsFunc(names, func(name string) bool {
		head, err := readHead(name)
		return err == nil && (filepath.Base(name) == "train"+shardExt || formatOfShard(head) != Uint16)
	})
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
	s, err := openAnyShard(path, opts)
	if err != nil {
		return err
	}
	if len(d.shards) == 0 {
		d.info.Vocab, d.info.EndOfText = s.header.vocab, s.header.endOfText
	}
	d.shards = append(d.shards, s)
	d.info.Bytes += unit.Bytes(len(s.bytes))
	if s.header.vocab != d.info.Vocab {
		return fmt.Errorf("data: %s: %w: vocabulary of %d, expected %d; do not mix tokenizers", path, ErrShard, s.header.vocab, d.info.Vocab)
	}
	if s.index != nil {
		return nil // it tells its own vocabulary
	}
	return s.checkEdges()
}

// openAnyShard opens a file of a format.
func openAnyShard(path string, opts ShardOptions) (*shard, error) {
	format := opts.Format
	if format == AnyShard {
		head, err := readHead(path)
		if err != nil {
			return nil, fmt.Errorf("data: %w; name a .bin file with tokens", err)
		}
		format = formatOfShard(head)
	}
	if format == Carve {
		return openShardBelow(path, opts.Vocab)
	}
	if format < AnyShard || format > LLMC {
		return nil, fmt.Errorf("data: unknown shard format %d; use AnyShard, Carve, Uint16 or LLMC", int(format))
	}
	if opts.Vocab < 1 || opts.Vocab > maxVocab {
		return nil, fmt.Errorf("data: %s does not tell its vocabulary, and it was given as %d; give 1 to %d", path, opts.Vocab, maxVocab)
	}
	open := openRaw
	if format == LLMC {
		open = openLLMC
	}
	m, err := open(path, opts.Vocab)
	if err != nil {
		return nil, err
	}
	return &shard{mapped: m}, nil
}

// openShardBelow opens a shard of ours whose vocabulary is at most the given one; 0 is no bound.
func openShardBelow(path string, vocab int) (*shard, error) {
	s, err := openShard(path)
	if err == nil && vocab > 0 && s.header.vocab > vocab {
		err = fmt.Errorf("data: %s has a vocabulary of %d and the model one of %d; use a model with a vocab of %d or more", path, s.header.vocab, vocab, s.header.vocab)
		_ = s.close() // the error above is the one to tell
	}
	return s, err
}

// The header of llm.c: 256 words of 32 bits, of which the first is the magic, the second the version, the third the
// number of ids. Ids of GPT-2 have 16 bits, those of Llama 3 have 32.
const (
	llmcWords      = 256
	llmcMagic16    = 20240520
	llmcVersion16  = 1
	llmcMagic32    = 20240801
	llmcVersion32  = 7
	llmcHeaderSize = 4 * llmcWords
)

// formatOfShard tells a format by how a file begins.
func formatOfShard(head []byte) ShardFormat {
	if bytes.HasPrefix(head, []byte(shardMagic)) {
		return Carve
	}
	if len(head) >= llmcHeaderSize {
		if magic := binary.LittleEndian.Uint32(head); magic == llmcMagic16 || magic == llmcMagic32 {
			return LLMC
		}
	}
	return Uint16
}

// decodeLLMC reads the header of a file of llm.c of the given size. The errors wrap ErrShard and lack the name of the file.
func decodeLLMC(b []byte, size int64) (header, error) {
	if len(b) < llmcHeaderSize {
		return header{}, fmt.Errorf("%w: %d bytes, too short for a header", ErrShard, size)
	}
	le := binary.LittleEndian
	h := header{endOfText: -1, count: int64(le.Uint32(b[8:]))}
	switch magic, version := le.Uint32(b), le.Uint32(b[4:]); {
	case magic == llmcMagic16 && version == llmcVersion16:
		h.width = 2
	case magic == llmcMagic32 && version == llmcVersion32:
		h.width = 4
	default:
		return header{}, fmt.Errorf("%w: magic %d, version %d; llm.c's are %d, %d and %d, %d", ErrShard,
			magic, version, llmcMagic16, llmcVersion16, llmcMagic32, llmcVersion32)
	}
	if llmcHeaderSize+h.count*int64(h.width) != size {
		return header{}, fmt.Errorf("%w: %d bytes, but its header promises %d ids of %d bytes; it is truncated or was not written whole", ErrShard, size, h.count, h.width)
	}
	return h, nil
}

// split sorts the shards to their sides by name, or cuts the last fraction off.
func (d *Dataset) split(fraction float64) {
	d.Train, d.Validation = &Tokens{vocab: d.info.Vocab}, &Tokens{vocab: d.info.Vocab}
	heldOut := func(s *shard) bool {
		name := filepath.Base(s.path)
		return strings.HasPrefix(name, "val") || strings.Contains(name, "_val")
	}
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
