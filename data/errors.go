package data

import "errors"

// The states that a caller may want to tell apart. Every error that wraps one
// also says where and what to do.
var (
	// ErrNoText means that a source holds no text that could be read.
	ErrNoText = errors.New("no text")
	// ErrBinary means that a file was given as text and is not.
	ErrBinary = errors.New("not a text file")
	// ErrTooShort means that a split holds less than one sequence.
	ErrTooShort = errors.New("too little text for one sequence")
	// ErrShard means that a file of tokens is damaged or is no such file.
	ErrShard = errors.New("bad token shard")
	// ErrChanged means that the corpus is not what it was: while it was read,
	// or since the state that is to be resumed.
	ErrChanged = errors.New("the corpus changed")
	// ErrClosed means that a Dataset or Loader was used after its Close.
	ErrClosed = errors.New("closed")
)
