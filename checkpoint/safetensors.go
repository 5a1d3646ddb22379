package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"

	"carve/tensor"
)

// maxHeader bounds the header of a safetensors file, as the reference implementation does.
const maxHeader = 100_000_000

// maxDims bounds the dimensions of a stored tensor.
const maxDims = 16

// Info is one tensor of a safetensors file.
type Info struct {
	Name        string
	DType       tensor.DType
	Shape       []int
	Start, Stop int64 // bytes of the file
}

// Header is the directory of a safetensors file.
type Header struct {
	Tensors  []Info // in the order of their bytes
	Metadata map[string]string
}

// Find returns the tensor of the given name.
func (h *Header) Find(name string) (Info, bool) {
	i := slices.IndexFunc(h.Tensors, func(t Info) bool { return t.Name == name })
	if i < 0 {
		return Info{}, false
	}
	return h.Tensors[i], true
}

// ReadHeader reads the directory of a safetensors file of the given size: 8 bytes with the length of the header,
// the header in JSON, the numbers. It holds that the tensors cover the rest of the file exactly, without
// overlap, so that every later read lies inside the file. It never allocates more than the file's size.
func ReadHeader(r io.ReaderAt, size int64) (*Header, error) {
	var length [8]byte
	if size < int64(len(length)) {
		return nil, fmt.Errorf("it has %d bytes, too few for a safetensors file", size)
	}
	if _, err := r.ReadAt(length[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader || n > uint64(size)-8 {
		return nil, fmt.Errorf("its header claims %d bytes of a file of %d", n, size)
	}
	text := make([]byte, n)
	if _, err := r.ReadAt(text, 8); err != nil {
		return nil, err
	}
	h, err := parseHeader(text)
	if err != nil {
		return nil, fmt.Errorf("its header is not valid: %w", err)
	}
	if err := h.place(8+int64(n), size); err != nil {
		return nil, err
	}
	return h, nil
}

// parseHeader reads the JSON of a header; offsets are still relative to the data.
func parseHeader(text []byte) (*Header, error) {
	h := &Header{}
	d := json.NewDecoder(bytes.NewReader(text))
	err := eachKey(d, func(key string) error {
		if key == "__metadata__" {
			return d.Decode(&h.Metadata)
		}
		info, err := parseInfo(d)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", clip(key), err)
		}
		info.Name = key
		h.Tensors = append(h.Tensors, info)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the JSON object")
	}
	return h, nil
}

// parseInfo reads {"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}.
func parseInfo(d *json.Decoder) (Info, error) {
	var info Info
	var dtype string
	var offsets []int64
	err := eachKey(d, func(key string) error {
		switch key {
		case "dtype":
			return decodeSmall(d, &dtype)
		case "shape":
			return decodeSmall(d, &info.Shape)
		case "data_offsets":
			return decodeSmall(d, &offsets)
		}
		return fmt.Errorf("unknown key %q", clip(key))
	})
	if err != nil {
		return info, err
	}
	if info.DType, err = parseDType(dtype); err != nil {
		return info, err
	}
	if len(offsets) != 2 || offsets[0] < 0 || offsets[1] < offsets[0] {
		return info, fmt.Errorf("data_offsets %v are not a range", offsets[:min(len(offsets), 4)])
	}
	info.Start, info.Stop = offsets[0], offsets[1]
	want, err := byteLen(info.DType, info.Shape)
	if err == nil && want != info.Stop-info.Start {
		err = fmt.Errorf("%v %v needs %d bytes, data_offsets give %d", info.DType, info.Shape, want, info.Stop-info.Start)
	}
	return info, err
}

// decodeSmall decodes a value that is a few numbers or a word, and refuses a long one before building it.
func decodeSmall(d *json.Decoder, v any) error {
	const limit = 1000
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		return err
	}
	if len(raw) > limit {
		return fmt.Errorf("a value of %d bytes", len(raw))
	}
	return json.Unmarshal(raw, v)
}

// eachKey calls f for every key of the JSON object that d stands before; f must consume the value. A key
// that appears twice is an error.
func eachKey(d *json.Decoder, f func(key string) error) error {
	if t, err := d.Token(); err != nil {
		return err
	} else if t != json.Delim('{') {
		return fmt.Errorf("%v where an object should begin", t)
	}
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		key, ok := t.(string)
		if !ok || seen[key] {
			return fmt.Errorf("key %q appears twice", clip(fmt.Sprint(t)))
		}
		seen[key] = true
		if err := f(key); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

// byteLen is the size of a tensor in bytes; sizes that are negative or overflow are errors.
func byteLen(d tensor.DType, shape []int) (int64, error) {
	if len(shape) > maxDims {
		return 0, fmt.Errorf("%d dimensions; at most %d", len(shape), maxDims)
	}
	n := uint64(d.Size())
	for _, dim := range shape {
		if dim < 0 {
			return 0, fmt.Errorf("negative size in shape %v", shape)
		}
		high, low := bits.Mul64(n, uint64(dim))
		if high != 0 || low > 1<<62 {
			return 0, fmt.Errorf("shape %v is too large", shape)
		}
		n = low
	}
	return int64(n), nil
}

// place turns offsets into positions of a file whose data begin at start, and holds that the tensors cover
// the data exactly.
func (h *Header) place(start, size int64) error {
	slices.SortStableFunc(h.Tensors, func(a, b Info) int {
		if a.Start != b.Start {
			return cmp.Compare(a.Start, b.Start)
		}
		return cmp.Compare(a.Stop, b.Stop)
	})
	at := int64(0)
	for i := range h.Tensors {
		t := &h.Tensors[i]
		if t.Start != at {
			return fmt.Errorf("tensor %q begins at byte %d of the data, the one before it ends at %d", clip(t.Name), t.Start, at)
		}
		if t.Stop > size-start {
			return fmt.Errorf("tensor %q ends at byte %d of the data, the file at %d", clip(t.Name), t.Stop, size-start)
		}
		at = t.Stop
		t.Start, t.Stop = t.Start+start, t.Stop+start
	}
	if at != size-start {
		return fmt.Errorf("%d bytes follow the last tensor", size-start-at)
	}
	return nil
}
