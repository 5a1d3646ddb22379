package data

import (
	"context"
	"sync"
)

// pass reads a source once, with several workers.
type pass struct {
	source  *Source
	limits  limits
	workers int
	tail    int64 // see reader

	// work handles a piece; worker numbers the goroutine, from 0. It may be
	// called for several pieces at once, but not for one worker.
	work func(worker int, p *piece) error
	// collect receives the pieces in the order of the text, one at a time.
	collect func(p *piece) error
}

// run reads the source and returns what was skipped. All its goroutines have
// ended when it returns. Of several errors the one nearest to the beginning of
// the text is returned.
func (p pass) run(ctx context.Context) (Skipped, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// A piece is in one place at a time and every channel has room for all of
	// them, so only taking a free piece or a piece of work can block.
	pieces := 2*p.workers + 2
	free, work, order := make(chan *piece, pieces), make(chan *piece, pieces), make(chan *piece, pieces)
	for range pieces {
		free <- newPiece()
	}
	r := &reader{source: p.source, limits: p.limits, tail: p.tail, free: free, skipped: p.source.skipped, emit: func(x *piece) { work <- x; order <- x }}
	var wg sync.WaitGroup
	defer wg.Wait()
	var readErr error
	wg.Go(func() {
		defer close(order) // after readErr is set
		defer close(work)
		readErr = r.all(ctx)
	})
	for w := range p.workers {
		wg.Go(func() { p.serve(ctx, w, work) })
	}
	var err error
	for x := range order {
		<-x.done
		if err == nil {
			if err = p.finish(x); err != nil {
				cancel()
			}
		}
		x.reset()
		free <- x
	}
	if err == nil {
		err = readErr
	}
	return r.skipped, err
}

// serve works on pieces until there are no more.
func (p pass) serve(ctx context.Context, worker int, work <-chan *piece) {
	for x := range work {
		if x.err = ctx.Err(); x.err == nil {
			x.err = p.work(worker, x)
		}
		x.done <- struct{}{}
	}
}

// finish collects a piece whose work succeeded.
func (p pass) finish(x *piece) error {
	if x.err != nil {
		return x.err
	}
	return p.collect(x)
}
