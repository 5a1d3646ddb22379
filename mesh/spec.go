package mesh

import (
	"errors"
	"fmt"
	"strings"
)

// Kind says what an axis does to a tensor.
type Kind uint8

// The kinds of placement. The zero value is Replicated, so an axis that is not mentioned copies.
const (
	Replicated Kind = iota // every coordinate holds the same numbers
	Sharded                // every coordinate holds a part of one dim
	Pending                // every coordinate holds a term; reducing them gives the tensor
	Single                 // one coordinate holds the tensor, the others hold nothing of it
)

// Reduction says how the terms of a Partial placement combine.
type Reduction uint8

// The reductions.
const (
	Sum Reduction = iota
	Avg
	Min
	Max
)

// String returns "sum", "avg", "min" or "max".
func (r Reduction) String() string {
	names := [...]string{"sum", "avg", "min", "max"}
	if int(r) >= len(names) {
		return fmt.Sprintf("reduction(%d)", uint8(r))
	}
	return names[r]
}

// Placement says how a tensor lies along one axis. Make one with Shard, ShardParts, Replicate, Partial or Only.
type Placement struct {
	Kind  Kind
	Dim   int       // the tensor dim that is split, for Sharded
	Parts int       // the number of parts, for Sharded; 0 means the degree of the axis
	Op    Reduction // how terms combine, for Pending
	At    int       // the coordinate that holds the tensor, for Single
}

// Replicate returns the placement that copies.
func Replicate() Placement { return Placement{} }

// Shard returns the placement that splits a dim over all coordinates of the axis. When the degree does
// not divide the dim, the first coordinates get one more (see Split).
func Shard(dim int) Placement { return Placement{Kind: Sharded, Dim: dim} }

// ShardParts returns the placement that splits a dim into fewer parts than the axis has coordinates,
// each part copied on degree/parts neighbours: two key-value heads over TP 8 are two parts of four copies.
func ShardParts(dim, parts int) Placement { return Placement{Kind: Sharded, Dim: dim, Parts: parts} }

// Partial returns the placement where every coordinate holds a term of the reduction.
func Partial(op Reduction) Placement { return Placement{Kind: Pending, Op: op} }

// Only returns the placement where one coordinate holds the tensor: each expert lies on one coordinate of EP.
func Only(coordinate int) Placement { return Placement{Kind: Single, At: coordinate} }

// String writes "replicate", "shard(0)", "shard(0, 2 parts)", "partial(sum)" or "only(3)".
func (p Placement) String() string {
	switch p.Kind {
	case Replicated:
		return "replicate"
	case Sharded:
		if p.Parts > 0 {
			return fmt.Sprintf("shard(%d, %d parts)", p.Dim, p.Parts)
		}
		return fmt.Sprintf("shard(%d)", p.Dim)
	case Pending:
		return "partial(" + p.Op.String() + ")"
	case Single:
		return fmt.Sprintf("only(%d)", p.At)
	}
	return fmt.Sprintf("placement(%d)", uint8(p.Kind))
}

// parts returns the number of distinct parts over an axis of the given degree. A tensor that a single coordinate holds
// counts as one part for each, all but one of them empty.
func (p Placement) parts(degree int) int {
	switch {
	case p.Kind == Single:
		return degree
	case p.Kind != Sharded:
		return 1
	case p.Parts == 0:
		return degree
	}
	return p.Parts
}

// part returns the part that a coordinate of an axis of the given degree holds, and which of the
// copies of that part it is.
func (p Placement) part(coordinate, degree int) (part, twin int) {
	copies := degree / p.parts(degree)
	return coordinate / copies, coordinate % copies
}

// Spec says how a tensor lies on a mesh: a placement per axis, indexed by Axis. The zero Spec is
// replicated everywhere.
type Spec [AxisCount]Placement

// nesting is the order in which axes that shard the same dim split it, outermost first. It is fixed, and
// not the rank order, so that a region depends on coordinates alone: EP takes whole experts, TP whole
// heads within them, then CP and DP take their ranges of what is left.
var nesting = [AxisCount]Axis{PP, EP, TP, CP, DP}

// String writes the axes that do not copy: "tp shard(0), dp partial(sum)"; else "replicate".
func (s Spec) String() string {
	var words []string
	for _, a := range All {
		if s[a].Kind != Replicated {
			words = append(words, a.String()+" "+s[a].String())
		}
	}
	if words == nil {
		return Replicate().String()
	}
	return strings.Join(words, ", ")
}

// Axes returns the axes whose placement has the given kind.
func (s Spec) Axes(kind Kind) (set Axes) {
	for _, a := range All {
		if s[a].Kind == kind {
			set |= 1 << a
		}
	}
	return set
}

// Validate returns every reason why s cannot place a tensor of the given global shape on m.
func (s Spec) Validate(m Mesh, shape []int) error {
	var faults []error
	for _, a := range All {
		p, degree := s[a], m.Degree(a)
		switch {
		case p.Kind > Single:
			faults = append(faults, fmt.Errorf("mesh: %s has unknown placement %d", a, p.Kind))
		case p.Kind == Single && (p.At < 0 || p.At >= degree):
			faults = append(faults, fmt.Errorf("mesh: %s keeps a tensor on coordinate %d of %d", a, p.At, degree))
		case p.Kind != Sharded:
		case p.Dim < 0 || p.Dim >= len(shape):
			faults = append(faults, fmt.Errorf("mesh: %s shards dim %d of a tensor with %d dims", a, p.Dim, len(shape)))
		case p.Parts < 0 || p.Parts > 0 && degree%p.Parts != 0:
			faults = append(faults, fmt.Errorf("mesh: %s makes %d parts, which do not divide its degree %d", a, p.Parts, degree))
		}
	}
	return errors.Join(faults...)
}

// Range is a half-open interval of one dim.
type Range struct{ Start, Stop int }

// Len returns the number of indices in r.
func (r Range) Len() int { return r.Stop - r.Start }

// Split returns part number part of n indices cut into the given number of parts: contiguous, in order,
// sizes differing by at most one, the larger first.
func Split(n, parts, part int) Range {
	size, rest := n/parts, n%parts
	start := part*size + min(part, rest)
	if part < rest {
		size++
	}
	return Range{start, start + size}
}

// Region is the block of a global tensor that one coordinate holds: a range per dim.
type Region []Range

// Shape returns the sizes of the region.
func (r Region) Shape() []int {
	shape := make([]int, len(r))
	for i, span := range r {
		shape[i] = span.Len()
	}
	return shape
}

// Elements returns the number of elements of the region.
func (r Region) Elements() int {
	n := 1
	for _, span := range r {
		n *= span.Len()
	}
	return n
}

// Holds tells whether the given coordinates hold any of the tensor: no Single axis keeps it elsewhere.
func (s Spec) Holds(at Coordinates) bool {
	for _, a := range All {
		if s[a].Kind == Single && s[a].At != at[a] {
			return false
		}
	}
	return true
}

// Region returns the block of a tensor of the given global shape that the given coordinates hold. The
// spec must be valid for the shape. It is empty in every dim where the coordinates hold nothing.
func (s Spec) Region(m Mesh, at Coordinates, shape []int) Region {
	region := make(Region, len(shape))
	if !s.Holds(at) {
		return region
	}
	for dim, n := range shape {
		region[dim] = Range{0, n}
	}
	for _, a := range nesting {
		p := s[a]
		if p.Kind != Sharded {
			continue
		}
		part, _ := p.part(at[a], m.Degree(a))
		inner := Split(region[p.Dim].Len(), p.parts(m.Degree(a)), part)
		start := region[p.Dim].Start
		region[p.Dim] = Range{start + inner.Start, start + inner.Stop}
	}
	return region
}

// LocalShape returns the shape of what the given coordinates hold of a tensor of the given global shape.
func (s Spec) LocalShape(m Mesh, at Coordinates, shape []int) []int {
	return s.Region(m, at, shape).Shape()
}

// Owns tells whether the given coordinates are the first of those that hold the same region: the one
// that writes it to a checkpoint and counts it in a norm. A tensor with Partial axes has no owner
// until it is reduced; there the first coordinate is named.
func (s Spec) Owns(m Mesh, at Coordinates) bool {
	if !s.Holds(at) {
		return false
	}
	for _, a := range All {
		if _, twin := s[a].part(at[a], m.Degree(a)); twin != 0 {
			return false
		}
	}
	return true
}

// Copies returns the number of coordinates that hold each region with elements.
func (s Spec) Copies(m Mesh) int {
	copies := 1
	for _, a := range All {
		copies *= m.Degree(a) / s[a].parts(m.Degree(a))
	}
	return copies
}
