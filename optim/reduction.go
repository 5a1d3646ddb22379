package optim

import (
	"cmp"
	"slices"

	"carve/comm"
	"carve/nn"
	"carve/tensor"
	"carve/unit"
)

// bucket is a run of whole units whose gradients are reduced together, where a rank has memory for all of its own
// gradients. It is at least as large as asked for, or the rest of its chunk.
type bucket struct {
	lo, hi         int // units
	units, pending int // that have something to add in a step
	journey        convoy
}

// planReductions makes the buckets and what every reduction consists of.
func (s *State) planReductions() {
	var twins []*block
	for _, b := range s.blocks {
		if b.twins != nil {
			twins = append(twins, b)
		}
	}
	slices.SortStableFunc(twins, func(a, b *block) int { return cmp.Compare(a.unit.Name, b.unit.Name) })
	var sums []transfer
	for _, b := range twins { // in the same order on all of them; neighbours here may not be neighbours there
		sums = append(sums, s.amongOwners(nil, b, b.twins)...)
	}
	s.twins = newConvoy(sums)
	for _, h := range s.homes {
		h.publish = newConvoy(s.fromOwners(h.blocks))
		h.loan.journey = newConvoy(s.shared(h.blocks), s.toOwners(h.blocks))
		h.loan.copies = newConvoy(s.amongReplicas(h.blocks))
	}
	if s.o.Stage < ShardGradients {
		s.planBuckets()
	}
}

// planBuckets cuts the units of every chunk into buckets, from the last to the first.
func (s *State) planBuckets() {
	s.buckets = make([]*bucket, len(s.homes))
	for _, c := range slices.Backward(s.m.Chunks) {
		size := unit.Bytes(0)
		var open *bucket
		for _, u := range slices.Backward(c.Units) {
			if open == nil {
				open, size = &bucket{lo: u.Index, hi: u.Index + 1}, 0
				s.order = append(s.order, open)
			}
			open.lo = u.Index
			s.buckets[u.Index] = open
			if size += unit.Bytes(u.Grad.Bytes()); size >= s.o.Bucket && s.o.Mode != Naive {
				open = nil
			}
		}
	}
	for _, b := range s.order {
		var blocks []*block
		for _, h := range s.homes[b.lo:b.hi] {
			blocks = append(blocks, h.blocks...)
		}
		b.units = b.hi - b.lo
		b.journey = newConvoy(s.shared(blocks), s.toOwners(blocks), s.amongReplicas(blocks))
	}
}

// shared lists the sums over the tensor axis of gradients whose terms its ranks have.
func (s *State) shared(blocks []*block) (list []transfer) {
	for _, b := range blocks {
		for _, p := range b.params {
			list = add(list, transfer{op: comm.AllReduce, group: s.stream(s.r.Groups.Shared(p)), lo: p.Offset, hi: p.Offset + p.Len()})
		}
	}
	return list
}

// toOwners lists what brings the sums over the data axes to the owners, or to all where all keep them.
func (s *State) toOwners(blocks []*block) (list []transfer) {
	for _, b := range blocks {
		if s.sharded() {
			list = b.toOwners(list)
		} else {
			list = add(list, transfer{op: comm.AllReduce, group: b.family.reduce, lo: b.lo, hi: b.hi})
		}
	}
	return list
}

// fromOwners lists what brings values from those that alone update them to all.
func (s *State) fromOwners(blocks []*block) (list []transfer) {
	for _, b := range blocks {
		if s.sharded() {
			list = b.fromOwners(list)
			continue
		}
		for _, p := range b.parts {
			if s.o.Algorithm.whole(p.param) {
				list = add(list, transfer{comm.Broadcast, b.family.gather, p.owner, p.lo, p.hi})
			}
		}
	}
	return list
}

// amongReplicas lists the sums over groups that shard the same.
func (s *State) amongReplicas(blocks []*block) (list []transfer) {
	for _, b := range blocks {
		list = s.amongOwners(list, b, b.family.replica)
	}
	return list
}

// amongOwners lists the sums, over ranks that keep the same of a block, of what they keep.
func (s *State) amongOwners(list []transfer, b *block, g *comm.Group) []transfer {
	if !s.sharded() {
		return add(list, transfer{op: comm.AllReduce, group: g, lo: b.lo, hi: b.hi})
	}
	for _, k := range b.kept {
		lo, hi := k.lo, k.hi
		if s.gradients != nil {
			lo, hi = k.at, k.at+k.len()
		}
		list = add(list, transfer{op: comm.AllReduce, group: g, lo: lo, hi: hi})
	}
	return list
}

// Ready implements [nn.Ready]: it starts to reduce the bucket that the unit completes.
func (s *State) Ready(unit int) {
	if s.buckets == nil {
		h := s.homes[unit]
		h.loan.complete = true
		s.copies(h)
		return
	}
	b := s.buckets[unit]
	if b.pending--; b.pending == 0 && s.o.Mode != Naive {
		s.launch(b)
	}
}

// launch starts a bucket's reduction, and takes those under way a step further.
func (s *State) launch(b *bucket) {
	for _, other := range s.underway {
		if other.journey.more() {
			other.journey.advance()
		}
	}
	b.journey.start(s.m.Grad, 0)
	s.underway = append(s.underway, b)
}

// Finish returns when the gradients are the sums over the whole job where they are kept.
func (s *State) Finish() {
	if s.o.Mode == Naive {
		for _, b := range s.order {
			s.launch(b)
		}
	}
	for _, b := range s.underway {
		b.journey.finish()
	}
	s.underway = s.underway[:0]
	s.collectAll()
	s.release()
	s.twins.start(s.own(), 0)
	s.twins.finish()
}

// own is the memory of the gradients that this rank keeps.
func (s *State) own() *tensor.Tensor {
	if s.gradients != nil {
		return s.gradients
	}
	return s.m.Grad
}

var (
	_ nn.Ready  = (*State)(nil)
	_ nn.Keeper = (*State)(nil)
)
