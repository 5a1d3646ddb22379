package checkpoint

import (
	"encoding/json"
	"slices"
	"strings"

	"carve/mesh"
	"carve/tensor"
)

// Version is the format that this package writes.
const Version = 1

const (
	manifestName = "manifest.json"
	maxManifest  = 256 << 20
)

// Slice is a block of a global tensor in a file.
type Slice struct {
	Region mesh.Region // of the global tensor
	File   string      // a name in the checkpoint's folder
	Key    string      // of the block in the file: the tensor's name, or that and a number for further blocks
	Hash   string      // xxHash64 of the block's bytes, 16 hexadecimal digits
}

// Tensor is a global tensor and where its blocks lie. The slices are disjoint and cover it.
type Tensor struct {
	Name   string
	DType  tensor.DType
	Shape  []int
	Slices []Slice
}

// State is what a run needs beside its tensors to go on bit for bit.
type State struct {
	Step   int             // optimizer steps done
	Tokens int64           // tokens seen in these steps
	Seed   uint64          // of the run
	Plan   string          // hash of the plan
	Data   json.RawMessage // the position in the data, as the loader writes it
}

// Manifest is the table of contents of a checkpoint.
type Manifest struct {
	State
	Tensors []Tensor // sorted by name
}

// Find returns the tensor of the given name.
func (m *Manifest) Find(name string) (Tensor, bool) {
	i, ok := slices.BinarySearchFunc(m.Tensors, name, func(t Tensor, name string) int { return strings.Compare(t.Name, name) })
	if !ok {
		return Tensor{}, false
	}
	return m.Tensors[i], true
}

// Bytes is the size of all tensors.
func (m *Manifest) Bytes() int64 {
	var sum int64
	for _, t := range m.Tensors {
		n, _ := byteLen(t.DType, t.Shape)
		sum += n
	}
	return sum
}

// Merge gathers the slices that several ranks wrote: one tensor a name, sorted by name.
func Merge(shards ...[]Tensor) []Tensor {
	var all []Tensor
	for _, s := range shards {
		all = append(all, s...)
	}
	slices.SortStableFunc(all, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
	merged := all[:0]
	for _, t := range all {
		if n := len(merged); n > 0 && merged[n-1].Name == t.Name {
			merged[n-1].Slices = append(slices.Clip(merged[n-1].Slices), t.Slices...)
			continue
		}
		merged = append(merged, t)
	}
	return merged
}
