package optim

import (
	"fmt"

	"carve/comm"
	"carve/mesh"
	"carve/nn"
)

// family is the ranks that hold the same parameters of one kind, dense or expert, and have other tokens.
type family struct {
	// reduce is the ranks that state is dealt out to; nil for this rank alone. gather is another stream over the same
	// ranks, so that parameters do not queue behind gradients.
	reduce, gather *comm.Group
	// replica is the ranks of other such groups that own the same; nil for none.
	replica *comm.Group
}

// size is the number of ranks that state is dealt out to.
func (f *family) size() int { return size(f.reduce) }

// me is this rank's number among them.
func (f *family) me() int { return position(f.reduce) }

func size(g *comm.Group) int {
	if g == nil {
		return 1
	}
	return g.Size()
}

func position(g *comm.Group) int {
	if g == nil {
		return 0
	}
	return g.Rank()
}

// newFamily makes the groups over the ranks of all, which may be nil, with shards inside groups of `hybrid` ranks.
func newFamily(r *nn.Rank, all *comm.Group, o Options) (f family, err error) {
	if size(all) == 1 {
		return family{}, nil
	}
	f.reduce = all
	if h := common(o.Hybrid, all.Size()); o.Stage > Replicated && h < all.Size() {
		ranks, at := all.Ranks(), all.Rank()
		if f.reduce, err = r.Groups.Join(all.Name()+" shards", ranks[at/h*h:at/h*h+h]); err != nil {
			return f, err
		}
		var same []int
		for i := at % h; i < len(ranks); i += h {
			same = append(same, ranks[i])
		}
		if f.replica, err = r.Groups.Join(all.Name()+" replicas", same); err != nil {
			return f, err
		}
	}
	f.gather = f.reduce
	if o.Stage > Replicated && f.reduce != nil {
		f.gather, err = r.Groups.Join(f.reduce.Name()+" parameters", f.reduce.Ranks())
	}
	return f, err
}

// common is the greatest common divisor of the ranks to shard over and those there are; 0 means all.
func common(hybrid, all int) int {
	for hybrid != 0 {
		all, hybrid = hybrid, all%hybrid
	}
	return all
}

// twinsOf is the group of the pipeline ranks that hold a unit, or nil for this one alone, and whether this rank is the
// first of them. The key names the set.
func twinsOf(r *nn.Rank, o Options, u *nn.Unit) (g *comm.Group, first bool, key string, err error) {
	if o.Twins == nil || r.Groups.Pipeline == nil {
		return nil, true, "", nil
	}
	at := o.Twins(u.Name)
	if len(at) < 2 {
		return nil, true, "", nil
	}
	ranks := make([]int, len(at))
	for i, stage := range at {
		there := r.At
		there[mesh.PP] = stage
		ranks[i] = r.Mesh.Rank(there)
	}
	key = fmt.Sprint("stages ", at)
	g, err = r.Groups.Join(key, ranks)
	return g, at[0] == r.At[mesh.PP], key, err
}
