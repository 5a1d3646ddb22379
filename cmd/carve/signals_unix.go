//go:build unix

package main

import (
	"os/signal"
	"syscall"
)

// failingWrites makes writes that the system refuses errors like any other, which can be told and after which the state
// can be saved: to a pipe that nobody reads, and beyond a limit on the size of files.
func failingWrites() { signal.Ignore(syscall.SIGPIPE, syscall.SIGXFSZ) }
