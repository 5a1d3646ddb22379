package token

import "math"

// mergeByScan is the longest word, in bytes, whose merges are found by scanning
// all pairs; longer words use a heap.
const mergeByScan = 64

// noMerge is the rank of a pair that does not merge.
const noMerge = math.MaxInt32

// merger applies merges to one word: always the pair of lowest rank, the
// leftmost one first, until none merges.
type merger struct {
	rank   *pairMap
	merges []merge
	ranks  [mergeByScan]int32
	links  []link
	queue  heap[pending]
}

// apply merges ids in place and returns how many remain.
func (m *merger) apply(ids []int32) int {
	if len(ids) > mergeByScan {
		return m.applyHeap(ids)
	}
	return m.applyScan(ids)
}

// rankOf is the rank of the pair (left, right), or noMerge.
func (m *merger) rankOf(left, right int32) int32 {
	if r := m.rank.get(pairOf(left, right)); r >= 0 {
		return r
	}
	return noMerge
}

// applyScan keeps the rank of every neighbouring pair beside the ids and looks
// for the lowest: quadratic, and the fastest for short words.
func (m *merger) applyScan(ids []int32) int {
	ranks := m.ranks[:]
	n := len(ids)
	for i := 1; i < n; i++ {
		ranks[i-1] = m.rankOf(ids[i-1], ids[i])
	}
	for n > 1 {
		best, at := int32(noMerge), 0
		for i, r := range ranks[:n-1] {
			if r < best {
				best, at = r, i
			}
		}
		if best == noMerge {
			break
		}
		ids[at] = m.merges[best].joined
		copy(ids[at+1:n-1], ids[at+2:n])
		copy(ranks[at:n-2], ranks[at+1:n-1])
		n--
		if at > 0 {
			ranks[at-1] = m.rankOf(ids[at-1], ids[at])
		}
		if at+1 < n {
			ranks[at] = m.rankOf(ids[at], ids[at+1])
		}
	}
	return n
}

// link is one token of a long word, in a doubly linked list; id is -1 once the
// token has been merged into its left neighbour.
type link struct{ id, prev, next int32 }

// pending is a pair that could merge, as it was when it was found.
type pending struct{ rank, at, left, right int32 }

func (p pending) before(q pending) bool {
	if p.rank != q.rank {
		return p.rank < q.rank
	}
	return p.at < q.at
}

// applyHeap does the same in n·log n with a linked list and a heap.
func (m *merger) applyHeap(ids []int32) int {
	m.links = m.links[:0]
	m.queue.items = m.queue.items[:0]
	for i, id := range ids {
		m.links = append(m.links, link{id, int32(i) - 1, int32(i) + 1})
	}
	m.links[len(ids)-1].next = -1
	for i := range len(ids) - 1 {
		m.propose(int32(i))
	}
	for p, ok := m.queue.pop(); ok; p, ok = m.queue.pop() {
		m.join(p)
	}
	n := 0
	for at := int32(0); at >= 0; at = m.links[at].next {
		ids[n] = m.links[at].id
		n++
	}
	return n
}

// propose queues the pair that begins at link at, if it merges.
func (m *merger) propose(at int32) {
	left := m.links[at]
	right := m.links[left.next].id
	if r := m.rankOf(left.id, right); r != noMerge {
		m.queue.push(pending{r, at, left.id, right})
	}
}

// join merges p if it still stands.
func (m *merger) join(p pending) {
	left := &m.links[p.at]
	if left.id != p.left || left.next < 0 || m.links[left.next].id != p.right {
		return
	}
	gone := &m.links[left.next]
	left.id = m.merges[p.rank].joined
	left.next, gone.id = gone.next, -1
	if left.next >= 0 {
		m.links[left.next].prev = p.at
		m.propose(p.at)
	}
	if left.prev >= 0 {
		m.propose(left.prev)
	}
}
