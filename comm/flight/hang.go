package flight

import (
	"fmt"
	"strings"
)

// Kind is what went wrong.
type Kind string

// The kinds of faults.
const (
	Absent   Kind = "absent"   // members did not come to an operation
	Mismatch Kind = "mismatch" // members called different operations
	Stalled  Kind = "stalled"  // every member issued the operation, but one does not carry it on
	Failed   Kind = "failed"   // a rank failed, and nobody was waiting for it
)

// Hang is what held a world up.
type Hang struct {
	Kind    Kind
	Culprit int // the first rank to blame
	Group   string
	Ranks   []int // the group's
	Op      string
	What    string
	Seq     int
	Site    string // where a rank that waits called it
	Missing []int  // ranks that did not come, or called something else
	Waiting []int  // ranks that wait there
	Waited  int64  // ns: the longest of them
	Last    map[int]Last
}

// Last is the operation that a rank issued last.
type Last struct {
	Operation
	Group string
	Ago   int64 // ns from its end, or from its issue when it has not ended
}

// Diagnose finds who is to blame. It returns false when nobody waits and no rank failed.
func Diagnose(r Record) (Hang, bool) {
	d := newDiagnosis(r)
	h, found := d.mismatch()
	if !found {
		h, found = d.absent()
	}
	if !found && r.Blamed != Nobody {
		h, found = d.failed(), true
	}
	h.Last = d.last()
	return h, found
}

// failed describes a rank that failed although nobody waited for it: the operation is its own that failed, if any.
func (d *diagnosis) failed() Hang {
	h := Hang{Kind: Failed, Culprit: d.Blamed, Missing: []int{d.Blamed}}
	k := d.byRank[d.Blamed]
	if k == nil {
		return h
	}
	for i := range k.Operations {
		if o := &k.Operations[i]; o.State == Waiting {
			g := &k.Groups[o.Group]
			h.Group, h.Ranks, h.Op, h.What, h.Seq, h.Site = g.Name, g.Ranks, o.Op, o.What, o.Seq, o.Site
			return h
		}
	}
	return h
}

// last is every rank's last operation.
func (d *diagnosis) last() map[int]Last {
	all := map[int]Last{}
	for i := range d.Ranks {
		k := &d.Ranks[i]
		if len(k.Operations) == 0 {
			continue
		}
		o := k.Operations[len(k.Operations)-1]
		since := o.Ended
		if o.State != Finished {
			since = o.Issued
		}
		all[k.Rank] = Last{o, k.Groups[o.Group].Name, d.Taken - since}
	}
	return all
}

// String says who held up what, in one sentence.
func (h Hang) String() string {
	var b strings.Builder
	if h.Op != "" {
		fmt.Fprintf(&b, "operation %d of group %q, %s", h.Seq, h.Group, h.What)
		if h.Site != "" {
			fmt.Fprintf(&b, ", called at %s", h.Site)
		}
		b.WriteString(": ")
	}
	fmt.Fprintf(&b, "%s %s", ranks(h.Missing), h.Kind.verb())
	if len(h.Waiting) > 0 {
		fmt.Fprintf(&b, "; %s waited for %s", ranks(h.Waiting), duration(h.Waited))
	}
	if len(h.Missing) > 1 {
		fmt.Fprintf(&b, "; the first is rank %d", h.Culprit)
	}
	if last, ok := h.Last[h.Culprit]; ok {
		fmt.Fprintf(&b, "; rank %d last did %s", h.Culprit, last)
	} else {
		fmt.Fprintf(&b, "; rank %d did nothing yet", h.Culprit)
	}
	return b.String()
}

func (k Kind) verb() string {
	switch k {
	case Absent:
		return "did not arrive"
	case Mismatch:
		return "called something else"
	case Stalled:
		return "issued it but did not go on with it"
	case Failed:
		return "failed"
	}
	return string(k)
}

// String names the operation, its place and how it ended.
func (l Last) String() string {
	s := fmt.Sprintf("operation %d of group %q, %s", l.Seq, l.Group, l.What)
	if l.message() {
		s = fmt.Sprintf("message %d of group %q with rank %d, %s", l.Seq, l.Group, l.Peer, l.What)
	}
	if l.Site != "" {
		s += " at " + l.Site
	}
	if l.State == Finished {
		return fmt.Sprintf("%s, finished %s before", s, duration(l.Ago))
	}
	return fmt.Sprintf("%s, %s %s before", s, l.State, duration(l.Ago))
}

// ranks lists ranks for people.
func ranks(list []int) string {
	const most = 8
	words := make([]string, 0, most)
	for _, r := range list[:min(len(list), most)] {
		words = append(words, fmt.Sprint(r))
	}
	switch {
	case len(list) == 1:
		return "rank " + words[0]
	case len(list) > most:
		return fmt.Sprintf("ranks %s and %d more", strings.Join(words, ", "), len(list)-most)
	}
	return "ranks " + strings.Join(words, ", ")
}

// duration prints nanoseconds as seconds.
func duration(ns int64) string { return fmt.Sprintf("%.3g s", float64(ns)/1e9) }
