package data

import (
	"context"
	"fmt"
	"sync"
)

// rows is this rank's samples of a step, and what is known of the step.
type rows struct {
	ids     []int32 // as of sampler.read
	targets int64   // over all ranks
}

// stepReader reads the samples of one rank's steps from a position on.
type stepReader struct {
	sampler sampler
	lo      int
	batch   int
	state   State

	epoch int64
	order permutation
}

// reader is at the present position.
func (l *Loader) reader() stepReader {
	return stepReader{sampler: l.sampler, lo: l.lo, batch: l.opts.GlobalBatch, state: l.state, epoch: -1}
}

// sample is which sample of the corpus is number k of the step's global batch.
func (r *stepReader) sample(k int) int64 {
	at := r.state
	at.advance(k)
	if at.Epoch != r.epoch {
		r.epoch = at.Epoch
		r.order = newPermutation(uint64(at.Samples), at.Seed, uint64(at.Epoch))
	}
	return int64(r.order.at(uint64(at.Index)))
}

// fill reads all of this rank's rows of the step and moves on to the next.
func (r *stepReader) fill(to *rows) error {
	width := r.sampler.width()
	for k := range len(to.ids) / width {
		if err := r.sampler.read(to.ids[k*width:][:width], r.sample(r.lo+k)); err != nil {
			return err
		}
	}
	if err := r.count(to); err != nil {
		return err
	}
	r.state.advance(r.batch)
	return nil
}

// count counts the targets of the whole step.
func (r *stepReader) count(to *rows) error {
	to.targets = int64(r.batch) * int64(r.sampler.sequence)
	if r.sampler.documents == nil {
		return nil
	}
	to.targets = 0
	for k := range r.batch {
		n, err := r.sampler.targets(r.sample(k))
		if err != nil {
			return err
		}
		to.targets += int64(n)
	}
	return nil
}

// prefetcher reads steps ahead in a goroutine. Buffers go round: free ones to the
// goroutine, filled ones back.
type prefetcher struct {
	free, ready chan *rows
	cancel      context.CancelFunc
	wg          sync.WaitGroup
	done        chan struct{} // closed when the goroutine ends, after err is set
	err         error
}

func startPrefetch(ctx context.Context, r stepReader, depth, size int) *prefetcher {
	ctx, cancel := context.WithCancel(ctx)
	p := &prefetcher{free: make(chan *rows, depth), ready: make(chan *rows, depth), cancel: cancel, done: make(chan struct{})}
	for range depth {
		p.free <- &rows{ids: make([]int32, size)}
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
		case buffer := <-p.free:
			if err := r.fill(buffer); err != nil {
				return err
			}
			p.ready <- buffer
		}
	}
}

// take calls use with the next step's rows.
func (p *prefetcher) take(ctx context.Context, use func(*rows)) error {
	var step *rows
	select {
	case step = <-p.ready:
	default:
		select {
		case step = <-p.ready:
		case <-ctx.Done():
			return fmt.Errorf("data: waiting for a step: %w", context.Cause(ctx))
		case <-p.done:
			select {
			case step = <-p.ready: // read before the end
			default:
				return p.err
			}
		}
	}
	use(step)
	p.free <- step
	return nil
}

// stop ends the goroutine and waits for it.
func (p *prefetcher) stop() {
	p.cancel()
	p.wg.Wait()
}
