package nn

import (
	"errors"

	"carve/tensor"
)

// Failure is the panic value by which an error leaves the layers, which have no error results: a collective that
// failed or was cancelled.
type Failure struct{ Err error }

func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap is the error itself.
func (f *Failure) Unwrap() error { return f.Err }

// Must unwinds the rank's goroutine to its [Guard] when err is not nil.
func Must(err error) {
	if err != nil {
		panic(&Failure{Err: err})
	}
}

// Guard runs a rank's work and returns the error that unwound it: of a collective, of the arena's limit, or of
// the system's memory. Every goroutine of a rank runs under a Guard. Any other panic is a bug and passes.
//
// After an error the arena holds what the interrupted step left: close it.
func Guard(work func()) (err error) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if e, ok := v.(error); ok && expected(e) {
			err = e
			return
		}
		panic(v)
	}()
	work()
	return nil
}

// expected reports whether a panic value is one that a user's input can cause.
func expected(e error) bool {
	var (
		failure *Failure
		limit   *tensor.LimitError
		system  *tensor.SystemError
	)
	return errors.As(e, &failure) || errors.As(e, &limit) || errors.As(e, &system)
}
