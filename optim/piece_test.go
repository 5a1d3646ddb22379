package optim

import (
	"slices"
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/nn"

	"pgregory.net/rapid"
)

// TestRectangles cuts random ranges of tensors of one to four dims: the rectangles are contiguous, in order, and cover
// the range.
func TestRectangles(t *testing.T) {
	rapid.Check(t, func(d *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 5), 1, 4).Draw(d, "shape")
		total := 1
		for _, n := range shape {
			total *= n
		}
		lo := rapid.IntRange(0, total-1).Draw(d, "lo")
		hi := rapid.IntRange(lo+1, total).Draw(d, "hi")
		regions := rectangles(shape, lo, hi)
		if len(regions) > 2*len(shape)-1 {
			d.Errorf("%d rectangles for %d dims", len(regions), len(shape))
		}
		at := lo
		for _, r := range regions {
			for _, i := range offsets(shape, r) {
				if i != at {
					d.Fatalf("%v of %v: element %d comes where %d does", regions, shape, i, at)
				}
				at++
			}
		}
		if at != hi {
			d.Errorf("%v of %v end at %d, want %d", regions, shape, at, hi)
		}
	})
}

// offsets are the flat positions of a region's elements, one after the other.
func offsets(shape []int, r mesh.Region) (all []int) {
	all = []int{0}
	for dim, n := range shape {
		var next []int
		for _, o := range all {
			for i := r[dim].Start; i < r[dim].Stop; i++ {
				next = append(next, o*n+i)
			}
		}
		all = next
	}
	return all
}

// TestRanges deals out blocks of every size over up to five ranks.
func TestRanges(t *testing.T) {
	for n := 1; n <= 5; n++ {
		for size := range 23 {
			at := 7
			for _, p := range ranges(7, 7+size, n) {
				if p.lo != at || p.hi <= p.lo || p.owner < n-1 && p.hi-p.lo != size/n {
					t.Errorf("%d elements over %d ranks: part %v", size, n, p)
				}
				at = p.hi
			}
			if at != 7+size {
				t.Errorf("%d elements over %d ranks end at %d", size, n, at-7)
			}
		}
	}
}

// TestDealTensors wants no rank to have more than a tensor above an even share, and stages that share units to deal
// them out alike, whatever else they hold.
func TestDealTensors(t *testing.T) {
	f := &family{reduce: comm.NewGroup("data", []int{0, 1, 2}, 0, nil)}
	tied := []int{70, 6, 5}
	var owners [][]int
	for _, others := range [][]int{{100, 90, 80, 30, 30, 20}, {400, 1}} {
		shared, own := tensors(f, "stages [0 1]", tied), tensors(f, "", others)
		dealTensors([]*block{own, shared})
		load, total, largest := make([]int, 3), 0, 0
		for _, p := range append(slices.Clone(own.parts), shared.parts...) {
			load[p.owner] += p.len()
			total += p.len()
			largest = max(largest, p.len())
		}
		if slices.Max(load) > total/3+largest {
			t.Errorf("loads %v of %d", load, total)
		}
		var shares []int
		for _, p := range shared.parts {
			shares = append(shares, p.owner)
		}
		owners = append(owners, shares)
	}
	if !slices.Equal(owners[0], owners[1]) {
		t.Errorf("two stages deal out what they share as %v", owners)
	}
}

// tensors is a block of vectors of the given sizes.
func tensors(f *family, set string, sizes []int) *block {
	b := &block{family: f, set: set}
	for i, n := range sizes {
		b.params = append(b.params, &nn.Param{Name: string(rune('a' + i)), Shape: []int{n}, Region: mesh.Region{{Stop: n}}, Offset: b.hi})
		b.hi += n
	}
	return b
}
