package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interrupts turns signals into two stages: the first closes stop, so that the work ends in order; the second cancels
// the context, so that it ends at once. say tells the user what happens. release gives the signals back.
func interrupts(ctx context.Context, say func(string)) (_ context.Context, stop <-chan struct{}, release func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	asked, ended := make(chan struct{}), make(chan struct{})
	var wait sync.WaitGroup
	wait.Go(func() {
		select {
		case s := <-signals:
			say(fmt.Sprintf("%v: saving after this step; once more ends at once", s))
			close(asked)
		case <-ended:
			return
		}
		select {
		case <-signals:
			cancel(errStopped)
		case <-ended:
		}
	})
	return ctx, asked, func() {
		signal.Stop(signals)
		close(ended)
		wait.Wait()
		cancel(nil)
	}
}
