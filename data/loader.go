package data

import (
	"context"
	"fmt"
	"time"
)

// LoaderOptions says which samples a data-parallel rank sees. All ranks of a run
// use the same options but for Rank.
type LoaderOptions struct {
	Sequence    int              // tokens a sample
	GlobalBatch int              // samples a step, over all ranks
	Ranks       int              // data-parallel degree; 0 is 1
	Rank        int              // coordinate on the data axis
	Seed        uint64           // of the order
	Packing     Packing          // of documents in samples
	Now         func() time.Time // the clock that waits are measured with; nil: time.Now
}

// Loader hands out a rank's share of every step. The samples of an epoch come in
// a pseudo-random order that depends on the seed and the epoch alone, step n
// takes the next GlobalBatch of them, and rank d takes its contiguous slice: so
// the samples of a step are the same for every number of ranks. An epoch that
// ends inside a step goes on with the next one.
//
// Next belongs to one goroutine, and so do the other methods.
type Loader struct {
	sampler sampler
	opts    LoaderOptions
	lo, hi  int // this rank's samples of a step
	samples int64
	state   State
	waited  time.Duration
	targets int64 // of the last step, over all ranks
	rows    *rows // buffer of the synchronous mode, made by its first step

	ahead  *prefetcher
	closed bool
}

// State is a position in the data, and what it is a position in. It goes into
// checkpoints. Epoch and Index count the samples of all ranks, so a run may be
// resumed with another number of ranks or another batch.
type State struct {
	Epoch    int64  `json:"epoch"`
	Index    int64  `json:"index"` // samples of the epoch that were used
	Seed     uint64 `json:"seed"`
	Sequence int    `json:"sequence"`
	Samples  int64  `json:"samples"` // in an epoch
	Corpus   string `json:"corpus"`
}

// NewLoader makes a loader at the beginning of the first epoch. It starts no
// goroutine: until Start is called, Next reads when it is asked.
func NewLoader(corpus Corpus, opts LoaderOptions) (*Loader, error) {
	if opts.Ranks == 0 {
		opts.Ranks = 1
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	samples := corpus.Samples(opts.Sequence)
	if samples < 1 {
		return nil, errTooShort(corpus, opts.Sequence)
	}
	l := &Loader{opts: opts, samples: samples}
	var err error
	if l.sampler, err = newSampler(corpus, opts.Packing, opts.Sequence); err != nil {
		return nil, err
	}
	l.lo, l.hi = slice(opts.GlobalBatch, opts.Ranks, opts.Rank)
	l.state = State{Seed: opts.Seed, Sequence: opts.Sequence, Samples: samples, Corpus: corpus.Identity()}
	return l, nil
}

func (o LoaderOptions) validate() error {
	switch {
	case o.Sequence < 1 || o.GlobalBatch < 1:
		return fmt.Errorf("data: sequence %d, global batch %d; both must be at least 1", o.Sequence, o.GlobalBatch)
	case o.Ranks < 1 || o.Rank < 0 || o.Rank >= o.Ranks:
		return fmt.Errorf("data: rank %d of %d; ranks count from 0", o.Rank, o.Ranks)
	case o.GlobalBatch < o.Ranks:
		return fmt.Errorf("data: global batch %d leaves some of %d ranks without a sample; use a batch of at least %d or fewer ranks", o.GlobalBatch, o.Ranks, o.Ranks)
	}
	return nil
}

// errTooShort says how much text there is and how much is needed.
func errTooShort(c Corpus, sequence int) error {
	have := c.Tokens()
	if have < 2 {
		return fmt.Errorf("data: %w: %d tokens, a sequence of %d needs %d; add text", ErrTooShort, have, sequence, sequence+1)
	}
	return fmt.Errorf("data: %w: %d tokens, a sequence of %d needs %d; add text or use a sequence of at most %d",
		ErrTooShort, have, sequence, sequence+1, have-1)
}

// slice is the part [lo, hi) of n items that rank d of ranks takes; parts differ
// by one item at most.
func slice(n, ranks, d int) (lo, hi int) { return d * n / ranks, (d + 1) * n / ranks }

// Rows is the number of samples B that this rank takes of a step.
func (l *Loader) Rows() int { return l.hi - l.lo }

// Samples is the number of samples in an epoch.
func (l *Loader) Samples() int64 { return l.samples }

// State is the position behind the last step that Next returned.
func (l *Loader) State() State { return l.state }

// Waited is the time that Next has spent on waiting for data.
func (l *Loader) Waited() time.Duration { return l.waited }

// Targets is the number of targets of the last step that Next returned, over all ranks: what the sum of its losses is
// divided by. Every rank counts the same, without asking the others.
func (l *Loader) Targets() int64 { return l.targets }

// Resume continues at s, which must come from the same corpus, seed and sequence.
// It must come before Start.
func (l *Loader) Resume(s State) error {
	if l.ahead != nil || l.closed {
		return fmt.Errorf("data: resume before the loader starts")
	}
	now := l.state
	switch {
	case s.Corpus != now.Corpus:
		return fmt.Errorf("data: %w since the state was saved: %s then, %s now; restore the text and the tokenizer, or start the data anew",
			ErrChanged, s.Corpus, now.Corpus)
	case s.Sequence != now.Sequence || s.Samples != now.Samples:
		return fmt.Errorf("data: the state counts %d samples of %d tokens, this run has %d of %d; keep the sequence length or start the data anew",
			s.Samples, s.Sequence, now.Samples, now.Sequence)
	case s.Seed != now.Seed:
		return fmt.Errorf("data: the state has seed %d, this run %d; keep the seed or start the data anew", s.Seed, now.Seed)
	case s.Epoch < 0 || s.Index < 0 || s.Index >= s.Samples:
		return fmt.Errorf("data: the state is at sample %d of %d in epoch %d, which does not exist; it is damaged", s.Index, s.Samples, s.Epoch)
	}
	l.state = s
	return nil
}

// Start reads ahead, up to depth steps, in a goroutine that ends with Close, with
// ctx or with the first error.
func (l *Loader) Start(ctx context.Context, depth int) error {
	switch {
	case l.closed:
		return fmt.Errorf("data: loader: %w", ErrClosed)
	case l.ahead != nil:
		return fmt.Errorf("data: the loader was started before")
	case depth < 1:
		return fmt.Errorf("data: read %d steps ahead; use at least 1", depth)
	}
	l.ahead = startPrefetch(ctx, l.reader(), depth, l.Rows()*l.sampler.width())
	return nil
}

// Next fills the buffers, [B S] each, with this rank's samples of the next step, and returns how long it waited for
// them. It allocates nothing. After an error the position is unchanged.
func (l *Loader) Next(ctx context.Context, b Batch) (time.Duration, error) {
	if err := b.check(l.Rows(), l.opts.Sequence); err != nil {
		return 0, err
	}
	if l.closed {
		return 0, fmt.Errorf("data: loader: %w", ErrClosed)
	}
	begin := l.opts.Now()
	err := l.step(ctx, b)
	wait := l.opts.Now().Sub(begin)
	l.waited += wait
	if err == nil {
		l.state.advance(l.opts.GlobalBatch)
	}
	return wait, err
}

// step takes the next step from the goroutine that reads ahead, or reads it.
func (l *Loader) step(ctx context.Context, b Batch) error {
	use := func(r *rows) {
		l.sampler.unpack(b, r.ids)
		l.targets = r.targets
	}
	if l.ahead != nil {
		return l.ahead.take(ctx, use)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("data: waiting for a step: %w", err)
	}
	if l.rows == nil {
		l.rows = &rows{ids: make([]int32, l.Rows()*l.sampler.width())}
	}
	r := l.reader()
	if err := r.fill(l.rows); err != nil {
		return err
	}
	use(l.rows)
	return nil
}

// Close ends the goroutine that reads ahead and waits for it. The corpus stays
// open.
func (l *Loader) Close() {
	if l.ahead != nil {
		l.ahead.stop()
		l.ahead = nil
	}
	l.closed = true
}

// advance moves the position by n samples.
func (s *State) advance(n int) {
	s.Index += int64(n)
	s.Epoch += s.Index / s.Samples
	s.Index %= s.Samples
}
