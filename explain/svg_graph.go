package explain

import (
	"fmt"
	"strings"

	"carve/unit"
)

// Columns of a line with a bar, in pixels.
const (
	svgLabel = 420 // what it is
	svgBar   = 300 // how large
)

// part is a piece of a bar.
type part struct {
	class string
	bytes unit.Bytes
	title string
}

// bar is a line of a graph: a label, a bar of parts, and a note.
type bar struct {
	label, note string
	parts       []part
}

func (b bar) total() (sum unit.Bytes) {
	for _, p := range b.parts {
		sum += p.bytes
	}
	return sum
}

// bars draws lines whose bars have one scale.
func (c *canvas) bars(lines []bar) {
	most := unit.Bytes(1)
	for _, l := range lines {
		most = max(most, l.total())
	}
	for _, l := range lines {
		c.y += svgLine
		fmt.Fprintf(&c.body, "<text class=\"page\" x=\"%d\" y=\"%d\">%s</text>\n", svgMargin, c.y, escape(l.label))
		x := svgMargin + svgLabel
		for _, p := range l.parts {
			width := int(float64(p.bytes) / float64(most) * svgBar)
			if width > 0 {
				c.box(p.class, x, c.y-12, width, svgLine-4, p.title)
				x += width
			}
		}
		note := fmt.Sprintf("%v  %s", l.total(), l.note)
		fmt.Fprintf(&c.body, "<text class=\"page\" x=\"%d\" y=\"%d\">%s</text>\n", x+6, c.y, escape(note))
		c.width = max(c.width, x+6+7*len(note)+svgMargin)
	}
}

// leastDrawn is the part of the largest below which a line is left out.
const leastDrawn = 0.002

// stateGraph draws the classes of tensors by their bytes on a rank.
func (c *canvas) stateGraph(r *Report) {
	c.heading("state: bytes of a rank, split, copies in the world, lifetime")
	var lines []bar
	most := unit.Bytes(0)
	for _, s := range r.State {
		most = max(most, s.Bytes)
	}
	for _, s := range r.State {
		if float64(s.Bytes) < leastDrawn*float64(most) {
			continue
		}
		notes := []string{}
		if s.Split != "" {
			notes = append(notes, s.Split)
		}
		if s.Replication > 0 {
			notes = append(notes, fmt.Sprintf("%d copies", s.Replication))
		}
		lines = append(lines, bar{
			label: fmt.Sprintf("%s %v", Short(s.Name), s.Shape), note: strings.Join(append(notes, s.Lifetime), ", "),
			parts: []part{{s.Kind, s.Bytes, fmt.Sprintf("%s, %s, %d tensors", s.Kind, s.DType, s.Count)}},
		})
	}
	c.bars(lines)
}

// communicationGraph draws the kinds of communication by their bytes in a step of a rank: what can hide in one colour, what
// cannot in another.
func (c *canvas) communicationGraph(r *Report) {
	if len(r.Flows) == 0 {
		return
	}
	c.heading("communication: bytes of a step and rank, calls, ranks, link")
	c.y += svgLine
	c.key(svgMargin, "exposed", "exposed")
	c.key(svgMargin+100, "hidden", "can hide behind computing")
	most := unit.Bytes(0)
	for _, f := range r.Flows {
		most = max(most, f.Bytes)
	}
	var lines []bar
	for _, f := range r.Flows {
		if float64(f.Bytes) < leastDrawn*float64(most) {
			continue
		}
		lines = append(lines, bar{
			label: strings.Join(nonEmpty(f.Phase, Short(f.Module), f.Op), " "),
			note:  fmt.Sprintf("%d calls, %d ranks (%s), %s", f.Calls, f.Size, strings.Join(f.Axes, "×"), f.Link.Name),
			parts: []part{{"exposed", f.Bytes - f.HiddenBytes, "exposed"}, {"hidden", f.HiddenBytes, "can hide behind computing"}},
		})
	}
	c.bars(lines)
}

// key is an entry of a legend on the current line.
func (c *canvas) key(x int, class, words string) {
	c.box(class, x, c.y-11, 14, 14, words)
	fmt.Fprintf(&c.body, "<text class=\"page\" x=\"%d\" y=\"%d\">%s</text>\n", x+18, c.y, escape(words))
}

func nonEmpty(words ...string) (out []string) {
	for _, w := range words {
		if w != "" {
			out = append(out, w)
		}
	}
	return out
}
