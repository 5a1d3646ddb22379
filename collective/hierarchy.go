package collective

import "slices"

// Schedule is the schedule of a choice for the placed group; false when the choice has none for the operation.
func (p *Placement) Schedule(op Op, c Choice, root int) (Schedule, bool) {
	if c.Algorithm != Hierarchical {
		return New(op, c.Algorithm, p.members, root)
	}
	if !p.offersTiers(op) || root < 0 || root >= p.members {
		return Schedule{}, false
	}
	s := Schedule{Op: op, Root: root, Members: p.members, Blocks: p.members}
	switch op {
	case Broadcast, Reduce:
		s.Blocks = 1
		for i := range slices.Backward(p.tiers) {
			p.spread(&s, i, p.index(root))
		}
		if op == Reduce {
			s = s.reversed(op)
		}
	case AllGather, ReduceScatter, AllReduce:
		for i := range slices.Backward(p.tiers) {
			a := c.Tiers[i]
			if a == Halving {
				a = Doubling
			}
			p.along(&s, i, AllGather, a)
		}
		if op == ReduceScatter {
			s = s.reversed(op)
		}
		if op == AllReduce {
			s = s.reversed(op).then(op, s)
		}
	case AllToAll:
		for i := range p.tiers {
			p.along(&s, i, AllToAll, Direct)
		}
	case Barrier, Gather, Scatter, numOps:
	}
	return s, true
}

// index is where in the order a position is.
func (p *Placement) index(position int) int {
	for i, q := range p.order {
		if q == position {
			return i
		}
	}
	return 0
}

// digit is an index's coordinate along a tier.
func (t tier) digit(index int) int { return index / t.stride % t.members }

// along adds the rounds of an operation among all that differ along one tier only.
func (p *Placement) along(s *Schedule, i int, op Op, a Algorithm) {
	t := p.tiers[i]
	sub, _ := New(op, a, t.members, 0)
	for _, round := range sub.Rounds {
		var wide []Transfer
		for base := range p.members {
			if t.digit(base) != 0 {
				continue
			}
			for _, m := range round {
				wide = append(wide, p.widen(m, op, t, base))
			}
		}
		s.Rounds = append(s.Rounds, wide)
	}
}

// widen turns a message between coordinates of a tier into one between members: a block stands for those of all members that
// share the sender's coordinates inside and have the block's along the tier.
func (p *Placement) widen(m Transfer, op Op, t tier, base int) Transfer {
	at := func(digit int32) int32 { return int32(p.order[base+int(digit)*t.stride]) }
	wide := Transfer{From: at(m.From), To: at(m.To)}
	inside := base % t.stride
	for _, digit := range m.Blocks {
		for index := inside + int(digit)*t.stride; index < p.members; index += t.stride * t.members {
			wide.Blocks = append(wide.Blocks, int32(p.order[index]))
		}
	}
	wide.Parts = int32(len(wide.Blocks))
	if op == AllToAll {
		wide.Parts *= int32(t.stride) // those inside have brought theirs
	}
	return wide
}

// spread adds a broadcast along one tier from all that have the root's coordinates along it and inside.
func (p *Placement) spread(s *Schedule, i, root int) {
	t := p.tiers[i]
	sub, _ := New(Broadcast, Tree, t.members, t.digit(root))
	for _, round := range sub.Rounds {
		var wide []Transfer
		for base := root % t.stride; base < p.members; base += t.stride * t.members {
			for _, m := range round {
				at := func(digit int32) int32 { return int32(p.order[base+int(digit)*t.stride]) }
				wide = append(wide, Transfer{From: at(m.From), To: at(m.To), Parts: 1, Blocks: m.Blocks})
			}
		}
		s.Rounds = append(s.Rounds, wide)
	}
}
