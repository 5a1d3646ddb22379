package schedule

import (
	"fmt"
	"html"
	"strings"
)

// Sizes of an SVG drawing, in pixels.
const (
	svgRow    = 24 // height of a rank
	svgLetter = 7  // width of a letter
	svgLeft   = 64 // room for the ranks' names
	svgTop    = 32 // room for the title
)

// svgStyle colours by operation, darker on chunks after the first. Cells keep their colours and dark letters on any
// ground; what stands on the page follows its scheme.
const svgStyle = `<style>
text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#111}
.page{fill:#1f2328}.title{font-weight:bold}
rect{stroke:#333;stroke-width:.5}
.idle{fill:#8883;stroke:none}
.F0{fill:#f6c667}.F1{fill:#e09a2b}.B0{fill:#a3d977}.B1{fill:#6fb54a}
.I0{fill:#9fe0c8}.I1{fill:#58bfa0}.W0{fill:#a9cdf7}.W1{fill:#6ea6e8}
.pair{fill:none;stroke:#111;stroke-width:1.5}
@media(prefers-color-scheme:dark){.page{fill:#e6edf3}.pair{stroke:#fff}}
</style>
`

// SVG draws what Text draws as an SVG image that needs nothing else: a box for each computation, named and coloured, a
// border around the halves of a pair.
func SVG(p *Program, t *Timeline) string {
	d := draw(p, t)
	column := d.width() * svgLetter
	width := max(svgLeft+d.columns*column+8, svgLeft+svgLetter*max(len(d.title()), len(d.legend())))
	height := svgTop + len(d.rows)*svgRow + 2*svgRow
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n", width, height, width, height)
	fmt.Fprintf(&b, "<title>%s</title>\n", html.EscapeString(d.title()))
	b.WriteString(svgStyle)
	fmt.Fprintf(&b, "<text class=\"page title\" x=\"8\" y=\"20\">%s</text>\n", html.EscapeString(d.title()))
	for rank, row := range d.rows {
		y := svgTop + rank*svgRow
		fmt.Fprintf(&b, "<text class=\"page\" x=\"8\" y=\"%d\">rank %d</text>\n", y+16, rank)
		fmt.Fprintf(&b, "<rect class=\"idle\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", svgLeft, y+2, d.columns*column, svgRow-4)
		for _, c := range row {
			d.box(&b, c, svgLeft+c.start*column, y+2, (c.end-c.start)*column)
		}
	}
	fmt.Fprintf(&b, "<text class=\"page\" x=\"%d\" y=\"%d\">%s</text>\n</svg>\n", svgLeft, svgTop+len(d.rows)*svgRow+20, html.EscapeString(d.legend()))
	return b.String()
}

// box draws one cell: a pair's forward takes a third of it, next to a whole backward, else half.
func (d *drawing) box(b *strings.Builder, c cell, x, y, width int) {
	halves, n := c.action.halves()
	widths := [2]int{width}
	if n == 2 {
		widths[0] = width / 2
		if c.action.With.Op == Backward {
			widths[0] = width / 3
		}
		widths[1] = width - widths[0]
	}
	left := x
	for i, h := range halves[:n] {
		fmt.Fprintf(b, "<rect class=\"%s%d\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>", h.Op, min(h.Chunk, 1), left, y, widths[i], svgRow-4)
		fmt.Fprintf(b, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", left+widths[i]/2, y+14, d.label(h))
		left += widths[i]
	}
	if n == 2 {
		fmt.Fprintf(b, "<rect class=\"pair\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n", x, y, width, svgRow-4)
	}
}
