package data

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"carve/token"

	"github.com/google/go-cmp/cmp"
)

// fullDisk has room for some bytes.
type fullDisk struct {
	hastyDisk
	room *int
}

func (d fullDisk) create(path string) (diskFile, error) {
	f, err := d.hastyDisk.create(path)
	return fullFile{f, d.room}, err
}

type fullFile struct {
	diskFile
	room *int
}

func (f fullFile) Write(b []byte) (int, error) {
	if *f.room -= len(b); *f.room < 0 {
		return 0, &fs.PathError{Op: "write", Path: "shard", Err: syscall.ENOSPC}
	}
	return f.diskFile.Write(b)
}

func TestDiskFull(t *testing.T) {
	s := open(t, tree(t, manyFiles(60)), SourceOptions{})
	whole := 0
	for _, text := range contents(t, func() string { b := smallBuilder(t, s, token.Bytes{}, PrepareOptions{}); b.mustBuild(t); return b.path }()) {
		whole += len(text)
	}
	for room := 0; room < whole; room += whole/40 + 1 {
		left := room
		b := smallBuilder(t, s, token.Bytes{}, PrepareOptions{})
		b.disk = fullDisk{room: &left}
		_, err := b.dataset(t.Context())
		if !errors.Is(err, syscall.ENOSPC) || !strings.HasPrefix(err.Error(), "data: cache folder "+b.opts.Cache+": write shard: no space left on device; free about ") {
			t.Fatalf("room for %d of %d bytes: %v", room, whole, err)
		}
		if got := entries(t, b.opts.Cache); got != "" {
			t.Fatalf("room for %d of %d bytes: the cache holds %s", room, whole, got)
		}
	}
	b := smallBuilder(t, s, token.Bytes{}, PrepareOptions{})
	b.disk = fullDisk{room: &whole}
	if _, err := b.dataset(t.Context()); err != nil {
		t.Errorf("with room for all: %v", err)
	}
}

// recordingDisk notes what is made durable, in order.
type recordingDisk struct {
	osDisk
	events *[]string
}

func (d recordingDisk) create(path string) (diskFile, error) {
	f, err := d.osDisk.create(path)
	return recordingFile{f, filepath.Base(path), d.events}, err
}

func (d recordingDisk) syncFolder(path string) error {
	*d.events = append(*d.events, "folder")
	return d.osDisk.syncFolder(path)
}

type recordingFile struct {
	diskFile
	name   string
	events *[]string
}

func (f recordingFile) Sync() error {
	*f.events = append(*f.events, f.name)
	return f.diskFile.Sync()
}

// TestPublishedBytesAreDurable expects every file, then the folder, then the
// folder it is renamed in to be synced.
func TestPublishedBytesAreDurable(t *testing.T) {
	s := open(t, tree(t, map[string]string{"a": "x"}), SourceOptions{})
	b := smallBuilder(t, s, token.Bytes{}, PrepareOptions{})
	var events []string
	b.disk = recordingDisk{events: &events}
	b.mustBuild(t)
	if diff := cmp.Diff([]string{"train-00000.bin", "train-00000.idx", "manifest.json", "folder", "folder"}, events); diff != "" {
		t.Error(diff)
	}
}
