package data

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"syscall"

	"github.com/cespare/xxhash/v2"
)

// disk makes the files of a shard; tests put a full one in its place.
type disk interface {
	create(path string) (diskFile, error)
	syncFolder(path string) error
}

type diskFile interface {
	io.Writer
	io.WriterAt
	Sync() error
	Close() error
}

// osDisk is the real one.
type osDisk struct{}

func (osDisk) create(path string) (diskFile, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
}

// syncFolder makes the names in a folder durable.
func (osDisk) syncFolder(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	// Some file systems cannot sync a folder and need not.
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}

// entryWriter writes one file of entries behind a header.
type entryWriter struct {
	file   diskFile
	header header
	digest *xxhash.Digest
	buffer []byte
}

const writeBuffer = 256 << 10

func newEntryWriter(d disk, path string, h header) (*entryWriter, error) {
	f, err := d.create(path)
	if err != nil {
		return nil, err
	}
	w := &entryWriter{file: f, header: h, digest: xxhash.New(), buffer: make([]byte, 0, writeBuffer)}
	if _, err := f.Write(h.encode()); err != nil {
		_ = f.Close() // the write's error is the one to tell
		return nil, err
	}
	return w, nil
}

// put adds an entry.
func (w *entryWriter) put(v uint64) error {
	switch w.header.width {
	case 2:
		w.buffer = binary.LittleEndian.AppendUint16(w.buffer, uint16(v))
	case 4:
		w.buffer = binary.LittleEndian.AppendUint32(w.buffer, uint32(v))
	default:
		w.buffer = binary.LittleEndian.AppendUint64(w.buffer, v)
	}
	w.header.count++
	if len(w.buffer) == writeBuffer {
		return w.flush()
	}
	return nil
}

func (w *entryWriter) flush() error {
	_, _ = w.digest.Write(w.buffer) // a digest never fails
	_, err := w.file.Write(w.buffer)
	w.buffer = w.buffer[:0]
	return err
}

// finish completes the header, makes the file durable and closes it.
func (w *entryWriter) finish() error {
	err := w.complete()
	if closeErr := w.file.Close(); err == nil {
		err = closeErr
	}
	return err
}

func (w *entryWriter) complete() error {
	if err := w.flush(); err != nil {
		return err
	}
	w.header.sum = w.digest.Sum64()
	if _, err := w.file.WriteAt(w.header.encode(), 0); err != nil {
		return err
	}
	return w.file.Sync()
}

// abandon closes an unfinished file.
func (w *entryWriter) abandon() {
	_ = w.file.Close() // the file is given up: its errors do not matter
}
