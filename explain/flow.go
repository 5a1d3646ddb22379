package explain

import (
	"slices"

	"carve/comm"
	"carve/mesh"
	"carve/unit"
)

// kind is what two flows have in common that are one.
type kind struct{ group, op, dtype, phase, module string }

func (f *Flow) kind() kind { return kind{f.Group, f.Op, f.DType, f.Phase, f.Module} }

// flowsOf lists the communication of a recorded rank, in the order of the first call of each kind.
func (e *explainer) flowsOf(i int) []Flow {
	w := e.watched[i]
	flows := make([]Flow, len(w.order))
	for j, k := range w.order {
		flows[j] = e.flow(k, w.flows[k], e.ranks[i].Rank)
		flows[j].Stages = []int{e.ranks[i].At[mesh.PP]}
	}
	return together(flows, (*Flow).add)
}

// flows merges those of all recorded ranks; each counts on the one that moves the most.
func (e *explainer) flows() []Flow {
	var all []Flow
	for i := range e.watched {
		all = append(all, e.flowsOf(i)...)
	}
	return together(all, (*Flow).outdo)
}

// together merges flows of one kind.
func together(flows []Flow, merge func(into *Flow, f Flow)) []Flow {
	out := []Flow{}
	at := map[kind]int{}
	for _, f := range flows {
		if j, ok := at[f.kind()]; ok {
			merge(&out[j], f)
			continue
		}
		at[f.kind()] = len(out)
		out = append(out, f)
	}
	return out
}

// add adds another flow of the same rank.
func (f *Flow) add(g Flow) {
	f.Calls += g.Calls
	f.Bytes += g.Bytes
	f.WireBytes += g.WireBytes
	f.HiddenCalls += g.HiddenCalls
	f.HiddenBytes += g.HiddenBytes
	f.within(g)
}

// outdo takes the counts of another rank's flow if that moves more.
func (f *Flow) outdo(g Flow) {
	stages := append(f.Stages, g.Stages...)
	if g.Bytes > f.Bytes {
		*f, g = g, *f
	}
	f.within(g)
	f.Stages = stages
}

// within widens the sizes of calls and the link to those of another flow.
func (f *Flow) within(g Flow) {
	f.Least, f.Most = min(f.Least, g.Least), max(f.Most, g.Most)
	if g.Link.Level > f.Link.Level {
		f.Link = g.Link
	}
}

// flow is one kind of communication of one rank.
func (e *explainer) flow(k flowKey, t *tally, rank int) Flow {
	ranks := k.group.Ranks()
	axes := e.places.varying(k.group.Name(), ranks)
	f := Flow{
		Group: k.group.Name(), Axes: axisNames(axes), Size: len(ranks), Ranks: few(ranks),
		Op: k.op.String(), DType: k.dtype.String(), Phase: k.phase, Module: k.module,
		Calls: t.calls, Bytes: t.bytes, WireBytes: unit.Bytes(t.wire), Least: t.least, Most: t.most,
		HiddenCalls: t.hiddenCalls, HiddenBytes: t.hiddenBytes, Link: e.places.link(axes),
	}
	if k.op == comm.Barrier {
		f.DType = ""
	}
	if k.op.PointToPoint() {
		f.Link = e.places.pair(rank, ranks[t.peer])
	}
	if k.op.PointToPoint() && axes == mesh.Of(mesh.PP) {
		f.Phase, f.Module = "pipeline", ""
	}
	if !ofLayers(f.Group) {
		f.Module = ""
	}
	return f
}

// ofLayers tells whether layers communicate over a group of this name; else the step does, around them.
func ofLayers(group string) bool {
	return slices.ContainsFunc([]string{"tensor", "context", "expert"}, func(name string) bool {
		return group == name || group == name+" of backward"
	})
}

// fewRanks bounds the ranks that a report lists of a group.
const fewRanks = 8

func few(ranks []int) []int { return slices.Clone(ranks[:min(len(ranks), fewRanks)]) }

// axisNames lists the axes of a set.
func axisNames(set mesh.Axes) []string {
	names := []string{}
	for _, a := range mesh.All {
		if set.Has(a) {
			names = append(names, a.String())
		}
	}
	return names
}
