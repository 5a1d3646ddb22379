package nn

import (
	"fmt"
	"hash/fnv"

	"carve/mesh"
	"carve/tensor"
)

// Kind says what a parameter is, for optimizers that treat kinds differently.
type Kind uint8

// The kinds.
const (
	Matrix    Kind = iota // of a hidden linear layer
	Table                 // token or position embedding
	HeadTable             // output projection
	Vector                // scale or bias
)

// String is the name in listings.
func (k Kind) String() string {
	switch k {
	case Matrix:
		return "matrix"
	case Table:
		return "table"
	case HeadTable:
		return "head"
	case Vector:
		return "vector"
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// Init says what a parameter starts as: normal numbers of deviation Std, or, where Std is 0, a constant.
type Init struct{ Std, Constant float64 }

// Param is one named tensor of the model, and the part of it that this rank holds.
type Param struct {
	// Name is the name in Hugging Face's checkpoints, and Shape the global shape; matrices are [out in]. GPT-2's
	// checkpoints store its matrices [in out] (Conv1D) and query, key and value as one: here they are [out in] like
	// all others, and three, named c_attn.q, .k and .v; conversion transposes and joins.
	Name  string
	Shape []int
	// Spec is the placement of value and gradient on the mesh. PP is Replicate: the plan says who holds a layer.
	Spec mesh.Spec
	// Terms are the axes over which the gradients of ranks with the same part are terms of a sum. Along other axes
	// ranks with the same part compute the same gradient.
	Terms mesh.Axes
	Kind  Kind
	Decay bool // weight decay applies
	Init  Init

	// Region is this rank's part of Shape.
	Region mesh.Region
	// Value and Grad are this rank's part, views of the flat buffers of the model from element Offset on.
	Value, Grad *tensor.Tensor
	Offset      int
}

// Len is the number of elements of this rank's part.
func (p *Param) Len() int { return p.Region.Elements() }

// initialise draws the initial value: number (i, j) of the global tensor is the same under every layout.
func (p *Param) initialise(r *Rank) {
	if p.Init.Std == 0 {
		r.Dev.Fill(p.Value, p.Init.Constant)
		return
	}
	op := tensor.Normal{T: p.Value, Key: Key(r.Seed, p.Name), Std: p.Init.Std}
	last := len(p.Shape) - 1
	op.Cols, op.Col = p.Shape[last], p.Region[last].Start
	if last > 0 {
		op.Row = p.Region[0].Start
	}
	r.Dev.Normal(op)
}

// Key names a stream of counter-based random numbers: a hash of a seed and a parameter's name (FNV-1a, mixed by
// the finalizer of splitmix64, so that neighbouring seeds have unrelated streams).
func Key(seed uint64, name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // a hash never fails
	return mix(h.Sum64() ^ seed*0x9e3779b97f4a7c15)
}

// mix is the finalizer of splitmix64.
func mix(k uint64) uint64 {
	k = (k ^ k>>30) * 0xbf58476d1ce4e5b9
	k = (k ^ k>>27) * 0x94d049bb133111eb
	return k ^ k>>31
}
