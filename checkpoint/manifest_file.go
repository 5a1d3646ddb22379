package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"carve/mesh"
)

// The manifest as it is written: the keys are the format.
type manifestFile struct {
	Version int             `json:"version"`
	Step    int             `json:"step"`
	Tokens  int64           `json:"tokens"`
	Seed    uint64          `json:"seed"`
	Plan    string          `json:"plan"`
	Data    json.RawMessage `json:"data,omitempty"`
	Tensors []tensorFile    `json:"tensors"`
	Hash    string          `json:"xxhash64"` // of the file with this value empty
}

type tensorFile struct {
	Name   string      `json:"name"`
	DType  string      `json:"dtype"`
	Shape  []int       `json:"shape"`
	Slices []sliceFile `json:"slices"`
}

type sliceFile struct {
	Start []int  `json:"start"`
	Shape []int  `json:"shape"`
	File  string `json:"file"`
	Key   string `json:"key,omitempty"` // when not the tensor's name
	Hash  string `json:"xxhash64"`
}

// encode is the text of the manifest, hash included.
func (m *Manifest) encode() ([]byte, error) {
	f := manifestFile{Version: Version, Step: m.Step, Tokens: m.Tokens, Seed: m.Seed, Plan: m.Plan, Data: m.Data}
	f.Tensors = make([]tensorFile, 0, len(m.Tensors))
	for _, t := range m.Tensors {
		f.Tensors = append(f.Tensors, encodeTensor(t))
	}
	text, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	f.Hash = hashOf(text)
	return json.Marshal(f)
}

func encodeTensor(t Tensor) tensorFile {
	f := tensorFile{Name: t.Name, DType: dtypeName(t.DType), Shape: append([]int{}, t.Shape...)}
	for _, s := range t.Slices {
		start := make([]int, len(s.Region))
		for dim, r := range s.Region {
			start[dim] = r.Start
		}
		one := sliceFile{Start: start, Shape: s.Region.Shape(), File: s.File, Hash: s.Hash}
		if s.Key != t.Name {
			one.Key = s.Key
		}
		f.Slices = append(f.Slices, one)
	}
	return f
}

// readManifest reads and checks the manifest of a checkpoint's folder.
func readManifest(folder string) (*Manifest, error) {
	path := filepath.Join(folder, manifestName)
	info, err := os.Stat(path)
	if err != nil {
		return nil, damaged(folder, "it has no %s", manifestName)
	}
	if info.Size() > maxManifest {
		return nil, damaged(path, "%d bytes are too many for a manifest", info.Size())
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %w", err)
	}
	m, err := decodeManifest(text)
	if err != nil {
		return nil, damaged(path, "%v", err)
	}
	return m, nil
}

// decodeManifest reads the text of a manifest and holds that every tensor is covered by its slices.
func decodeManifest(text []byte) (*Manifest, error) {
	var f manifestFile
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, fmt.Errorf("not valid JSON: %w", err)
	}
	if f.Version != Version {
		return nil, fmt.Errorf("version %d, but this carve reads version %d", f.Version, Version)
	}
	hash := f.Hash
	f.Hash = ""
	if open, err := json.Marshal(f); err != nil || hashOf(open) != hash {
		return nil, errors.New("its hash does not match its content")
	}
	m := &Manifest{State: State{Step: f.Step, Tokens: f.Tokens, Seed: f.Seed, Plan: f.Plan, Data: f.Data}}
	for i, tf := range f.Tensors {
		t, err := decodeTensor(tf)
		if err == nil && i > 0 && f.Tensors[i-1].Name >= t.Name {
			err = errors.New("not in the order of names, or twice")
		}
		if err != nil {
			return nil, fmt.Errorf("tensor %q: %w", clip(tf.Name), err)
		}
		m.Tensors = append(m.Tensors, t)
	}
	return m, nil
}

func decodeTensor(f tensorFile) (Tensor, error) {
	t := Tensor{Name: f.Name, Shape: f.Shape}
	var err error
	if t.DType, err = parseDType(f.DType); err != nil {
		return t, err
	}
	if _, err = byteLen(t.DType, t.Shape); err != nil {
		return t, err
	}
	for _, sf := range f.Slices {
		s, err := decodeSlice(sf, t.Shape)
		if err != nil {
			return t, err
		}
		if s.Key == "" {
			s.Key = t.Name
		}
		t.Slices = append(t.Slices, s)
	}
	return t, checkCover(t)
}

func decodeSlice(f sliceFile, shape []int) (Slice, error) {
	if f.File == "" || f.File != filepath.Base(f.File) || strings.HasPrefix(f.File, ".") || strings.ContainsAny(f.File, `/\:`) {
		return Slice{}, fmt.Errorf("file %q is not a plain name", clip(f.File))
	}
	if len(f.Start) != len(shape) || len(f.Shape) != len(shape) {
		return Slice{}, fmt.Errorf("a slice of %d dimensions of a tensor of %d", len(f.Shape), len(shape))
	}
	region := make(mesh.Region, len(shape))
	for i, n := range shape {
		if f.Start[i] < 0 || f.Shape[i] < 0 || f.Shape[i] > n || f.Start[i] > n-f.Shape[i] {
			return Slice{}, fmt.Errorf("slice %v from %v does not lie in shape %v", f.Shape, f.Start, shape)
		}
		region[i] = mesh.Range{Start: f.Start[i], Stop: f.Start[i] + f.Shape[i]}
	}
	return Slice{Region: region, File: f.File, Key: f.Key, Hash: f.Hash}, nil
}
