//go:build unix

package data

import (
	"errors"
	"os"
	"syscall"
)

// hold locks a file of ours until it is closed or the process ends. It is false
// when another process has the lock; where files cannot be locked it is true.
func hold(f *os.File) bool { return !errors.Is(lock(f), syscall.EWOULDBLOCK) }

// abandoned locks a file that another process made and is true when that process
// surely holds it no longer.
func abandoned(f *os.File) bool { return lock(f) == nil }

func lock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
