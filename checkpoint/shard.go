package checkpoint

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"carve/mesh"
	"carve/tensor"

	"github.com/cespare/xxhash/v2"
)

// Entry is one block of a global tensor that a rank owns and writes.
type Entry struct {
	Name   string // of the global tensor
	DType  tensor.DType
	Shape  []int       // of the global tensor
	Region mesh.Region // the block; nil is the whole tensor
	Data   []byte      // the block's numbers, row by row
}

// whole is the region of a tensor that is not split.
func whole(shape []int) mesh.Region {
	r := make(mesh.Region, len(shape))
	for i, n := range shape {
		r[i] = mesh.Range{Start: 0, Stop: n}
	}
	return r
}

// block is the entry's region, made explicit.
func (e Entry) block() mesh.Region {
	if e.Region == nil {
		return whole(e.Shape)
	}
	return e.Region
}

// writeShard writes entries as one safetensors file, synced to disk, and returns the slices it holds.
func writeShard(folder, file string, entries []Entry) (_ []Tensor, err error) {
	head, err := formatHeader(entries)
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(folder, file), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closeErr := f.Close(); err == nil {
			err = closeErr
		}
	}()
	tensors, err := writeEntries(f, head, file, entries)
	if err != nil {
		return nil, err
	}
	return tensors, f.Sync()
}

// writeEntries writes the header and the numbers, hashing them on the way.
func writeEntries(w io.Writer, head []byte, file string, entries []Entry) ([]Tensor, error) {
	out := bufio.NewWriterSize(w, 1<<20)
	if _, err := out.Write(head); err != nil {
		return nil, err
	}
	tensors, keys := make([]Tensor, 0, len(entries)), keysOf(entries)
	for i, e := range entries {
		if _, err := out.Write(e.Data); err != nil {
			return nil, err
		}
		slice := Slice{Region: e.block(), File: file, Key: keys[i], Hash: hashOf(e.Data)}
		tensors = append(tensors, Tensor{Name: e.Name, DType: e.DType, Shape: e.Shape, Slices: []Slice{slice}})
	}
	return tensors, out.Flush()
}

// keysOf names the blocks in their file: by the tensor's name, with a number for every further block of one.
func keysOf(entries []Entry) []string {
	keys, seen := make([]string, len(entries)), map[string]int{}
	for i, e := range entries {
		keys[i] = e.Name
		if n := seen[e.Name]; n > 0 {
			keys[i] = fmt.Sprintf("%s@%d", e.Name, n)
		}
		seen[e.Name]++
	}
	return keys
}

// hashOf is the xxHash64 of data, in hexadecimal.
func hashOf(data []byte) string { return fmt.Sprintf("%016x", xxhash.Sum64(data)) }

// formatHeader is the 8-byte length and the JSON of a safetensors file that holds the entries in their
// order, padded with spaces so that the numbers start at a multiple of 64 bytes.
func formatHeader(entries []Entry) ([]byte, error) {
	const align = 64
	b := bytes.NewBuffer(make([]byte, 8))
	b.WriteString(`{"__metadata__":{"format":"pt"}`)
	at, keys := int64(0), keysOf(entries)
	for i, e := range entries {
		shape := e.block().Shape()
		n, err := byteLen(e.DType, shape)
		if err == nil && n != int64(len(e.Data)) {
			err = fmt.Errorf("%d bytes for a block of %v %v", len(e.Data), e.DType, shape)
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", e.Name, err)
		}
		name, err := json.Marshal(keys[i])
		if err != nil {
			return nil, err
		}
		sizes, err := json.Marshal(shape)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(b, `,%s:{"dtype":%q,"shape":%s,"data_offsets":[%d,%d]}`, name, dtypeName(e.DType), sizes, at, at+n)
		at += n
	}
	b.WriteByte('}')
	for b.Len()%align != 0 {
		b.WriteByte(' ')
	}
	head := b.Bytes()
	binary.LittleEndian.PutUint64(head, uint64(len(head)-8))
	return head, nil
}
