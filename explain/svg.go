package explain

import (
	"fmt"
	"html"
	"slices"
	"strings"

	"carve/tensor"
	"carve/unit"
)

// Sizes of the drawing, in pixels.
const (
	svgWidth  = 1120
	svgMargin = 16
	svgLine   = 18
	svgSeat   = 84 // width of a rank on its node
	svgAcross = 12 // ranks of a node in a row
)

// svgStyle names the colours. Boxes keep theirs and their dark letters; the ground and what stands on it follow the page's
// scheme. Schedules bring their own, of the same kind.
const svgStyle = `<style>
text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#111}
rect{stroke:#333;stroke-width:.5}
.ground{fill:#fff;stroke:none}.page{fill:#1f2328}.title{font-weight:bold}.big{font-size:15px}
.node{fill:none;stroke:#8886;stroke-width:1}
.c0{fill:#a9cdf7}.c1{fill:#f6c667}.c2{fill:#a3d977}.c3{fill:#9fe0c8}.c4{fill:#e4b3e6}.c5{fill:#f5b8a5}.c6{fill:#d9d27a}.c7{fill:#b9c0cc}
.parameter{fill:#a9cdf7}.gradient{fill:#a3d977}.optimizer{fill:#f6c667}.activation{fill:#e4b3e6}.communication{fill:#f5b8a5}.workspace{fill:#b9c0cc}.kv-cache{fill:#9fe0c8}
.exposed{fill:#f5b8a5}.hidden{fill:#a3d977}
@media(prefers-color-scheme:dark){.ground{fill:#0d1117}.page{fill:#e6edf3}}
</style>
`

// SVG draws a report as an image that needs nothing else: the axes with what they split and send, the ranks on their
// nodes, memory, and a small pipeline's schedule.
func SVG(r *Report) string {
	c := &canvas{y: svgMargin, width: svgWidth}
	c.text("title big", 0, fmt.Sprintf("%s: %d ranks, %s", r.Model, r.World, r.Layout))
	for _, a := range r.Axes {
		c.axis(a)
	}
	c.topology(&r.Topology)
	c.memory(r)
	c.stateGraph(r)
	c.communicationGraph(r)
	if r.Pipeline != nil {
		c.pipeline(r.Pipeline)
	}
	for _, w := range r.Warnings {
		c.text("", 0, "note: "+w)
	}
	return fmt.Sprintf("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n<title>%s</title>\n%s%s%s</svg>\n",
		c.width, c.y+svgMargin, c.width, c.y+svgMargin, escape(r.Model+", "+r.Layout), svgStyle,
		"<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n", c.body.String())
}

// escape makes words safe inside of XML.
func escape(words string) string { return html.EscapeString(words) }

// canvas is a drawing that grows downwards.
type canvas struct {
	body     strings.Builder
	y, width int
}

// text writes a line on the page, which becomes as wide as it needs.
func (c *canvas) text(class string, x int, words string) {
	c.y += svgLine
	fmt.Fprintf(&c.body, "<text class=\"page %s\" x=\"%d\" y=\"%d\">%s</text>\n", class, svgMargin+x, c.y, escape(words))
	c.width = max(c.width, 2*svgMargin+x+7*len(words))
}

// box draws a coloured rectangle with letters in it; the title is shown where a pointer rests on it.
func (c *canvas) box(class string, x, y, width, height int, title string, lines ...string) {
	fmt.Fprintf(&c.body, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"><title>%s</title></rect>", class, x, y, width, height, escape(title))
	for i, l := range lines {
		fmt.Fprintf(&c.body, "<text x=\"%d\" y=\"%d\">%s</text>", x+4, y+12+12*i, escape(l))
	}
	c.body.WriteString("\n")
}

// heading begins a section.
func (c *canvas) heading(words string) {
	c.y += svgLine / 2
	c.text("title", 0, words)
}

// axis writes the four questions.
func (c *canvas) axis(a Axis) {
	where := "links that are not described"
	if a.Link.Name != "" {
		where = fmt.Sprintf("%s, %v", a.Link.Name, a.Link.Bandwidth)
	}
	c.heading(fmt.Sprintf("%s %d: %s parallel over %s", a.Name, a.Degree, a.Noun, where))
	for _, s := range a.Split {
		c.text("", svgMargin, "splits "+s)
	}
	c.text("", svgMargin, "replicated: "+strings.Join(a.Replicated, "; "))
	c.text("", svgMargin, fmt.Sprintf("sent by rank %d in a step: %d calls, %v, of which %v can hide behind computing", a.Rank, a.Calls, a.Bytes, a.HiddenBytes))
}

// topology draws the nodes that are shown, with their ranks.
func (c *canvas) topology(t *Topology) {
	c.heading("ranks on devices")
	for _, l := range t.Levels {
		c.text("", svgMargin, fmt.Sprintf("%s, domains of %d, %v: %s", l.Name, l.Size, l.Bandwidth, strings.Join(l.Axes, " ")))
	}
	c.y += svgLine / 2
	colour := colouring(t)
	for _, n := range t.Shown {
		c.node(n, colour)
	}
	if more := t.Nodes - len(t.Shown); more > 0 {
		c.text("", 0, fmt.Sprintf("and %d more nodes of %d devices", more, t.PerNode))
	}
	if t.Idle > 0 {
		c.text("", 0, fmt.Sprintf("%d devices have no rank", t.Idle))
	}
}

// axesOf lists the names of a seat's axes in a fixed order.
func axesOf(s Seat) []string {
	return slices.DeleteFunc([]string{"dp", "pp", "ep", "cp", "tp"}, func(name string) bool {
		_, ok := s.Coordinates[name]
		return !ok
	})
}

// colouring is the axis whose coordinate gives ranks their colour: the first that differs among those shown.
func colouring(t *Topology) string {
	first := t.Shown[0].Ranks[0]
	for _, name := range []string{"pp", "dp", "ep", "cp", "tp"} {
		for _, n := range t.Shown {
			for _, s := range n.Ranks {
				if s.Coordinates[name] != first.Coordinates[name] {
					return name
				}
			}
		}
	}
	return "tp"
}

// node draws one node as a box of its ranks.
func (c *canvas) node(n Node, colour string) {
	rows := (len(n.Ranks) + svgAcross - 1) / svgAcross
	labels := axesOf(n.Ranks[0])
	height := 16 + 12*((len(labels)+1)/2)
	across := min(len(n.Ranks), svgAcross)
	fmt.Fprintf(&c.body, "<rect class=\"node\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"4\"/>\n",
		svgMargin, c.y, across*svgSeat+70, rows*(height+4)+4)
	fmt.Fprintf(&c.body, "<text class=\"page\" x=\"%d\" y=\"%d\">node %d</text>\n", svgMargin+6, c.y+18, n.Index)
	for i, s := range n.Ranks {
		x, y := svgMargin+66+i%svgAcross*svgSeat, c.y+4+i/svgAcross*(height+4)
		c.box(fmt.Sprintf("c%d", s.Coordinates[colour]%8), x, y, svgSeat-4, height, fmt.Sprintf("rank %d", s.Rank), seatLines(s, labels)...)
	}
	c.y += rows*(height+4) + 8
	c.width = max(c.width, 2*svgMargin+across*svgSeat+74)
}

// seatLines labels a rank: its number, and its coordinates two in a line.
func seatLines(s Seat, labels []string) []string {
	lines := []string{fmt.Sprint(s.Rank)}
	for part := range slices.Chunk(labels, 2) {
		words := make([]string, len(part))
		for i, name := range part {
			words[i] = fmt.Sprintf("%s%d", name, s.Coordinates[name])
		}
		lines = append(lines, strings.Join(words, " "))
	}
	return lines
}

// memory draws a bar for every recorded rank.
func (c *canvas) memory(r *Report) {
	c.heading("memory at the peak of each recorded rank")
	most := unit.Bytes(1)
	for _, m := range r.Memory {
		most = max(most, m.Total)
	}
	c.legend()
	const room = svgWidth - 2*svgMargin - 250
	for _, m := range r.Memory {
		c.y += svgLine + 2
		fmt.Fprintf(&c.body, "<text class=\"page\" x=\"%d\" y=\"%d\">rank %d, stage %d</text>\n", svgMargin, c.y, m.Rank, m.Stage)
		x := svgMargin + 140
		for _, k := range tensor.Categories() {
			b := m.Categories[k.String()]
			width := int(float64(b) / float64(most) * room)
			if width == 0 {
				continue
			}
			c.box(k.String(), x, c.y-13, width, svgLine-1, fmt.Sprintf("%v %v", k, b))
			x += width
		}
		fmt.Fprintf(&c.body, "<text class=\"page\" x=\"%d\" y=\"%d\">%v</text>\n", x+6, c.y, m.Total)
	}
}

// legend shows the colours of the categories.
func (c *canvas) legend() {
	c.y += svgLine
	x := svgMargin
	for _, k := range tensor.Categories()[:tensor.KVCache] {
		c.key(x, k.String(), k.String())
		x += 40 + 7*len(k.String())
	}
}

// pipeline draws the schedule, if it is small.
func (c *canvas) pipeline(p *Pipeline) {
	c.heading(fmt.Sprintf("pipeline %s: %d ranks, %d micro-batches, bubble %.1f %%, peak in flight %v", p.Schedule, p.Ranks, p.Micro, 100*p.Bubble, p.PeakInFlight))
	if p.drawing == "" {
		return
	}
	c.y += svgLine / 2
	var width, height int
	if _, err := fmt.Sscanf(p.drawing[strings.Index(p.drawing, "viewBox"):], "viewBox=\"0 0 %d %d\"", &width, &height); err != nil {
		return // the schedule's own drawing says its size
	}
	fmt.Fprintf(&c.body, "<g transform=\"translate(%d %d)\">%s</g>\n", svgMargin, c.y, p.drawing)
	c.y += height
	c.width = max(c.width, width+2*svgMargin)
}
