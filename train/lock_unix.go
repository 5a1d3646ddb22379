//go:build unix

package train

import (
	"errors"
	"os"
	"syscall"
)

// lock is an advisory lock on a file. The system gives it up when the process ends, however it ends.
type lock struct{ file *os.File }

// takeLock locks the file, which it makes if need be.
func takeLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errLocked
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &lock{f}, nil
}

// release gives the lock up. The file stays: removing it would let two processes lock two files of one name.
func (l *lock) release() error { return l.file.Close() }
