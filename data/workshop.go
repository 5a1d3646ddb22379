package data

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"carve/unit"
)

// workshop is a temporary folder inside a cache folder, in which a result is
// built before it is renamed into place. A locked file beside it tells other
// processes that its builder lives; the lock goes with the process, however it
// ends, so that what a killed process left behind is recognised and removed.
type workshop struct {
	folder string
	lock   *os.File
}

const (
	workshopPrefix = ".building-"
	lockSuffix     = ".lock"
)

// newWorkshop makes the cache folder if need be, clears it of the workshops of
// dead processes and makes a new one.
func newWorkshop(cache string) (*workshop, error) {
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return nil, err
	}
	sweep(cache)
	for {
		lock, err := os.CreateTemp(cache, workshopPrefix+"*"+lockSuffix)
		if err != nil {
			return nil, err
		}
		// Between its creation and its lock the file may have been swept.
		if !hold(lock) || !exists(lock.Name()) {
			_ = lock.Close() // only a lock
			continue
		}
		w := &workshop{folder: strings.TrimSuffix(lock.Name(), lockSuffix), lock: lock}
		if err := os.Mkdir(w.folder, 0o755); err != nil {
			w.close()
			return nil, err
		}
		return w, nil
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// sweep removes workshops whose builders are dead. It is housekeeping: what it
// cannot remove stays.
func sweep(cache string) {
	locks, _ := filepath.Glob(filepath.Join(escapeGlob(cache), workshopPrefix+"*"+lockSuffix))
	for _, path := range locks {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			continue
		}
		if abandoned(f) {
			_ = os.RemoveAll(strings.TrimSuffix(path, lockSuffix))
			_ = os.Remove(path)
		}
		_ = f.Close() // releases the lock
	}
}

// escapeGlob makes a path match itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// publish renames the workshop's folder to path, which survives a crash from
// then on. When another process was faster, its result stays and that is no error.
func (w *workshop) publish(d disk, path string) error {
	if err := d.syncFolder(w.folder); err != nil {
		return err
	}
	err := os.Rename(w.folder, path)
	if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, syscall.ENOTEMPTY) {
		return err
	}
	return d.syncFolder(filepath.Dir(path))
}

// close removes what is left of the workshop.
func (w *workshop) close() {
	_ = os.RemoveAll(w.folder) // what stays is swept later
	_ = os.Remove(w.lock.Name())
	_ = w.lock.Close()
}

// errCache explains an error of writing to a cache folder; need is about how
// much room the result takes.
func errCache(cache string, need unit.Bytes, err error) error {
	remedy := "choose another cache folder"
	switch {
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		remedy = fmt.Sprintf("free about %v there or choose another cache folder", need)
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS) || errors.Is(err, syscall.ENOTDIR):
		remedy = "make it writable or choose another cache folder"
	}
	return fmt.Errorf("data: cache folder %s: %w; %s", cache, err, remedy)
}
