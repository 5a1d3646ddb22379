package collective

import (
	"cmp"
	"fmt"
	"slices"

	"carve/cluster"
	"carve/unit"
)

// Placement is where the members of a group lie on the levels of a cluster's links.
type Placement struct {
	members int
	levels  []cluster.Level
	outer   int    // the level that the group crosses
	tiers   []tier // from the inside out; one when the group is not regular, or crosses one level only
	order   []int  // positions: the digits of an index, one for each tier, are coordinates
	sorted  bool   // order is that of the positions
	senders int    // of one domain inside the level that is crossed
}

// tier is one level of a placement on which members differ.
type tier struct {
	level   int
	members int // along it
	stride  int // members of what differs along it
}

// maxTiers is the most levels that a cluster has.
const maxTiers = 8

// Choice is an algorithm, and for a hierarchical one the algorithm on each tier from the inside out.
type Choice struct {
	Algorithm Algorithm
	Tiers     [maxTiers]Algorithm
}

// Place finds where ranks lie. Ranks beyond the last level count as within it.
func Place(levels []cluster.Level, ranks []int) (*Placement, error) {
	if len(levels) == 0 || len(levels) > maxTiers || len(ranks) == 0 {
		return nil, fmt.Errorf("collective: %d ranks on %d levels; use 1 or more ranks and 1 to %d levels", len(ranks), len(levels), maxTiers)
	}
	p := &Placement{members: len(ranks), levels: levels, order: make([]int, len(ranks))}
	for i := range p.order {
		p.order[i] = i
	}
	slices.SortStableFunc(p.order, func(a, b int) int {
		for _, level := range slices.Backward(levels) {
			if c := cmp.Compare(ranks[a]/level.Size, ranks[b]/level.Size); c != 0 {
				return c
			}
		}
		return 0
	})
	p.sorted = slices.IsSorted(p.order)
	p.outer = p.crossed(ranks)
	p.senders = 1
	if p.outer > 0 {
		_, p.senders = domains(ranks, levels[p.outer-1].Size)
	}
	p.tiers = p.split(ranks)
	return p, nil
}

// crossed is the innermost level whose domain holds all ranks.
func (p *Placement) crossed(ranks []int) int {
	for l := range p.levels {
		if least, _ := domains(ranks, p.levels[l].Size); least == len(ranks) {
			return l
		}
	}
	return len(p.levels) - 1
}

// domains counts the members of the domains of a size that have any: the fewest and the most.
func domains(ranks []int, size int) (least, most int) {
	counts := map[int]int{}
	for _, r := range ranks {
		counts[r/size]++
	}
	least = len(ranks)
	for _, n := range counts {
		least, most = min(least, n), max(most, n)
	}
	return least, most
}

// split is the tiers of a regular placement: domains of one level have equally many members.
func (p *Placement) split(ranks []int) (tiers []tier) {
	inside := 1
	for l := range p.outer + 1 {
		least, most := domains(ranks, p.levels[l].Size)
		if l == p.outer {
			least, most = len(ranks), len(ranks)
		}
		if least != most || least%inside != 0 {
			return []tier{{p.outer, len(ranks), 1}}
		}
		if least > inside {
			tiers = append(tiers, tier{l, least / inside, inside})
			inside = least
		}
	}
	if len(tiers) == 0 {
		tiers = []tier{{p.outer, len(ranks), 1}}
	}
	return tiers
}

// link is what messages of a level cost when so many members of each domain inside send at once.
func (p *Placement) link(level, senders int) Link {
	l := p.levels[level]
	inside := 1
	if level > 0 {
		inside = p.levels[level-1].Size
	}
	crowd := max(1, float64(senders)*l.Oversubscription/float64(inside))
	return Link{l.Latency, crowd / float64(l.Bandwidth)}
}

// Cost is what an operation of so many bytes takes by a choice; false when the choice has no way for it. Every round of
// a flat algorithm counts as crossing the slowest level that the group crosses.
func (p *Placement) Cost(op Op, c Choice, bytes float64) (unit.Seconds, bool) {
	if c.Algorithm != Hierarchical {
		senders := p.senders
		if c.Algorithm == Ring && p.sorted {
			senders = 1
		}
		return Flat(op, c.Algorithm, p.members, bytes, p.link(p.outer, senders))
	}
	if !p.offersTiers(op) {
		return 0, false
	}
	var sum unit.Seconds
	for i, t := range p.tiers {
		part, senders := bytes, t.stride
		switch op {
		case AllGather, ReduceScatter, AllReduce: // what is inside adds its blocks later, or has combined them before
			part = bytes / float64(t.stride)
		case Broadcast, Reduce:
			senders = 1
		case Barrier, Gather, Scatter, AllToAll, numOps:
		}
		cost, ok := Flat(op, c.Tiers[i], t.members, part, p.link(t.level, senders))
		if !ok {
			return 0, false
		}
		sum += cost
	}
	return sum, true
}

// offersTiers tells whether an operation can go level by level here.
func (p *Placement) offersTiers(op Op) bool {
	return len(p.tiers) > 1 && op != Barrier && op != Gather && op != Scatter
}

// tierAlgorithms are those that a hierarchical operation may use on a tier.
func tierAlgorithms(op Op) []Algorithm {
	switch op {
	case Broadcast, Reduce:
		return []Algorithm{Tree}
	case AllToAll:
		return []Algorithm{Direct}
	case AllGather, ReduceScatter:
		return []Algorithm{Ring, Doubling}
	case AllReduce:
		return []Algorithm{Ring, Halving}
	case Barrier, Gather, Scatter, numOps:
	}
	return nil
}

// Best is the choice that costs the least, of equals the first in the order of [Algorithms], and its cost.
func (p *Placement) Best(op Op, bytes float64) (best Choice, cost unit.Seconds) {
	found := false
	for _, a := range Algorithms() {
		c, ok := Choice{Algorithm: a}, true
		if a == Hierarchical {
			c, ok = p.bestTiers(op, bytes)
		}
		if !ok {
			continue
		}
		if now, ok := p.Cost(op, c, bytes); ok && (!found || now < cost) {
			best, cost, found = c, now, true
		}
	}
	return best, cost
}

// Of is the best choice with a given algorithm; false when it has no way for the operation here.
func (p *Placement) Of(op Op, a Algorithm, bytes float64) (Choice, bool) {
	if a == Hierarchical {
		return p.bestTiers(op, bytes)
	}
	return Choice{Algorithm: a}, a.offers(op, p.members)
}

// bestTiers is the best algorithm on each tier, which do not depend on each other.
func (p *Placement) bestTiers(op Op, bytes float64) (Choice, bool) {
	c := Choice{Algorithm: Hierarchical}
	if !p.offersTiers(op) {
		return c, false
	}
	for i, t := range p.tiers {
		least := unit.Seconds(-1)
		for _, a := range tierAlgorithms(op) {
			part := bytes / float64(t.stride)
			if cost, ok := Flat(op, a, t.members, part, p.link(t.level, t.stride)); ok && (least < 0 || cost < least) {
				c.Tiers[i], least = a, cost
			}
		}
	}
	return c, true
}
