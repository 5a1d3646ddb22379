package comm

import (
	"context"
	"errors"
	"sync"
)

// Endpoint is one rank's place in a world of ranks. It is used by that rank's goroutines only.
type Endpoint interface {
	// Rank is the rank's number in the world.
	Rank() int
	// Size is the number of ranks in the world.
	Size() int
	// Token is the rank's compute token. The goroutine that an endpoint is given to holds it.
	Token() *Token
	// Group returns this rank's handle of the group of the given name and ranks. Every member calls it with the same
	// name and the same ranks in the same order; groups of one name have no rank in common. A second call returns
	// the same group.
	Group(name string, ranks []int) (*Group, error)
	// Fail ends the world because of an error of this rank.
	Fail(err error)
	// Cancel ends the world without fault of a rank.
	Cancel(err error)
	// Err is the [*Failure] that ended the world, or nil.
	Err() error
	// Close leaves the world. The rank's operations must have been waited for: the others would wait in vain for what is
	// unfinished, so that is a failure of the rank. When Close has returned nobody touches the rank's tensors.
	Close() error
}

// Run calls f for every endpoint, each in its own goroutine that holds the rank's compute token, and closes the
// endpoint when f has returned. When a rank returns an error or panics, or ctx ends, the world fails, so that
// nobody waits for the rank. Run waits for all and returns the failure.
func Run(ctx context.Context, endpoints []Endpoint, f func(Endpoint) error) error {
	stop := context.AfterFunc(ctx, func() {
		for _, e := range endpoints {
			e.Cancel(context.Cause(ctx))
		}
	})
	defer stop()
	errs := make([]error, len(endpoints))
	var wait sync.WaitGroup
	for i, e := range endpoints {
		wait.Go(func() { errs[i] = runRank(e, f) })
	}
	wait.Wait()
	for _, e := range endpoints {
		if err := e.Err(); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// runRank runs one rank to its end, whatever that is.
func runRank(e Endpoint, f func(Endpoint) error) (err error) {
	err = errExited
	defer func() {
		if value := recover(); value != nil {
			err = newPanicError(value)
		}
		if err != nil {
			e.Fail(err)
		}
		err = errors.Join(err, e.Close())
	}()
	err = f(e)
	return err
}

// errExited stands when f ended its goroutine instead of returning.
var errExited = errors.New("the rank's goroutine exited")
