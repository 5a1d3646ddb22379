package data

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// walker lists a folder and the folders below it in the order of their names.
type walker struct {
	source     *Source
	extensions []string
	format     Format
}

// folder adds the files of a folder whose name within the source is name.
func (w *walker) folder(ctx context.Context, path, name string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("data: listing %s: %w", w.source.path, err)
	}
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil && name == "" {
		return fmt.Errorf("data: %w; make the folder readable", err)
	}
	if err != nil {
		w.source.skipped.unreadable(err)
		return nil
	}
	for _, e := range entries {
		if err := w.entry(ctx, filepath.Join(path, e.Name()), filepath.ToSlash(filepath.Join(name, e.Name())), e); err != nil {
			return err
		}
	}
	return nil
}

// entry adds one file or folder, or counts why not.
func (w *walker) entry(ctx context.Context, path, name string, e fs.DirEntry) error {
	skipped := &w.source.skipped
	if strings.HasPrefix(e.Name(), ".") {
		skipped.Hidden++
		return nil
	}
	if e.IsDir() {
		return w.folder(ctx, path, name)
	}
	if len(w.extensions) > 0 && !slices.Contains(w.extensions, filepath.Ext(name)) {
		skipped.Extension++
		return nil
	}
	info, err := os.Stat(path) // follows a link; a loop of links is an error
	switch {
	case err != nil:
		skipped.unreadable(err)
	case info.IsDir():
		skipped.Links++
	case !info.Mode().IsRegular():
		skipped.Special++
	case info.Size() == 0:
		skipped.Empty++
	default:
		w.source.files = append(w.source.files, newFile(path, name, info, w.format))
	}
	return nil
}
