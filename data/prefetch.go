package data

import (
	"context"
	"fmt"
	"sync"
)

// stepReader reads the samples of one rank's steps from a position on.
type stepReader struct {
	corpus Corpus
	lo     int
	batch  int
	state  State

	epoch int64
	order permutation
}

// reader is at the present position.
func (l *Loader) reader() stepReader {
	return stepReader{corpus: l.corpus, lo: l.lo, batch: l.opts.GlobalBatch, state: l.state, epoch: -1}
}

// read copies this rank's sample k of the step into row.
func (r *stepReader) read(row []int32, k int) error {
	at := r.state
	at.advance(r.lo + k)
	if at.Epoch != r.epoch {
		r.epoch = at.Epoch
		r.order = newPermutation(uint64(at.Samples), at.Seed, uint64(at.Epoch))
	}
	return r.corpus.Read(row, int64(r.order.at(uint64(at.Index))))
}

// fill reads all of this rank's rows of the step and moves on to the next.
func (r *stepReader) fill(rows []int32) error {
	width := r.state.Sequence + 1
	for k := range len(rows) / width {
		if err := r.read(rows[k*width:][:width], k); err != nil {
			return err
		}
	}
	r.state.advance(r.batch)
	return nil
}

// prefetcher reads steps ahead in a goroutine. Buffers go round: free ones to the
// goroutine, filled ones back.
type prefetcher struct {
	free, ready chan []int32
	cancel      context.CancelFunc
	wg          sync.WaitGroup
	done        chan struct{} // closed when the goroutine ends, after err is set
	err         error
}

func startPrefetch(ctx context.Context, r stepReader, depth, size int) *prefetcher {
	ctx, cancel := context.WithCancel(ctx)
	p := &prefetcher{free: make(chan []int32, depth), ready: make(chan []int32, depth), cancel: cancel, done: make(chan struct{})}
	for range depth {
		p.free <- make([]int32, size)
	}
	p.wg.Go(func() {
		defer close(p.done)
		p.err = p.run(ctx, &r)
	})
	return p
}

// run fills free buffers until ctx ends or reading fails.
func (p *prefetcher) run(ctx context.Context, r *stepReader) error {
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("data: reading ahead: %w", context.Cause(ctx))
		case rows := <-p.free:
			if err := r.fill(rows); err != nil {
				return err
			}
			p.ready <- rows
		}
	}
}

// take calls use with the next step's rows.
func (p *prefetcher) take(ctx context.Context, use func(rows []int32)) error {
	var rows []int32
	select {
	case rows = <-p.ready:
	default:
		select {
		case rows = <-p.ready:
		case <-ctx.Done():
			return fmt.Errorf("data: waiting for a step: %w", context.Cause(ctx))
		case <-p.done:
			select {
			case rows = <-p.ready: // read before the end
			default:
				return p.err
			}
		}
	}
	use(rows)
	p.free <- rows
	return nil
}

// stop ends the goroutine and waits for it.
func (p *prefetcher) stop() {
	p.cancel()
	p.wg.Wait()
}
