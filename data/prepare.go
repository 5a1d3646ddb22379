package data

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"carve/token"
	"carve/unit"
)

// PrepareOptions says how a source becomes tokens. Cache is the folder in which
// results are kept. Validation is the fraction of the text that is held out, 0
// to 0.5. Workers is the number of goroutines that encode, all cores when 0.
// Progress may be nil.
type PrepareOptions struct {
	Cache      string
	Validation float64
	Workers    int
	Progress   func(Progress)
}

// DefaultValidation is the fraction that carve holds out when it is not told.
const DefaultValidation = 0.01

// fewFiles is the expected number of files held out below which whole files
// would be too coarse a measure.
const fewFiles = 4

// Prepare returns the tokens of a source: from the cache when the same files
// (names, sizes, times), tokenizer and options were prepared before, else by
// encoding them into memory-mapped shards, which appear in the cache all at once
// or not at all. Two processes may prepare the same source at once.
//
// A document is on the validation side when the hash of its text falls below the
// fraction held out, so equal documents are on one side and adding documents
// moves none. A source of few files, or whose hashes hold out nothing, gives its
// last bytes instead, cut behind a line.
func Prepare(ctx context.Context, source *Source, tokenizer token.Tokenizer, opts PrepareOptions) (*Dataset, error) {
	b, err := newBuilder(source, tokenizer, opts)
	if err != nil {
		return nil, err
	}
	return b.dataset(ctx)
}

// newBuilder checks the options.
func newBuilder(source *Source, tokenizer token.Tokenizer, opts PrepareOptions) (*builder, error) {
	endOfText, ok := tokenizer.EndOfText()
	if !ok {
		return nil, errors.New("data: the tokenizer has no end-of-text token to separate documents; use one that has")
	}
	if !(opts.Validation >= 0 && opts.Validation <= 0.5) {
		return nil, fmt.Errorf("data: validation fraction %v; use 0 to 0.5", opts.Validation)
	}
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	if opts.Progress == nil {
		opts.Progress = func(Progress) {}
	}
	key := cacheKey(source, tokenizer.Hash(), fmt.Sprint(opts.Validation))
	return &builder{
		disk: osDisk{}, limits: defaultLimits(), shard: shardTokens,
		source: source, tokenizer: tokenizer, endOfText: endOfText, opts: opts,
		path: filepath.Join(opts.Cache, "tokens-"+key),
	}, nil
}

// cacheKey names a result by all that determines it.
func cacheKey(source *Source, parts ...string) string {
	h := sha256.New()
	fmt.Fprintf(h, "carve cache 1\n%s\n%d\n%q\n", source.identity(), shardVersion, parts)
	return hex.EncodeToString(h.Sum(nil)[:10])
}

// builder prepares one dataset at path.
type builder struct {
	disk      disk
	limits    limits
	shard     int64 // tokens
	source    *Source
	tokenizer token.Tokenizer
	endOfText int32
	opts      PrepareOptions
	path      string
}

// dataset opens the cached result or builds it.
func (b *builder) dataset(ctx context.Context) (*Dataset, error) {
	ds, err := openPrepared(b.path)
	if err == nil {
		return ds, nil
	}
	if exists(b.path) {
		// Just published by another process, or damaged; the text is still there.
		if ds, err = openPrepared(b.path); err == nil {
			return ds, nil
		}
		if err := os.RemoveAll(b.path); err != nil {
			return nil, b.explain(err)
		}
	}
	if err := b.build(ctx); err != nil {
		return nil, err
	}
	return openPrepared(b.path)
}

// build encodes the source into a workshop and publishes it.
func (b *builder) build(ctx context.Context) error {
	w, err := newWorkshop(b.opts.Cache)
	if err != nil {
		return b.explain(err)
	}
	defer w.close()
	e, err := b.encode(ctx, w.folder)
	if err != nil {
		return err
	}
	if err := writeManifest(b.disk, w.folder, b.manifest(e)); err != nil {
		return b.explain(err)
	}
	if err := w.publish(b.disk, b.path); err != nil {
		return b.explain(err)
	}
	return nil
}

// encode writes the shards, a second time when the hashes held out nothing.
func (b *builder) encode(ctx context.Context, folder string) (*encoding, error) {
	few := float64(len(b.source.files))*b.opts.Validation < fewFiles
	if b.opts.Validation > 0 && few && !b.source.hasJSONL() {
		return b.pass(ctx, folder, b.tail())
	}
	e, err := b.pass(ctx, folder, -1)
	if err != nil || b.opts.Validation == 0 || len(e.sets[1].written) > 0 {
		return e, err
	}
	if err := e.sets[0].remove(); err != nil {
		return nil, b.explain(err)
	}
	return b.pass(ctx, folder, b.tail())
}

// tail is the number of bytes held out at the end of the source.
func (b *builder) tail() int64 { return int64(b.opts.Validation * float64(b.source.bytes)) }

// pass writes the shards once.
func (b *builder) pass(ctx context.Context, folder string, tail int64) (*encoding, error) {
	e := &encoding{
		source: b.source, limits: b.limits, tokenizer: b.tokenizer, endOfText: b.endOfText, workers: b.opts.Workers, explain: b.explain,
		tail: tail, threshold: thresholdOf(b.opts.Validation), progress: b.opts.Progress,
	}
	h := header{vocab: b.tokenizer.VocabSize(), endOfText: b.endOfText}
	for i, name := range []string{"train", "validation"} {
		e.sets[i] = &shardSet{disk: b.disk, folder: folder, name: name, header: h, limit: b.shard}
	}
	if err := e.run(ctx); err != nil {
		e.abandon()
		if ctx.Err() != nil {
			err = fmt.Errorf("data: preparing %s stopped and nothing was kept: %w", b.source.path, context.Cause(ctx))
		}
		return nil, err
	}
	if len(e.sets[0].written)+len(e.sets[1].written) == 0 {
		return nil, b.source.errNoText(e.skipped)
	}
	return e, nil
}

// explain adds to an error of writing what the user can do.
func (b *builder) explain(err error) error {
	return errCache(b.opts.Cache, b.source.bytes*unit.Bytes(widthOf(b.tokenizer.VocabSize())), err)
}
