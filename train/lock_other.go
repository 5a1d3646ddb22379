//go:build !unix

package train

import (
	"errors"
	"io/fs"
	"os"
)

// lock is a file that exists while the lock is held. After a crash it must be removed by hand.
type lock struct{ path string }

// takeLock makes the file, which must not exist.
func takeLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return nil, errLocked
	}
	if err != nil {
		return nil, err
	}
	return &lock{path}, f.Close()
}

// release removes the file.
func (l *lock) release() error { return os.Remove(l.path) }
