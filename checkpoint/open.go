package checkpoint

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Checkpoint is a whole checkpoint, open for reading.
type Checkpoint struct {
	Path string
	*Manifest
	files map[string]*shardFile
}

// shardFile is one open safetensors file.
type shardFile struct {
	path string
	file *os.File
	*Header
}

// Open reads the manifest of a checkpoint and the headers of its files, and holds that they agree. The
// numbers are checked by Verify or when they are read.
func Open(path string) (*Checkpoint, error) {
	m, err := readManifest(path)
	if err != nil {
		return nil, err
	}
	c := &Checkpoint{Path: path, Manifest: m, files: map[string]*shardFile{}}
	for _, t := range m.Tensors {
		for _, s := range t.Slices {
			if err := c.check(t, s); err != nil {
				c.Close()
				return nil, err
			}
		}
	}
	return c, nil
}

// Close closes the files.
func (c *Checkpoint) Close() {
	for _, f := range c.files {
		_ = f.file.Close() // only read from
	}
}

// check holds that a slice's file has the block that the manifest says.
func (c *Checkpoint) check(t Tensor, s Slice) error {
	f, err := c.open(s.File)
	if err != nil {
		return err
	}
	info, ok := f.Find(s.Key)
	switch {
	case !ok:
		return damaged(f.path, "it lacks tensor %q", clip(s.Key))
	case info.DType != t.DType || !slices.Equal(info.Shape, s.Region.Shape()):
		return damaged(f.path, "tensor %q is %v %v, the manifest says %v %v", clip(t.Name), info.DType, info.Shape, t.DType, s.Region.Shape())
	}
	return nil
}

// open opens a file of the checkpoint once.
func (c *Checkpoint) open(name string) (*shardFile, error) {
	if f, ok := c.files[name]; ok {
		return f, nil
	}
	path := filepath.Join(c.Path, name)
	file, err := os.Open(path)
	if err != nil {
		return nil, damaged(path, "%v", reason(err))
	}
	info, err := file.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("it is not a regular file")
	}
	var head *Header
	if err == nil {
		head, err = ReadHeader(file, info.Size())
	}
	if err != nil {
		_ = file.Close()
		return nil, damaged(path, "%v", reason(err))
	}
	f := &shardFile{path: path, file: file, Header: head}
	c.files[name] = f
	return f, nil
}

// Verify reads every byte and compares the hashes.
func (c *Checkpoint) Verify() error {
	buffer := make([]byte, 1<<20)
	for _, t := range c.Tensors {
		for _, s := range t.Slices {
			f := c.files[s.File]
			info, _ := f.Find(s.Key)
			digest := xxhash.New()
			for at := info.Start; at < info.Stop; {
				part := buffer[:min(int64(len(buffer)), info.Stop-at)]
				if _, err := f.file.ReadAt(part, at); err != nil {
					return damaged(f.path, "tensor %q: %v", clip(t.Name), reason(err))
				}
				_, _ = digest.Write(part) // cannot fail
				at += int64(len(part))
			}
			if got := fmt.Sprintf("%016x", digest.Sum64()); got != s.Hash {
				return f.mismatch(t)
			}
		}
	}
	return nil
}

func (f *shardFile) mismatch(t Tensor) error {
	return damaged(f.path, "the bytes of tensor %q do not match their hash", clip(t.Name))
}

// reason strips the path that the operating system's error repeats.
func reason(err error) string {
	text := err.Error()
	if i := strings.LastIndex(text, ": "); i >= 0 && strings.HasPrefix(text, "open ") {
		return text[i+2:]
	}
	return text
}
