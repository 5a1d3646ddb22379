package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// ErrNone says that a folder holds no checkpoint.
var ErrNone = errors.New("checkpoint: there is none")

// DamageError says that a checkpoint, or a file of one, cannot be trusted.
type DamageError struct {
	Path   string // of the file or folder
	Reason string
}

func (e *DamageError) Error() string {
	return fmt.Sprintf("checkpoint: %s is damaged: %s", e.Path, e.Reason)
}

// damaged makes a DamageError.
func damaged(path, format string, args ...any) error {
	return &DamageError{Path: path, Reason: fmt.Sprintf(format, args...)}
}

// writeError adds the remedy to an error of the file system.
func writeError(err error) error {
	const kept = "; the checkpoints already there are untouched"
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EFBIG):
		return fmt.Errorf("checkpoint: %w; free some space or keep fewer checkpoints%s", err, kept)
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return fmt.Errorf("checkpoint: %w; make the folder writable or use another%s", err, kept)
	}
	return fmt.Errorf("checkpoint: %w", err)
}
