package train

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"

	"carve/data"
	"carve/plan"
	"carve/token"
)

// corpus is the text of a run as tokens, and the tokenizer that made them.
type corpus struct {
	plan      plan.Plan
	path      string // of the text
	dataset   *data.Dataset
	tokenizer token.Tokenizer // nil for tokens of which none is known
}

// ErrStopped ends a run that was asked to stop before there was anything to save.
var ErrStopped = errors.New("train: stopped before the first step")

// prepare reads the text that the plan names. A new run trains or copies its tokenizer and keeps it in its folder.
func (s *session) prepare(ctx context.Context) (*corpus, error) {
	ctx, done := s.untilStop(ctx)
	defer done()
	c, err := s.openCorpus(ctx)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, input(err)
	}
	if err := s.keep(c); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// untilStop is a context that ends also when the run is asked to stop: there is nothing to save yet.
func (s *session) untilStop(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-s.Stop:
			cancel(ErrStopped)
		case <-ctx.Done():
		}
	}()
	return ctx, func() {
		cancel(nil)
		<-ended
	}
}

// openCorpus opens the text, makes the tokenizer and prepares the tokens.
func (s *session) openCorpus(ctx context.Context) (*corpus, error) {
	c, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.check(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

// open opens what the plan names: tokens, or text.
func (s *session) open(ctx context.Context) (*corpus, error) {
	if learnsTokens(s.plan) {
		return s.openTokens()
	}
	return s.openText(ctx)
}

// openTokens opens token shards. Their vocabulary is that of the model; a tokenizer is needed only to read and write text.
func (s *session) openTokens() (*corpus, error) {
	c := &corpus{plan: s.plan, path: s.plan.Workload.Data[0].Path}
	var err error
	if s.plan.Workload.Tokenizer.Kind == plan.FromTokenizerFile {
		if c.tokenizer, err = s.openTokenizer(nil); err != nil {
			return nil, err
		}
	}
	c.dataset, err = data.OpenShards(c.path, data.ShardOptions{
		Vocab: s.plan.Model.Config.Vocab, Validation: s.plan.Workload.Validation.Fraction,
	})
	return c, err
}

// openText opens text, makes the tokenizer and prepares the tokens.
func (s *session) openText(ctx context.Context) (*corpus, error) {
	source, err := s.openSource(ctx)
	if err != nil {
		return nil, err
	}
	c := &corpus{plan: s.plan, path: source.Path()}
	if c.tokenizer, err = s.openTokenizer(s.learn(ctx, source)); err != nil {
		return nil, err
	}
	c.dataset, err = data.Prepare(ctx, source, c.tokenizer, data.PrepareOptions{
		Cache: s.Cache, Validation: s.plan.Workload.Validation.Fraction, Progress: s.progress(source),
	})
	return c, err
}

// openSource finds the files of the plan's data.
func (s *session) openSource(ctx context.Context) (*data.Source, error) {
	w := s.plan.Workload
	if len(w.Data) == 0 {
		folder, err := goSource(ctx)
		if err != nil {
			return nil, err
		}
		return data.Open(ctx, folder, data.SourceOptions{Format: data.Text, Extensions: []string{".go"}})
	}
	return data.Open(ctx, w.Data[0].Path, data.SourceOptions{Format: formatOf(w.Data[0].Kind)})
}

// formatOf is how the bytes of a source become documents.
func formatOf(k plan.DataKind) data.Format {
	switch k {
	case plan.Text:
		return data.Text
	case plan.JSONL:
		return data.JSONL
	case plan.AutoData, plan.Parquet, plan.Shards:
	}
	return data.Auto
}

// learn trains a tokenizer on text.
func (s *session) learn(ctx context.Context, source *data.Source) func() (*token.BPE, error) {
	return func() (*token.BPE, error) {
		return data.Learn(ctx, source, data.LearnOptions{
			Cache: s.Cache, VocabSize: s.plan.Workload.Tokenizer.Vocab, Progress: s.progress(source),
		})
	}
}

// openTokenizer opens the run's tokenizer, whose tokens the model must know.
func (s *session) openTokenizer(learn func() (*token.BPE, error)) (token.Tokenizer, error) {
	t, err := s.findTokenizer(learn)
	if err != nil {
		return nil, err
	}
	if have, want := t.VocabSize(), s.plan.Model.Config.Vocab; have > want {
		return nil, fmt.Errorf("train: the tokenizer has %d tokens and the model knows %d; use a model with a vocab of %d or more", have, want, have)
	}
	return t, nil
}

// findTokenizer is the tokenizer of the run's folder, or for a new run the one that the plan names.
func (s *session) findTokenizer(learn func() (*token.BPE, error)) (token.Tokenizer, error) {
	if _, err := os.Stat(s.Directory.file(planFile)); err == nil { // the run began before
		return runTokenizer(s.Directory.Path, s.plan)
	}
	switch t := s.plan.Workload.Tokenizer; t.Kind {
	case plan.TrainedBPE:
		return learn()
	case plan.FromTokenizerFile:
		return token.LoadFile(t.Path)
	case plan.ByteTokenizer:
	}
	return token.Bytes{}, nil
}

// progress turns the data's progress into events.
func (s *session) progress(source *data.Source) func(data.Progress) {
	return func(p data.Progress) {
		s.Sink.Event(Preparing{What: p.Stage.String(), Done: p.Done, Total: p.Total, Path: source.Path(), Bytes: source.Bytes()})
	}
}

// keep writes the plan and the tokenizer of a new run into its folder.
func (s *session) keep(c *corpus) error {
	info := c.dataset.Info()
	s.Sink.Event(Text{
		Path: c.path, Files: info.Files, Bytes: info.Bytes, Train: c.dataset.Train.Tokens(), Held: c.dataset.Validation.Tokens(),
		Vocab: info.Vocab, Skipped: info.Skipped.String(),
	})
	if _, err := os.Stat(s.Directory.file(planFile)); err == nil {
		return nil
	}
	if bpe, ok := c.tokenizer.(*token.BPE); ok {
		var text bytes.Buffer
		if err := bpe.Save(&text); err != nil {
			return err
		}
		if err := s.Directory.write(tokenizerFile, text.Bytes()); err != nil {
			return err
		}
	}
	return s.Directory.write(planFile, plan.Encode(s.plan))
}

// check holds that every rank has a micro-batch to train on.
func (c *corpus) check() error {
	s := c.plan.Workload.Sequence
	if have, need := c.dataset.Train.Samples(s), int64(c.plan.Workload.GlobalBatch); have < need {
		return fmt.Errorf("train: %s: too little text for one step: %d tokens make %d sequences of %d, and a step takes %d; give more text, or a smaller sequence or batch",
			c.path, c.dataset.Train.Tokens(), have, s, need)
	}
	return nil
}

// loader hands out the share of a data rank in every step, from the beginning, or from a position on.
func (c *corpus) loader(rank int, from *data.State) (*data.Loader, error) {
	l, err := data.NewLoader(c.dataset.Train, data.LoaderOptions{
		Sequence: c.plan.Workload.Sequence, GlobalBatch: c.plan.Workload.GlobalBatch,
		Ranks: c.plan.Layout.DataParallel(), Rank: rank, Seed: c.plan.Seed,
		Packing: packingOf(c.plan.Workload.Packing),
	})
	if err == nil && from != nil {
		err = l.Resume(*from)
	}
	return l, err
}

// evaluation reads the share of a data rank in what is held back, or is nil when nothing is.
func (c *corpus) evaluation(rank int) (*data.Evaluation, error) {
	w := c.plan.Workload
	if c.dataset.Validation.Samples(w.Sequence) == 0 {
		return nil, nil
	}
	return data.NewEvaluation(c.dataset.Validation, data.EvaluationOptions{
		Sequence: w.Sequence, Rows: c.plan.MicroBatch, Ranks: c.plan.Layout.DataParallel(), Rank: rank,
		Limit: int64(w.Validation.Batches) * int64(w.GlobalBatch), Packing: packingOf(w.Packing),
	})
}

// packingOf is what becomes of documents within a sample.
func packingOf(p plan.Packing) data.Packing {
	switch p {
	case plan.ByDocument:
		return data.ByDocument
	case plan.NoPacking:
	}
	return data.Joined
}

func (c *corpus) close() { _ = c.dataset.Close() }
