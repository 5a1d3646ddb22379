package data

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"carve/unit"
)

// Format says how the bytes of a file become documents.
type Format int

const (
	// Auto goes by the name: .jsonl and .ndjson are JSONL, everything else is Text.
	Auto Format = iota
	// Text is one document a file.
	Text
	// JSONL is one document a line: an object with a field of text.
	JSONL
)

// String names the format.
func (f Format) String() string {
	switch f {
	case Auto:
		return "auto"
	case Text:
		return "text"
	case JSONL:
		return "jsonl"
	}
	return fmt.Sprintf("format(%d)", int(f))
}

// DefaultField is the field of a JSONL object that holds the text.
const DefaultField = "text"

// SourceOptions says what to read. The zero value reads every text file of a
// folder and the field "text" of JSONL.
type SourceOptions struct {
	Format     Format
	Extensions []string // of the files of a folder, such as ".go"; none: all
	Field      string   // of a JSONL object; "": DefaultField
}

// Source is text on disk: the files of a folder in the order of their paths, or
// one file. It holds names and sizes, no text.
type Source struct {
	path    string
	field   string
	files   []file
	bytes   unit.Bytes
	skipped Skipped
}

// file is one file of a source.
type file struct {
	path   string // to open it
	name   string // within the source, with slashes
	size   int64
	mtime  time.Time
	format Format
}

// Skipped counts the files that a source leaves out, by reason. Example is one
// that could not be read, with its error.
type Skipped struct {
	Extension  int    `json:"extension,omitempty"`  // not one of the extensions wanted
	Hidden     int    `json:"hidden,omitempty"`     // files and folders whose name begins with a dot
	Empty      int    `json:"empty,omitempty"`      // no bytes
	Binary     int    `json:"binary,omitempty"`     // not text
	Links      int    `json:"links,omitempty"`      // symbolic links to folders, which could make loops
	Special    int    `json:"special,omitempty"`    // pipes, sockets, devices
	Unreadable int    `json:"unreadable,omitempty"` // could not be opened or listed
	Example    string `json:"example,omitempty"`
}

// String lists the reasons that occur: "2 binary, 1 unreadable (x: permission denied)".
func (s Skipped) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{s.Extension, "with another extension"},
		{s.Hidden, "hidden"},
		{s.Empty, "empty"},
		{s.Binary, "binary"},
		{s.Links, "links to folders"},
		{s.Special, "not regular files"},
		{s.Unreadable, "unreadable"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if len(parts) == 0 {
		return "nothing"
	}
	if s.Example != "" {
		parts[len(parts)-1] += " (" + s.Example + ")"
	}
	return strings.Join(parts, ", ")
}

// unreadable counts a file that could not be read.
func (s *Skipped) unreadable(err error) {
	if s.Unreadable == 0 {
		s.Example = err.Error()
	}
	s.Unreadable++
}

// Open finds the files at path, a folder or a file, without reading them. In a
// folder, what cannot be read is skipped and counted; a single file must be text.
func Open(ctx context.Context, path string, opts SourceOptions) (*Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("data: %w; name a folder, a text file, a .jsonl file or token shards (.bin)", err)
	}
	s := &Source{path: path, field: opts.Field}
	if s.field == "" {
		s.field = DefaultField
	}
	switch {
	case info.IsDir():
		err = s.openFolder(ctx, opts)
	case info.Mode().IsRegular():
		err = s.openFile(info, opts)
	default:
		err = fmt.Errorf("data: %s is neither a folder nor a regular file; copy it to a file first", path)
	}
	if err != nil {
		return nil, err
	}
	for _, f := range s.files {
		s.bytes += unit.Bytes(f.size)
	}
	return s, nil
}

// openFile makes the source of a single file.
func (s *Source) openFile(info fs.FileInfo, opts SourceOptions) error {
	if info.Size() == 0 {
		return fmt.Errorf("data: %s is empty: %w; name a file with text", s.path, ErrNoText)
	}
	s.files = []file{newFile(s.path, filepath.Base(s.path), info, opts.Format)}
	head, err := readHead(s.path)
	if err != nil {
		return fmt.Errorf("data: %w; make the file readable", err)
	}
	if isBinary(head) {
		return fmt.Errorf("data: %s: %w; convert it to UTF-8 text", s.path, ErrBinary)
	}
	return nil
}

// openFolder makes the source of a folder.
func (s *Source) openFolder(ctx context.Context, opts SourceOptions) error {
	w := walker{source: s, extensions: dotted(opts.Extensions), format: opts.Format}
	if err := w.folder(ctx, s.path, ""); err != nil {
		return err
	}
	if len(s.files) > 0 {
		return nil
	}
	if s.skipped == (Skipped{}) {
		return fmt.Errorf("data: folder %s is empty: %w; name a folder with text files", s.path, ErrNoText)
	}
	return s.errNoText(s.skipped)
}

// errNoText says why a source has no text.
func (s *Source) errNoText(skipped Skipped) error {
	if skipped == (Skipped{}) {
		return fmt.Errorf("data: %w in %s: every document is empty; choose another path", ErrNoText, s.path)
	}
	return fmt.Errorf("data: %w in %s: skipped %s; choose another path or other extensions", ErrNoText, s.path, skipped)
}

// dotted gives every extension its dot.
func dotted(extensions []string) (out []string) {
	for _, e := range extensions {
		if !strings.HasPrefix(e, ".") {
			e = "." + e
		}
		out = append(out, e)
	}
	return out
}

func newFile(path, name string, info fs.FileInfo, format Format) file {
	if format == Auto {
		format = Text
		if ext := strings.ToLower(filepath.Ext(name)); ext == ".jsonl" || ext == ".ndjson" {
			format = JSONL
		}
	}
	return file{path, name, info.Size(), info.ModTime(), format}
}

// Path is the path that the source was opened with.
func (s *Source) Path() string { return s.path }

// Files is the number of files, binary ones included: those are recognised only
// when they are read.
func (s *Source) Files() int { return len(s.files) }

// Bytes is the size of all files.
func (s *Source) Bytes() unit.Bytes { return s.bytes }

// Skipped counts what Open left out.
func (s *Source) Skipped() Skipped { return s.skipped }

// hasJSONL tells whether a file holds many documents.
func (s *Source) hasJSONL() bool {
	return slices.ContainsFunc(s.files, func(f file) bool { return f.format == JSONL })
}

// identity is a hash of the names, sizes and times of the files and of how they
// are read: what is equal here is taken to be the same text.
func (s *Source) identity() string {
	h := sha256.New()
	fmt.Fprintf(h, "carve source 1\nfield %q\n", s.field)
	for _, f := range s.files {
		fmt.Fprintf(h, "%q %d %d %v\n", f.name, f.size, f.mtime.UnixNano(), f.format)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// readHead reads the beginning of a file, enough to tell text from other data.
func readHead(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	return head[:n], nil
}
