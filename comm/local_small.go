package comm

import "carve/tensor"

const (
	// stageBytes is the largest source that is copied instead of being read in place.
	stageBytes = 8 << 10
	// takeBytes is the most that one member reads of such copies.
	takeBytes = 32 << 10
)

// small tells whether an operation is done with copies and one meeting. All members arrive at the same answer.
func (g *localGroup) small(s *Signature) bool {
	n, parts := len(g.members), 1
	switch s.Op {
	case Barrier, AllToAllV, Send, Recv, numOps:
		return false
	case Scatter, ReduceScatter, AllToAll:
		parts = n
	case Broadcast, Reduce, AllReduce, Gather, AllGather:
	}
	bytes := s.Count * parts * s.DType.Size()
	return bytes <= stageBytes && bytes*n <= takeBytes
}

// stage copies a source to where it stays until the operation after the next.
func (m *localMember) stage(src *tensor.Tensor) *tensor.Tensor {
	t := m.scratch(&m.stages[m.seq%2], src.DType())
	m.group.world.reducer.Copy(t, 0, src, 0, src.Len())
	return t
}

// scratch is a tensor of stageBytes from a list by dtype, made when it is first needed.
func (m *localMember) scratch(list *[4]*tensor.Tensor, d tensor.DType) *tensor.Tensor {
	if list[d] == nil {
		list[d] = m.group.world.arena.New(tensor.Communication, d, stageBytes/d.Size())
	}
	return list[d]
}

// take does this member's part of a small operation: it reads copies and writes its own destination.
func (m *localMember) take(c *board) {
	if c.dst == nil || c.Count == 0 {
		return
	}
	root, copies := m.call(int(c.Peer)).src, m.group.world.reducer
	switch c.Op {
	case AllReduce, Reduce:
		m.reduceStages(c, c.dst, 0)
	case ReduceScatter:
		lo := m.at * c.Count
		sum := m.scratch(&m.result, c.DType)
		m.reduceStages(c, sum, lo)
		copies.Copy(c.dst, 0, sum, lo, c.Count)
	case Broadcast:
		copies.Copy(c.dst, 0, root, 0, c.Count)
	case Scatter:
		copies.Copy(c.dst, 0, root, m.at*c.Count, c.Count)
	case Gather, AllGather:
		m.pull(c, 0)
	case AllToAll:
		m.pull(c, m.at*c.Count)
	case Barrier, AllToAllV, Send, Recv, numOps:
	}
}

// reduceStages reduces count elements from lo on of all copies into dst.
func (m *localMember) reduceStages(c *board, dst *tensor.Tensor, lo int) {
	m.dsts, m.srcs = append(m.dsts[:0], dst), m.srcs[:0]
	for i := range m.group.members {
		m.srcs = append(m.srcs, m.call(i).src)
	}
	m.group.world.reducer.Reduce(m.dsts, m.srcs, c.Reduce, lo, lo+c.Count)
}
