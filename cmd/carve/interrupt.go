package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// stop is a request to end the work in order. It may be made many times, by any goroutine.
type stop struct {
	asked <-chan struct{} // closed by the first request
	ask   func()
}

func newStop() *stop {
	asked := make(chan struct{})
	return &stop{asked: asked, ask: sync.OnceFunc(func() { close(asked) })}
}

// onSignals turns signals into two stages: the first asks to stop, so that the work ends in order; the second cancels
// the context, so that it ends at once. say tells the user what happens. release gives the signals back.
func (s *stop) onSignals(ctx context.Context, say func(string)) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	ended := make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		select {
		case got := <-signals:
			say(fmt.Sprintf("%v: saving after this step; once more ends at once", got))
			s.ask()
		case <-ended:
			return
		}
		select {
		case <-signals:
			cancel(errStopped)
		case <-ended:
		}
	})
	return ctx, func() {
		signal.Stop(signals)
		close(ended)
		wait.Wait()
		cancel(nil)
	}
}
