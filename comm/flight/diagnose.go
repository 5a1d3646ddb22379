package flight

import (
	"cmp"
	"maps"
	"slices"
)

// diagnosis is a record that is being read.
type diagnosis struct {
	Record
	byRank map[int]*Rank
	waits  []wait
}

// wait is an operation that a rank waits for, and who keeps it from ending.
type wait struct {
	rank  int
	group *Group
	op    *Operation // the one whose part is missing: not after the one waited for
	since int64      // when the rank began to wait
	lacks []int      // ranks, ascending
	kind  Kind
}

func newDiagnosis(r Record) *diagnosis {
	d := &diagnosis{Record: r, byRank: map[int]*Rank{}}
	for i := range r.Ranks {
		d.byRank[r.Ranks[i].Rank] = &r.Ranks[i]
	}
	for i := range r.Ranks {
		d.collect(&r.Ranks[i])
	}
	return d
}

// collect finds what a rank waits for.
func (d *diagnosis) collect(k *Rank) {
	for i := range k.Operations {
		o := &k.Operations[i]
		if o.State != Waiting {
			continue
		}
		w := wait{rank: k.Rank, group: &k.Groups[o.Group], op: k.head(o), since: o.Since, kind: Absent}
		if w.lacks = d.lacking(w); w.lacks == nil {
			w.kind, w.lacks = Stalled, d.idle(w)
		}
		if w.lacks != nil {
			d.waits = append(d.waits, w)
		}
	}
}

// head is the oldest collective of the group that is not finished: it keeps the others from starting.
func (k *Rank) head(o *Operation) *Operation {
	if o.message() {
		return o
	}
	for i := range k.Operations {
		if h := &k.Operations[i]; h.Group == o.Group && !h.message() && h.State != Finished && h.Seq < o.Seq {
			return h
		}
	}
	return o
}

// lacking is the ranks that did not issue their part of an operation.
func (d *diagnosis) lacking(w wait) (lacks []int) {
	for _, r := range w.peers() {
		if d.issued(r, w) < w.op.Seq {
			lacks = append(lacks, r)
		}
	}
	slices.Sort(lacks)
	return lacks
}

// peers is the other ranks that the operation needs.
func (w wait) peers() (list []int) {
	if w.op.message() {
		return []int{w.op.Peer}
	}
	for _, r := range w.group.Ranks {
		if r != w.rank {
			list = append(list, r)
		}
	}
	return list
}

// issued is how many operations of the kind a rank has issued in the group of w; 0 when nothing is known of it.
func (d *diagnosis) issued(rank int, w wait) int {
	g := d.group(rank, w.group)
	if g == nil {
		return 0
	}
	if !w.op.message() {
		return g.Collectives
	}
	me := slices.Index(g.Ranks, w.rank)
	if w.op.Op == "send" {
		return g.Received[me]
	}
	return g.Sent[me]
}

// group is a rank's side of a group.
func (d *diagnosis) group(rank int, like *Group) *Group {
	k := d.byRank[rank]
	if k == nil {
		return nil
	}
	for i := range k.Groups {
		if g := &k.Groups[i]; g.Name == like.Name && slices.Equal(g.Ranks, like.Ranks) {
			return g
		}
	}
	return nil
}

// idle is the ranks that issued their part of an operation, have not finished it, and wait for nothing.
func (d *diagnosis) idle(w wait) (list []int) {
	for _, r := range w.peers() {
		if k := d.byRank[r]; k != nil && !k.waiting() && d.unfinished(k, w) {
			list = append(list, r)
		}
	}
	slices.Sort(list)
	return list
}

// waiting tells whether the rank waits for anything.
func (k *Rank) waiting() bool {
	return slices.ContainsFunc(k.Operations, func(o Operation) bool { return o.State == Waiting })
}

// unfinished tells whether a rank has not finished its part of an operation.
func (d *diagnosis) unfinished(k *Rank, w wait) bool {
	g := d.group(k.Rank, w.group)
	return slices.ContainsFunc(k.Operations, func(o Operation) bool {
		return g == &k.Groups[o.Group] && o.message() == w.op.message() && o.Seq == w.op.Seq && o.State != Finished
	})
}

// absent finds the rank that holds the others up, and where.
func (d *diagnosis) absent() (Hang, bool) {
	if len(d.waits) == 0 {
		return Hang{}, false
	}
	culprit := d.Blamed
	if culprit == Nobody {
		culprit = d.culprit()
	}
	missed := slices.DeleteFunc(slices.Clone(d.waits), func(w wait) bool { return !slices.Contains(w.lacks, culprit) })
	if len(missed) == 0 {
		return Hang{}, false
	}
	expected, known := d.expected(culprit)
	first := slices.MinFunc(missed, func(a, b wait) int {
		if known && a.like(expected) != b.like(expected) {
			return cmp.Compare(rankOf(a.like(expected)), rankOf(b.like(expected)))
		}
		return cmp.Or(cmp.Compare(len(a.lacks), len(b.lacks)), cmp.Compare(a.since, b.since), cmp.Compare(a.rank, b.rank))
	})
	return d.report(first, culprit), true
}

// rankOf orders what is as expected before what is not.
func rankOf(asExpected bool) int { //nolint:revive // a number for an order
	if asExpected {
		return 0
	}
	return 1
}

// report describes a wait for a culprit.
func (d *diagnosis) report(w wait, culprit int) Hang {
	h := Hang{
		Kind: w.kind, Culprit: culprit, Group: w.group.Name, Ranks: w.group.Ranks,
		Op: w.op.Op, What: w.op.What, Seq: w.op.Seq, Site: w.op.Site, Missing: w.lacks,
	}
	for _, other := range d.waits {
		same := other.group.Name == w.group.Name && slices.Equal(other.group.Ranks, w.group.Ranks)
		if same && other.op.message() == w.op.message() && other.op.Seq == w.op.Seq && slices.Contains(other.lacks, culprit) {
			h.Waiting = append(h.Waiting, other.rank)
			h.Waited = max(h.Waited, d.Taken-other.since)
		}
	}
	slices.Sort(h.Waiting)
	h.Waiting = slices.Compact(h.Waiting)
	return h
}

// culprit is the rank that everything waits for in the end.
func (d *diagnosis) culprit() int {
	waiters := map[int]map[int]bool{} // by the rank waited for
	for _, w := range d.waits {
		for _, r := range w.lacks {
			if waiters[r] == nil {
				waiters[r] = map[int]bool{}
			}
			waiters[r][w.rank] = true
		}
	}
	suspects := map[int]bool{}
	for r := range waiters {
		if k := d.byRank[r]; k == nil || !k.waiting() {
			suspects[r] = true
		}
	}
	if len(suspects) == 0 { // a circle
		for r := range waiters {
			suspects[r] = true
		}
		if odd, ok := d.deviator(suspects); ok {
			return odd
		}
	}
	return slices.MinFunc(slices.Sorted(maps.Keys(suspects)), func(a, b int) int {
		return cmp.Or(cmp.Compare(len(waiters[b]), len(waiters[a])), cmp.Compare(a, b))
	})
}
