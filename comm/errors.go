package comm

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// ErrClosed is the cause of every operation's failure after its world was closed.
var ErrClosed = errors.New("comm: the world is closed")

// ErrMismatch is wrapped when members of a group called different operations.
var ErrMismatch = errors.New("members of the group called different operations")

// ErrLeft is wrapped when a rank left while others needed it.
var ErrLeft = errors.New("left too early")

// ErrInvalid is wrapped when an operation's arguments do not fit each other.
var ErrInvalid = errors.New("invalid arguments")

// Nobody is the rank of a [Failure] that no rank caused: a cancelled context, or Close.
const Nobody = -1

// Failure is the end of a world: the first error of any rank. Every operation that is blocked then or is
// called later, on any rank and group, returns an error that wraps it.
type Failure struct {
	Rank int // the rank that failed, in the world; Nobody when none did
	Err  error
}

func (f *Failure) Error() string {
	if f.Rank == Nobody {
		return fmt.Sprintf("cancelled: %v", f.Err)
	}
	return fmt.Sprintf("rank %d failed: %v", f.Rank, f.Err)
}

func (f *Failure) Unwrap() error { return f.Err }

// OpError says which operation could not be done.
type OpError struct {
	Rank  int    // the rank that called it, in the world
	Group string // name of the group
	Op    Op
	Err   error
}

func (e *OpError) Error() string {
	return fmt.Sprintf("comm: %v of group %q on rank %d: %v", e.Op, e.Group, e.Rank, e.Err)
}

func (e *OpError) Unwrap() error { return e.Err }

// PanicError is a panic of a rank, as [Run] reports it.
type PanicError struct {
	Value any
	Stack []byte
}

func newPanicError(value any) *PanicError { return &PanicError{Value: value, Stack: debug.Stack()} }

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap is the panic's value when that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
