package flight

import (
	"maps"
	"slices"
	"strings"
)

// call is an operation as it appears in a program that is the same on all ranks: without members, peers of messages, and
// numbers.
type call struct{ group, what string }

// callAt is the operation that the rank issued as its i-th, counted from 0.
func (k *Rank) callAt(i int) (call, bool) {
	i -= k.Issued - len(k.Operations)
	if i < 0 || i >= len(k.Operations) {
		return call{}, false
	}
	o := &k.Operations[i]
	return call{k.Groups[o.Group].Name, o.What}, true
}

// like tells whether a wait is for such a call, or for the other side of such a message.
func (w wait) like(c call) bool {
	if w.group.Name != c.group {
		return false
	}
	return w.op.What == c.what || w.op.message() && operand(w.op.What) == operand(c.what)
}

// operand is the type and length in the text of an operation.
func operand(what string) string {
	_, of, _ := strings.Cut(what, " of ")
	return of
}

// usual is what most ranks other than one issued at a place of their program, if at least two did and no other call has
// as many.
func (d *diagnosis) usual(place, except int) (most call, known bool) {
	votes := map[call]int{}
	for i := range d.Ranks {
		if c, ok := d.Ranks[i].callAt(place); ok && d.Ranks[i].Rank != except {
			votes[c]++
		}
	}
	best, second := 0, 0
	for c, n := range votes {
		switch {
		case n > best:
			most, best, second = c, n, best
		case n > second:
			second = n
		}
	}
	return most, best >= 2 && best > second
}

// deviation is the first place at which a rank called something else than most others; false when it never did.
func (d *diagnosis) deviation(k *Rank) (place int, found bool) {
	for i := k.Issued - len(k.Operations); i < k.Issued; i++ {
		mine, _ := k.callAt(i)
		if most, known := d.usual(i, k.Rank); known && most != mine {
			return i, true
		}
	}
	return 0, false
}

// deviator is the only one of some ranks whose calls differ from those of most ranks, if there is just one that did so
// first.
func (d *diagnosis) deviator(of map[int]bool) (rank int, found bool) {
	at := 0
	for _, r := range slices.Sorted(maps.Keys(of)) {
		k := d.byRank[r]
		if k == nil {
			continue
		}
		place, ok := d.deviation(k)
		switch {
		case !ok || found && place > at:
		case found && place == at:
			return Nobody, false
		default:
			rank, at, found = r, place, true
		}
	}
	return rank, found
}

// expected is the operation that a rank should have called next: where it first left the others' way, or after its last
// one.
func (d *diagnosis) expected(rank int) (call, bool) {
	k := d.byRank[rank]
	if k == nil {
		return call{}, false
	}
	place, ok := d.deviation(k)
	if !ok {
		place = k.Issued
	}
	return d.usual(place, rank)
}

// mismatch finds members that called different operations under one number.
func (d *diagnosis) mismatch() (Hang, bool) {
	for i := range d.Ranks {
		k := &d.Ranks[i]
		for j := range k.Operations {
			o := &k.Operations[j]
			if o.State == Finished {
				continue
			}
			said := d.said(k, o)
			if h, found := d.disagreement(k, o, said); found {
				return h, true
			}
		}
	}
	return Hang{}, false
}

// said is what the ranks that an operation joins called under its number, as far as it must be the same.
func (d *diagnosis) said(k *Rank, o *Operation) map[int]*Operation {
	g := &k.Groups[o.Group]
	said := map[int]*Operation{k.Rank: o}
	if o.message() {
		said[o.Peer] = d.find(o.Peer, g, func(other *Operation) bool {
			return other.Peer == k.Rank && other.Op != o.Op && other.Seq == o.Seq
		})
	} else {
		for _, r := range g.Ranks {
			said[r] = d.find(r, g, func(other *Operation) bool { return !other.message() && other.Seq == o.Seq })
		}
	}
	maps.DeleteFunc(said, func(_ int, o *Operation) bool { return o == nil })
	return said
}

// find is the operation of a rank in a group for which is holds; nil for none.
func (d *diagnosis) find(rank int, like *Group, is func(*Operation) bool) *Operation {
	g, k := d.group(rank, like), d.byRank[rank]
	if g == nil {
		return nil
	}
	for i := range k.Operations {
		if o := &k.Operations[i]; &k.Groups[o.Group] == g && is(o) {
			return o
		}
	}
	return nil
}

// agreed is the part of an operation that must be the same on all ranks.
func (o *Operation) agreed() string {
	if o.message() {
		return operand(o.What)
	}
	return o.What
}

// disagreement compares what ranks said of one operation.
func (d *diagnosis) disagreement(k *Rank, o *Operation, said map[int]*Operation) (Hang, bool) {
	texts := map[string][]int{}
	members := slices.Sorted(maps.Keys(said))
	for _, r := range members {
		texts[said[r].agreed()] = append(texts[said[r].agreed()], r)
	}
	if len(texts) < 2 {
		return Hang{}, false
	}
	culprit := d.odd(texts)
	var right *Operation // what most of the others called
	for _, r := range members {
		if r != culprit && (right == nil || len(texts[said[r].agreed()]) > len(texts[right.agreed()])) {
			right = said[r]
		}
	}
	g := &k.Groups[o.Group]
	h := Hang{
		Kind: Mismatch, Culprit: culprit, Group: g.Name, Ranks: g.Ranks, Op: right.Op, What: right.What, Seq: o.Seq, Site: right.Site,
	}
	for _, r := range members {
		if said[r].agreed() != right.agreed() {
			h.Missing = append(h.Missing, r)
		} else {
			h.Waiting = append(h.Waiting, r)
			h.Waited = max(h.Waited, d.Taken-said[r].Issued)
		}
	}
	return h, true
}

// odd is the rank to blame of those that called different things: the one that left the way of most ranks of the world,
// else one of the fewest, of which the engine may have named one.
func (d *diagnosis) odd(texts map[string][]int) int {
	all := map[int]bool{}
	fewest, most := 0, 0
	for _, list := range texts {
		for _, r := range list {
			all[r] = true
		}
		if fewest == 0 || len(list) < fewest {
			fewest = len(list)
		}
		most = max(most, len(list))
	}
	if fewest == most {
		if r, ok := d.deviator(all); ok {
			return r
		}
	}
	var few []int
	for _, list := range texts {
		if len(list) == fewest {
			few = append(few, list...)
		}
	}
	slices.Sort(few)
	if slices.Contains(few, d.Blamed) {
		return d.Blamed
	}
	return few[0]
}
