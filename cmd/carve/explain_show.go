package main

import (
	"fmt"
	"slices"
	"strings"

	"carve/cmd/carve/internal/terminal"
	"carve/explain"
	"carve/unit"
)

// explanation is a report for people.
func explanation(r *explain.Report) string {
	var b strings.Builder
	b.WriteString(explainHead(r))
	for _, a := range r.Axes {
		b.WriteString("\n" + explainAxis(a))
	}
	section(&b, "state, bytes of a rank (the recorded one that has the most)", explainState(r))
	section(&b, "communication, of a step and rank (the recorded one that moves the most)", explainFlows(r))
	section(&b, "memory, peaks of the recorded ranks", explainMemory(r))
	if r.Pipeline != nil {
		section(&b, "pipeline", explainPipeline(r.Pipeline))
	}
	section(&b, "placement", explainTopology(&r.Topology))
	for _, w := range r.Warnings {
		fmt.Fprintf(&b, "\nnote: %s\n", w)
	}
	return b.String()
}

func section(b *strings.Builder, title, body string) {
	if body != "" {
		fmt.Fprintf(b, "\n%s\n%s", title, indent(body))
	}
}

// indent moves every line in by two.
func indent(text string) string {
	lines := strings.SplitAfter(text, "\n")
	var b strings.Builder
	for _, l := range lines {
		if strings.TrimSpace(l) != "" {
			b.WriteString("  ")
		}
		b.WriteString(l)
	}
	return b.String()
}

func explainHead(r *explain.Report) string {
	where := r.Cluster
	if where == "" {
		where = "a machine that is not described"
	}
	return fmt.Sprintf("%s, %v parameters, %s\n%s ranks: %s, on %s\nsequences of %s, %s in a global batch, %s micro-batches on each rank\n",
		r.Model, r.Parameters, r.Precision, thousands(r.World), r.Layout, where,
		thousands(r.Sequence), thousands(r.Batch), thousands(r.Micro))
}

func thousands(n int) string { return terminal.Thousands(int64(n)) }

// explainAxis answers the four questions.
func explainAxis(a explain.Axis) string {
	var rows [][]string
	list := func(question string, answers []string) {
		for i, s := range answers {
			if i > 0 {
				question = ""
			}
			rows = append(rows, []string{question, s})
		}
	}
	list("split", a.Split)
	list("replicated", a.Replicated)
	list("restored by", restores(a))
	list("hidden", []string{hiddenShare(a.HiddenBytes, a.Bytes)})
	title := fmt.Sprintf("%s %d: %s parallel, over %s\n", a.Name, a.Degree, a.Noun, linkName(a.Link))
	return title + indent(terminal.Table([]string{"", ""}, rows))
}

// restores writes the flows of an axis.
func restores(a explain.Axis) []string {
	var out []string
	for _, f := range a.Restores {
		calls := "calls"
		if f.Calls == 1 {
			calls = "call"
		}
		what := f.Op + " in " + f.Phase
		if f.Phase == "pipeline" {
			what = f.Op + " of " + f.Group
		}
		out = append(out, fmt.Sprintf("%s: %s %s, %v, among %d ranks (%s) over %s",
			what, thousands(f.Calls), calls, f.Bytes, f.Size, strings.Join(f.Axes, "×"), linkName(f.Link)))
	}
	if out == nil {
		return []string{"nothing: no recorded rank sends anything over it"}
	}
	return out
}

// hiddenShare says how much of some communication computing can hide.
func hiddenShare(hidden, all unit.Bytes) string {
	switch {
	case all == 0:
		return "nothing to hide"
	case hidden == 0:
		return fmt.Sprintf("nothing: all %v exposed", all)
	case hidden == all:
		return fmt.Sprintf("all %v behind computing", all)
	}
	return fmt.Sprintf("%v of %v behind computing, %v exposed", hidden, all, all-hidden)
}

func linkName(l explain.Link) string {
	if l.Name == "" {
		return "links that are not described"
	}
	return fmt.Sprintf("%s (%v)", l.Name, l.Bandwidth)
}

// shape writes sizes: "[2 3]".
func shape(dims []int) string { return fmt.Sprint(dims) }

// leastState is the part of a rank's memory below which a class is not shown to people.
const leastState = 0.001

func explainState(r *explain.Report) string {
	most := unit.Bytes(0)
	for _, m := range r.Memory {
		most = max(most, m.Total)
	}
	var rows [][]string
	hidden, small := 0, unit.Bytes(0)
	for _, s := range r.State {
		if s.Kind != "parameter" && float64(s.Bytes) < leastState*float64(most) {
			hidden++
			small += s.Bytes
			continue
		}
		copies := ""
		if s.Replication > 0 {
			copies = fmt.Sprintf("%s×", thousands(s.Replication))
		}
		split := s.Split
		if split == "" {
			split = "(this rank's)"
		}
		rows = append(rows, []string{s.Kind, explain.Short(s.Name), s.DType, shape(s.Shape), split, copies, thousands(s.Count), s.Bytes.String(), s.Lifetime})
	}
	text := terminal.Table([]string{"kind", "tensor", "dtype", "shape", "split", " copies", " tensors", " bytes", "lifetime"}, rows)
	if hidden > 0 {
		text += fmt.Sprintf("and %d classes below %.1f %% of the peak, %v together; --json has all\n", hidden, 100*leastState, small)
	}
	return text
}

func explainFlows(r *explain.Report) string {
	var rows [][]string
	for _, f := range r.Flows {
		each := f.Least.String()
		if f.Least != f.Most {
			each += " to " + f.Most.String()
		}
		rows = append(rows, []string{
			f.Phase, explain.Short(f.Module), f.Op, f.Group, fmt.Sprint(f.Size), strings.Join(f.Axes, "×"), thousands(f.Calls), each, f.Bytes.String(),
			thousands(f.HiddenCalls), f.Link.Name,
		})
	}
	if rows == nil {
		return ""
	}
	return terminal.Table([]string{"phase", "module", "operation", "group", " ranks", "axes", " calls", " each", " bytes", " hidden", "link"}, rows)
}

func explainMemory(r *explain.Report) string {
	kinds := []string{"parameter", "gradient", "optimizer", "activation", "communication", "workspace"}
	kinds = slices.DeleteFunc(kinds, func(k string) bool {
		return !slices.ContainsFunc(r.Memory, func(m explain.Memory) bool { return m.Categories[k] > 0 })
	})
	heading := []string{" rank", " stage"}
	for _, k := range kinds {
		heading = append(heading, " "+k)
	}
	heading = append(heading, " total", "at")
	var rows [][]string
	most := unit.Bytes(0)
	for _, m := range r.Memory {
		most = max(most, m.Total)
		row := []string{thousands(m.Rank), fmt.Sprint(m.Stage)}
		for _, k := range kinds {
			row = append(row, m.Categories[k].String())
		}
		rows = append(rows, append(row, m.Total.String(), strings.TrimSpace(m.Phase+" "+m.Owner)))
	}
	text := terminal.Table(heading, rows)
	if d := r.Device; d.Memory > 0 && d.Name != "" {
		verdict := "fits"
		if most > d.Memory {
			verdict = "does NOT fit"
		}
		text += fmt.Sprintf("%v %s in the %v of %s\n", most, verdict, d.Memory, d.Name)
	}
	return text
}

func explainPipeline(p *explain.Pipeline) string {
	text := fmt.Sprintf("%s: %d ranks, %d chunks, %d micro-batches, %s actions\nbubble %.1f %% where forward, input and weight gradients take equal time\npeak in flight by rank %v\n",
		p.Schedule, p.Ranks, p.Chunks, p.Micro, thousands(p.Actions), 100*p.Bubble, p.PeakInFlight)
	if p.Grid == "" {
		return text + "too large to draw here\n"
	}
	if _, body, ok := strings.Cut(p.Grid, "\n"); ok {
		return text + body
	}
	return text
}

func explainTopology(t *explain.Topology) string {
	var b strings.Builder
	for _, l := range t.Levels {
		axes := "no axis"
		if len(l.Axes) > 0 {
			axes = strings.Join(l.Axes, ", ")
		}
		fmt.Fprintf(&b, "%s: %s devices, %v each: %s\n", l.Name, thousands(l.Size), l.Bandwidth, axes)
	}
	var rows [][]string
	for _, n := range t.Shown {
		rows = append(rows, []string{fmt.Sprintf("node %d", n.Index), seats(n.Ranks)})
	}
	b.WriteString(terminal.Table([]string{"", ""}, rows))
	if more := t.Nodes - len(t.Shown); more > 0 {
		fmt.Fprintf(&b, "and %s more nodes of %d devices\n", thousands(more), t.PerNode)
	}
	if t.Idle > 0 {
		fmt.Fprintf(&b, "%s devices have no rank\n", thousands(t.Idle))
	}
	return b.String()
}

// mostCells bounds the ranks of a node that a line shows.
const mostCells = 8

// seats writes the ranks of a node: what all have in common, then what each has.
func seats(ranks []explain.Seat) string {
	var common, differ []string
	for _, axis := range []string{"dp", "pp", "ep", "cp", "tp"} {
		first, ok := ranks[0].Coordinates[axis]
		switch {
		case !ok:
		case slices.ContainsFunc(ranks, func(s explain.Seat) bool { return s.Coordinates[axis] != first }):
			differ = append(differ, axis)
		default:
			common = append(common, fmt.Sprintf("%s%d", axis, first))
		}
	}
	cells := make([]string, 0, len(ranks))
	for _, s := range ranks[:min(len(ranks), mostCells)] {
		words := []string{fmt.Sprintf("%d", s.Rank)}
		for _, axis := range differ {
			words = append(words, fmt.Sprintf("%s%d", axis, s.Coordinates[axis]))
		}
		cells = append(cells, "["+strings.Join(words, " ")+"]")
	}
	if len(ranks) > mostCells {
		cells = append(cells, fmt.Sprintf("and %d more", len(ranks)-mostCells))
	}
	return strings.TrimSpace(strings.Join(common, " ") + "  " + strings.Join(cells, " "))
}
