package optim

import (
	"carve/mesh"
	"carve/nn"
	"carve/tensor"
)

// Piece is a block of a parameter, of its gradient, or of what the algorithm remembers of it, that this rank holds. A range
// of a flat buffer that cuts a matrix is several pieces: a part of a row, whole rows, a part of a row.
type Piece struct {
	Param  *nn.Param
	Kind   StateKind
	Region mesh.Region    // of the global tensor
	Tensor *tensor.Tensor // contiguous, of the region's shape
	// Owned tells whether this is the one rank of all that hold the block which writes it to checkpoints and counts it in
	// sums. The owned pieces of all ranks cover every element of every tensor once.
	Owned bool
}

// pieces appends the pieces of a slot's tensor.
func (s *State) pieces(list []Piece, slot *slot, kind StateKind, t *tensor.Tensor) []Piece {
	for _, p := range slot.params {
		lo, hi := max(p.Offset, slot.lo), min(p.Offset+p.Len(), slot.hi)
		at := lo - slot.lo
		for _, region := range rectangles(p.Region.Shape(), lo-p.Offset, hi-p.Offset) {
			n := region.Elements()
			view := t.Slice(at, at+n, region.Shape()...)
			at += n
			for dim := range region {
				region[dim].Start += p.Region[dim].Start
				region[dim].Stop += p.Region[dim].Start
			}
			list = append(list, Piece{p, kind, region, view, slot.owned && s.leads(p)})
		}
	}
	return list
}

// rectangles cuts the elements [lo, hi) of a row-major tensor into blocks that are contiguous, in order: at most 2·dims-1.
func rectangles(shape []int, lo, hi int) (regions []mesh.Region) {
	if len(shape) == 1 {
		return []mesh.Region{{{Start: lo, Stop: hi}}}
	}
	inner := 1
	for _, n := range shape[1:] {
		inner *= n
	}
	// within is the part [from, to) of one row.
	within := func(row, from, to int) {
		for _, r := range rectangles(shape[1:], from, to) {
			regions = append(regions, append(mesh.Region{{Start: row, Stop: row + 1}}, r...))
		}
	}
	row := lo / inner
	if from := lo % inner; from > 0 {
		within(row, from, min(inner, hi-row*inner))
		row++
	}
	if last := hi / inner; row < last {
		rows := mesh.Region{{Start: row, Stop: last}}
		for _, n := range shape[1:] {
			rows = append(rows, mesh.Range{Stop: n})
		}
		regions = append(regions, rows)
		row = last
	}
	if rest := hi - row*inner; rest > 0 {
		within(row, 0, rest)
	}
	return regions
}
