package optim

import (
	"cmp"
	"slices"

	"carve/comm"
	"carve/mesh"
	"carve/nn"
)

// block is a run of a unit's parameters that the same ranks hold: its dense or its expert ones. It is cut into parts, each
// of which has one owner among the ranks of its family: the one map from which everything about sharding follows.
type block struct {
	unit   *nn.Unit
	family *family
	params []*nn.Param
	lo, hi int // in the flat buffers of the model

	parts []part    // cover the block in order
	kept  []holding // those that this rank keeps the state of

	twins *comm.Group // pipeline ranks that hold the unit as well; nil for none
	set   string      // names them
	first bool        // of them
}

// part is a run [lo, hi) of the flat buffers.
type part struct {
	lo, hi int
	owner  int       // in the family
	param  *nn.Param // that it is, if tensors are dealt out whole
}

// holding is a part that this rank keeps the state of.
type holding struct {
	part
	at    int  // of its first element in the rank's own buffers
	owned bool // this rank is the owner, and the first of those that are
}

// blocksOf cuts a unit into blocks.
func blocksOf(u *nn.Unit, dense, expert *family) (blocks []*block) {
	var kind mesh.Axes
	for _, p := range u.Params {
		if k := p.Terms & mesh.DenseData; len(blocks) == 0 || k != kind {
			f := dense
			if k == mesh.ExpertData {
				f = expert
			}
			kind = k
			blocks = append(blocks, &block{unit: u, family: f, lo: p.Offset, hi: p.Offset})
		}
		b := blocks[len(blocks)-1]
		b.params = append(b.params, p)
		b.hi = p.Offset + p.Len()
	}
	return blocks
}

// deal gives every element of the blocks an owner.
func deal(blocks []*block, o Options) {
	switch {
	case o.Mode == Server:
		for _, b := range blocks {
			b.parts = []part{{lo: b.lo, hi: b.hi}}
		}
	case o.Ownership == Flat && o.Stage > Replicated:
		for _, b := range blocks {
			b.parts = ranges(b.lo, b.hi, b.family.size())
		}
	default:
		dealTensors(blocks)
	}
}

// ranges cuts [lo, hi) into n runs of equal length, so that one collective moves them all. The last has the remainder
// as well.
func ranges(lo, hi, n int) (parts []part) {
	each := (hi - lo) / n
	for i := range n {
		p := part{lo: lo + i*each, hi: lo + (i+1)*each, owner: i}
		if i == n-1 {
			p.hi = hi
		}
		if p.lo < p.hi {
			parts = append(parts, p)
		}
	}
	return parts
}

// dealTensors gives whole tensors to the ranks of their families: the largest first, each to the rank with the least so
// far. Every rank comes to the same result; so do pipeline ranks that hold the same units, because what a set of them
// shares is dealt first, and for itself.
func dealTensors(blocks []*block) {
	type item struct {
		block *block
		part  *part
	}
	var items []item
	for _, b := range blocks {
		b.parts = make([]part, len(b.params))
		for i, p := range b.params {
			b.parts[i] = part{lo: p.Offset, hi: p.Offset + p.Len(), param: p}
			items = append(items, item{b, &b.parts[i]})
		}
	}
	slices.SortStableFunc(items, func(x, y item) int {
		return cmp.Or(cmp.Compare(y.block.set, x.block.set), // what has no twins comes last
			cmp.Compare(y.part.size(), x.part.size()), cmp.Compare(x.part.param.Name, y.part.param.Name))
	})
	loads := loads{}
	for _, i := range items {
		l := loads.of(i.block)
		i.part.owner = slices.Index(l, slices.Min(l))
		l[i.part.owner] += i.part.size()
	}
}

func (p *part) len() int { return p.hi - p.lo }

// size is the number of elements of the tensor that a part is, on all ranks of the tensor axis: they deal out alike,
// whoever has a row more.
func (p *part) size() int {
	n := 1
	for _, d := range p.param.Shape {
		n *= d
	}
	return n
}

// loads are the elements that every rank of a family has been given, by the set of stages that share them.
type loads map[load][]int

type load struct {
	family *family
	set    string
}

// of is the load of those that a block is dealt out to: of its own set, or, without twins, of all.
func (l loads) of(b *block) []int {
	key := load{b.family, b.set}
	if l[key] == nil {
		sum := make([]int, b.family.size())
		for k, given := range l {
			if k.family == b.family && b.set == "" {
				for i, n := range given {
					sum[i] += n
				}
			}
		}
		l[key] = sum
	}
	return l[key]
}
