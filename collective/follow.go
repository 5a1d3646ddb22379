package collective

import "fmt"

// Held is what a member holds of one block: which members' contributions.
type Held []bool

// Holdings is what every member holds: [member][block].
type Holdings [][]Held

// Moved is one contribution to one block that a transfer brings to a member that did not have it. From is Whole for a block that is
// combined already.
type Moved struct{ From, Block int }

// Whole stands for all contributions to a block, combined.
const Whole = -1

// Follow carries a schedule out on sets of contributions. It calls visit, if not nil, for every transfer in the order of the rounds,
// with what the transfer brings. The error is the first thing that is wrong: a message that does not say how long it is, a member
// that ends without what it should have, or one that would combine a contribution twice.
func (s Schedule) Follow(visit func(round int, t Transfer, moved []Moved)) error {
	h := s.begin()
	for r, round := range s.Rounds {
		before := h.clone()
		for _, t := range round {
			moved, parts, err := s.move(h, before, t)
			if err != nil {
				return fmt.Errorf("collective: %v round %d, %d to %d: %w", s.Op, r, t.From, t.To, err)
			}
			if parts != int(t.Parts) {
				return fmt.Errorf("collective: %v round %d, %d to %d: carries %d parts, says %d", s.Op, r, t.From, t.To, parts, t.Parts)
			}
			if visit != nil {
				visit(r, t, moved)
			}
		}
	}
	return s.end(h)
}

// begin is what members hold before the operation.
func (s Schedule) begin() Holdings {
	h := make(Holdings, s.Members)
	for i := range h {
		h[i] = make([]Held, s.Blocks)
		for b := range h[i] {
			h[i][b] = make(Held, s.Members)
			h[i][b][i] = s.contributes(i, b)
		}
	}
	return h
}

// contributes tells whether member i has something of block b at first.
func (s Schedule) contributes(i, b int) bool {
	switch s.Op {
	case Broadcast, Scatter:
		return i == s.Root
	case Gather, AllGather:
		return i == b
	case Barrier, Reduce, AllReduce, ReduceScatter, AllToAll, numOps:
	}
	return true
}

// wanted tells whether member i must have all contributions to block b at the end.
func (s Schedule) wanted(i, b int) bool {
	switch s.Op {
	case Scatter, ReduceScatter, AllToAll:
		return i == b
	case Reduce, Gather:
		return i == s.Root
	case Barrier, Broadcast, AllReduce, AllGather, numOps:
	}
	return true
}

func (h Holdings) clone() Holdings {
	c := make(Holdings, len(h))
	for i := range h {
		c[i] = make([]Held, len(h[i]))
		for b := range h[i] {
			c[i][b] = append(Held(nil), h[i][b]...)
		}
	}
	return c
}

// move carries one transfer out. parts is how many blocks long its message is: contributions to one block travel as one where
// the operation combines.
func (s Schedule) move(h, before Holdings, t Transfer) (moved []Moved, parts int, err error) {
	for _, b := range t.Blocks {
		has, gets := before[t.From][b], h[t.To][b]
		count, whole := 0, s.Op.combines() && s.complete(has, int(b))
		for c, holds := range has {
			if !holds {
				continue
			}
			count++
			if gets[c] && !whole && s.Op.combines() {
				return nil, 0, fmt.Errorf("brings the contribution of %d to block %d a second time", c, b)
			}
			if !gets[c] && !whole {
				moved = append(moved, Moved{c, int(b)})
			}
			gets[c] = true
			if s.Op == AllToAll {
				h[t.From][b][c] = false
			}
		}
		if whole {
			moved = append(moved, Moved{Whole, int(b)})
		}
		if s.Op.combines() {
			count = min(count, 1)
		}
		parts += count
	}
	return moved, parts, nil
}

// complete tells whether all contributions to a block are there.
func (s Schedule) complete(h Held, b int) bool {
	for i := range s.Members {
		if s.contributes(i, b) && !h[i] {
			return false
		}
	}
	return true
}

// end checks what members hold after the operation.
func (s Schedule) end(h Holdings) error {
	for i := range h {
		for b := range h[i] {
			if s.wanted(i, b) && !s.complete(h[i][b], b) {
				return fmt.Errorf("collective: after the %v member %d holds %v of block %d", s.Op, i, h[i][b], b)
			}
		}
	}
	return nil
}
