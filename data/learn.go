package data

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"carve/token"
	"carve/unit"
)

// LearnOptions says which tokenizer to learn. Cache is the folder in which it is
// kept, VocabSize its number of tokens. Workers is the number of goroutines that
// count, all cores when 0. Progress may be nil.
type LearnOptions struct {
	Cache     string
	Pattern   token.Pattern
	VocabSize int
	Workers   int
	Progress  func(Progress)
}

// Learn returns a byte-level BPE of a source: from the cache when the same files
// gave one of this kind before, else learned from all of the text.
func Learn(ctx context.Context, source *Source, opts LearnOptions) (*token.BPE, error) {
	if opts.Workers <= 0 {
		opts.Workers = runtime.GOMAXPROCS(0)
	}
	if opts.Progress == nil {
		opts.Progress = func(Progress) {}
	}
	name := "tokenizer-" + cacheKey(source, opts.Pattern.Regex(), fmt.Sprint(opts.VocabSize))
	folder := filepath.Join(opts.Cache, name)
	// Whatever is wrong with a cached file, it can be made again.
	if b, err := token.LoadFile(filepath.Join(folder, tokenizerName)); err == nil {
		return b, nil
	}
	b, err := learn(ctx, source, opts)
	if err != nil {
		return nil, err
	}
	if err := keepTokenizer(opts.Cache, folder, b); err != nil {
		return nil, errCache(opts.Cache, unit.MiB, err)
	}
	return b, nil
}

// tokenizerName is the file inside a cache entry, which others can use.
const tokenizerName = "tokenizer.json"

// learn counts the words and merges.
func learn(ctx context.Context, source *Source, opts LearnOptions) (*token.BPE, error) {
	counts, err := countWords(ctx, source, opts)
	if ctx.Err() != nil {
		return nil, fmt.Errorf("data: counting words of %s stopped: %w", source.path, context.Cause(ctx))
	}
	if err != nil {
		return nil, err
	}
	return token.Train(ctx, counts, token.TrainOptions{
		VocabSize: opts.VocabSize,
		Progress:  func(done, total int) { opts.Progress(Progress{Merging, int64(done), int64(total)}) },
	})
}

// countWords counts the words of the whole source, in parallel.
func countWords(ctx context.Context, source *Source, opts LearnOptions) (*token.Counter, error) {
	counters := make([]*token.Counter, opts.Workers)
	lines := make([]*lineReader, opts.Workers)
	for i := range counters {
		c, err := token.NewCounter(opts.Pattern)
		if err != nil {
			return nil, err
		}
		counters[i], lines[i] = c, newLineReader(source.field)
	}
	p := pass{
		source: source, limits: defaultLimits(), workers: opts.Workers, tail: -1,
		work: func(worker int, x *piece) error {
			return x.each(lines[worker], func(d document) { counters[worker].Add(d.text) })
		},
		collect: func(x *piece) error {
			opts.Progress(Progress{Counting, x.read, int64(source.bytes)})
			return nil
		},
	}
	skipped, err := p.run(ctx)
	if err != nil {
		return nil, err
	}
	for _, c := range counters[1:] {
		counters[0].Merge(c)
	}
	if counters[0].Bytes() == 0 {
		return nil, source.errNoText(skipped)
	}
	return counters[0], nil
}

// keepTokenizer writes b into the cache, in place of a damaged one.
func keepTokenizer(cache, folder string, b *token.BPE) error {
	w, err := newWorkshop(cache)
	if err != nil {
		return err
	}
	defer w.close()
	var content bytes.Buffer
	if err := b.Save(&content); err != nil {
		return err
	}
	if err := writeFile(osDisk{}, filepath.Join(w.folder, tokenizerName), content.Bytes()); err != nil {
		return err
	}
	if err := os.RemoveAll(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return w.publish(osDisk{}, folder)
}
