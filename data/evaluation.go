package data

import (
	"fmt"
	"io"
)

// EvaluationOptions says how a split is evaluated. All data-parallel ranks use
// the same options but for Rank.
type EvaluationOptions struct {
	Sequence int   // tokens a sample
	Rows     int   // samples a step for one rank
	Ranks    int   // data-parallel degree; 0 is 1
	Rank     int   // coordinate on the data axis
	Limit    int64 // most samples to take, over all ranks, spread evenly over the split; 0: all
	Packing  Packing
}

// NoTarget is the target of a row that pads the last step; its loss does not
// count.
const NoTarget = -1

// Evaluation reads a split once, always in the same order, so that two
// evaluations are comparable: step n takes samples n·Ranks·Rows and on, and rank
// d the d-th Rows of them. All ranks take the same number of steps; in the last
// one some may have fewer samples, or none. It is for one goroutine.
type Evaluation struct {
	sampler sampler
	opts    EvaluationOptions
	all     int64 // samples of the split
	total   int64 // of them taken
	at      int64
	row     []int32
}

// NewEvaluation begins an evaluation.
func NewEvaluation(corpus Corpus, opts EvaluationOptions) (*Evaluation, error) {
	if opts.Ranks == 0 {
		opts.Ranks = 1
	}
	switch {
	case opts.Sequence < 1 || opts.Rows < 1 || opts.Limit < 0:
		return nil, fmt.Errorf("data: evaluating %d rows of %d tokens, at most %d; rows and tokens must be at least 1", opts.Rows, opts.Sequence, opts.Limit)
	case opts.Ranks < 1 || opts.Rank < 0 || opts.Rank >= opts.Ranks:
		return nil, fmt.Errorf("data: rank %d of %d; ranks count from 0", opts.Rank, opts.Ranks)
	}
	all := corpus.Samples(opts.Sequence)
	if all < 1 {
		return nil, fmt.Errorf("%w (of the validation split, whose share may also be raised)", errTooShort(corpus, opts.Sequence))
	}
	total := all
	if opts.Limit > 0 {
		total = min(all, opts.Limit)
	}
	e := &Evaluation{opts: opts, all: all, total: total}
	var err error
	if e.sampler, err = newSampler(corpus, opts.Packing, opts.Sequence); err != nil {
		return nil, err
	}
	e.row = make([]int32, e.sampler.width())
	return e, nil
}

// Samples is the number of samples over all ranks.
func (e *Evaluation) Samples() int64 { return e.total }

// Steps is the number of times that Next succeeds.
func (e *Evaluation) Steps() int64 {
	step := int64(e.opts.Ranks * e.opts.Rows)
	return (e.total + step - 1) / step
}

// Next fills the buffers, [Rows S] each, and returns how many of this rank's rows are samples; the others are tokens
// 0 with targets NoTarget. After the last step the error is io.EOF. It allocates nothing.
func (e *Evaluation) Next(b Batch) (rows int, err error) {
	s := e.opts.Sequence
	if err := b.check(e.opts.Rows, s); err != nil {
		return 0, err
	}
	if e.at >= e.total {
		return 0, io.EOF
	}
	first := e.at + int64(e.opts.Rank*e.opts.Rows)
	for k := range e.opts.Rows {
		one := b.part(k, k+1, s)
		i := first + int64(k)
		if i >= e.total {
			clear(e.row)
			e.sampler.unpack(one, e.row)
			fill(one.Targets, NoTarget)
			continue
		}
		if err := e.sampler.read(e.row, e.sample(i)); err != nil {
			return 0, err
		}
		e.sampler.unpack(one, e.row)
		rows++
	}
	e.at += int64(e.opts.Ranks * e.opts.Rows)
	return rows, nil
}

// sample is the sample of the split that is taken as number i: they are spread evenly, so that a limit does not mean the
// first few documents.
func (e *Evaluation) sample(i int64) int64 { return i*(e.all/e.total) + i*(e.all%e.total)/e.total }

// Rewind goes back to the beginning.
func (e *Evaluation) Rewind() { e.at = 0 }
