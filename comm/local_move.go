package comm

import "carve/tensor"

// work does this member's part of an operation between the two meetings: it holds the token, touches the
// others' tensors, and blocks on nobody.
func (m *localMember) work(c *board, how patience) error {
	if how == background && !m.staged {
		m.endpoint.token.Acquire()
		defer m.endpoint.token.Release()
	}
	m.moving.Store(true)
	defer m.moving.Store(false)
	if f := m.group.world.failure.Load(); f != nil { // after moving: see quiesce
		return f
	}
	if m.staged {
		m.take(c)
	} else {
		m.move(c)
	}
	return nil
}

// move reads and writes elements. Every element is written by one member.
func (m *localMember) move(c *board) {
	switch c.Op {
	case AllReduce, Reduce:
		m.combine(c)
	case Broadcast:
		m.spread(c)
	case ReduceScatter:
		m.reduceBlock(c)
	case Gather:
		m.copyBlock(m.call(int(c.Peer)).dst, m.at*c.Count, c.src, 0, c.Count)
	case Scatter:
		m.copyBlock(c.dst, 0, m.call(int(c.Peer)).src, m.at*c.Count, c.Count)
	case AllGather:
		m.pull(c, 0)
	case AllToAll:
		m.pull(c, m.at*c.Count)
	case AllToAllV:
		m.exchangeBlocks(c)
	case Barrier, Send, Recv, numOps:
	}
}

// pull copies a block of every member's Src, from element slo on, to Dst. Each member begins with its
// own block, so that not all read one member's at once.
func (m *localMember) pull(c *board, slo int) {
	n := len(m.group.members)
	for k := range n {
		i := (m.at + k) % n
		m.copyBlock(c.dst, i*c.Count, m.call(i).src, slo, c.Count)
	}
}

// combine reduces this member's share of the elements into the Dst of every member that has one.
func (m *localMember) combine(c *board) {
	if len(m.group.members) == 1 {
		m.copyBlock(c.dst, 0, c.src, 0, c.Count)
		return
	}
	m.dsts, m.srcs = m.dsts[:0], m.srcs[:0]
	for i := range m.group.members {
		other := m.call(i)
		m.srcs = append(m.srcs, other.src)
		if other.dst != nil {
			m.dsts = append(m.dsts, other.dst)
		}
	}
	lo, hi := m.share(c.Count, c.DType)
	m.group.world.reducer.Reduce(m.dsts, m.srcs, c.Reduce, lo, hi)
}

// spread copies this member's share of the root's elements to every other member: block by block, so that
// the block is still in the cache for the second copy.
func (m *localMember) spread(c *board) {
	src := m.call(int(c.Peer)).src
	lo, hi := m.share(c.Count, c.DType)
	step := blockBytes / c.DType.Size()
	if len(m.group.members) == 2 {
		step = max(1, hi-lo)
	}
	for ; lo < hi; lo += step {
		for i := range m.group.members {
			if dst := m.call(i).dst; dst != nil {
				m.group.world.reducer.Copy(dst, lo, src, lo, min(step, hi-lo))
			}
		}
	}
}

// reduceBlock reduces this member's block of every member's Src into its Dst.
func (m *localMember) reduceBlock(c *board) {
	m.dsts, m.srcs = append(m.dsts[:0], c.dst), m.srcs[:0]
	for i := range m.group.members {
		m.srcs = append(m.srcs, m.call(i).src.Slice(m.at*c.Count, (m.at+1)*c.Count))
	}
	m.group.world.reducer.Reduce(m.dsts, m.srcs, c.Reduce, 0, c.Count)
	for _, view := range m.srcs {
		view.Free()
	}
}

// exchangeBlocks pulls the blocks of a variable all-to-all that are for this member.
func (m *localMember) exchangeBlocks(c *board) {
	n, at := len(m.group.members), 0
	for i := range n {
		other := m.call(i)
		from := 0
		for _, k := range m.countsOf(i)[:m.at] {
			from += k
		}
		k := m.countsOf(m.at)[n+i]
		m.group.world.reducer.Copy(c.dst, at, other.src, from, k)
		at += k
	}
}

// blockBytes is what is moved at once where it is moved twice: half of a first-level cache.
const blockBytes = 16 << 10

// share is this member's part [lo, hi) of count elements, in whole cache lines.
func (m *localMember) share(count int, d tensor.DType) (lo, hi int) {
	n, line := len(m.group.members), 64/d.Size()
	lines := (count + line - 1) / line
	lo = min(count, lines*m.at/n*line)
	hi = min(count, lines*(m.at+1)/n*line)
	return lo, hi
}

// copyBlock copies n elements, or none where the two are the same.
func (m *localMember) copyBlock(dst *tensor.Tensor, dlo int, src *tensor.Tensor, slo, n int) {
	if n == 0 || startsAt(dst, src, slo-dlo) {
		return
	}
	m.group.world.reducer.Copy(dst, dlo, src, slo, n)
}
