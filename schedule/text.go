package schedule

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// cell is a computation in a drawing.
type cell struct {
	action     Action
	start, end int // columns
}

// drawing is a program and its times in columns. A column is the shortest action, so that a drawing is exact where
// all times are multiples of that; other edges are rounded.
type drawing struct {
	program *Program
	times   *Timeline
	rows    [][]cell // [rank]
	columns int
	chunks  int // most chunks on a rank
}

// maxColumns bounds a drawing in which one action is far shorter than the whole.
const maxColumns = 1 << 16

func draw(p *Program, t *Timeline) *drawing {
	d := &drawing{program: p, times: t, rows: make([][]cell, len(p.Ranks))}
	for _, chunks := range p.Stages {
		d.chunks = max(d.chunks, len(chunks))
	}
	column := t.shortest()
	at := func(time float64) int { return int(math.Round(time / column)) }
	for rank, list := range p.Ranks {
		end := 0
		for i, a := range list {
			span := t.Spans[rank][i]
			if span.Start == span.End {
				continue
			}
			start := max(end, at(span.Start))
			end = max(start+1, at(span.End))
			d.rows[rank] = append(d.rows[rank], cell{a, start, end})
		}
		d.columns = max(d.columns, end)
	}
	return d
}

// shortest returns the length of the shortest span that takes time, or what makes a drawing of it not too wide.
func (t *Timeline) shortest() float64 {
	least := t.Makespan
	for _, spans := range t.Spans {
		for _, s := range spans {
			if s.End > s.Start {
				least = min(least, s.End-s.Start)
			}
		}
	}
	return max(least, t.Makespan/maxColumns)
}

// label names a computation: F3, and f3 on the second chunk; where ranks have more than two, F3.1.
func (d *drawing) label(h Half) string {
	if d.chunks > 2 {
		return fmt.Sprintf("%s%d.%d", h.Op, h.Micro, h.Chunk)
	}
	name := fmt.Sprintf("%s%d", h.Op, h.Micro)
	if h.Chunk == 1 {
		return strings.ToLower(name)
	}
	return name
}

// text returns the label of an action: of both halves of a pair.
func (d *drawing) text(a Action) string {
	halves, n := a.halves()
	labels := make([]string, n)
	for i, h := range halves[:n] {
		labels[i] = d.label(h)
	}
	return strings.Join(labels, "+")
}

// title sums the drawing up.
func (d *drawing) title() string {
	return fmt.Sprintf("%s: %d ranks, %d micro-batches, time %g, bubble %.1f %%",
		d.program.Name, len(d.program.Ranks), d.program.Micros(), d.times.Makespan, 100*d.times.BubbleRatio())
}

// legend explains the letters that occur.
func (d *drawing) legend() string {
	words := []string{"F forward", "B backward", "I gradient of the input", "W gradients of the weights"}
	seen := make([]bool, len(words))
	paired := false
	for _, row := range d.rows {
		for _, c := range row {
			halves, n := c.action.halves()
			for _, h := range halves[:n] {
				seen[h.Op] = true
			}
			paired = paired || n == 2
		}
	}
	var parts []string
	for op, word := range words {
		if seen[op] {
			parts = append(parts, word)
		}
	}
	if paired {
		parts = append(parts, "F+b together")
	}
	switch {
	case d.chunks == 2:
		parts = append(parts, "lower case: the rank's second chunk")
	case d.chunks > 2:
		parts = append(parts, "F3.1: micro-batch 3 on the rank's chunk 1")
	}
	return strings.Join(parts, ", ")
}

// Text draws a program at the times of Time: a line for each rank, a column for each unit of time, as the papers do. An action that
// takes longer goes on in dashes, a dot is idleness. It needs no colour.
func Text(p *Program, t *Timeline) string {
	d := draw(p, t)
	width := d.width()
	var b strings.Builder
	b.WriteString(d.title() + "\n")
	digits := len(fmt.Sprint(len(d.rows) - 1))
	for rank, row := range d.rows {
		line := []byte(fmt.Sprintf("%*d | ", digits, rank))
		at := 0
		for _, c := range row {
			line = append(line, idle(c.start-at, width)...)
			line = append(line, d.filled(c, width)...)
			at = c.end
		}
		line = append(line, idle(d.columns-at, width)...)
		b.WriteString(strings.TrimRight(string(line), " ") + "\n")
	}
	b.WriteString(d.legend() + "\n")
	return b.String()
}

// filled returns the label of a cell, drawn out to its columns.
func (d *drawing) filled(c cell, width int) string {
	label, room, fill := d.text(c.action), (c.end-c.start)*width, "-"
	if c.end-c.start == 1 {
		fill = " "
	}
	return label + strings.Repeat(fill, room-1-len(label)) + " "
}

// width returns the characters of a column, a space included, in which every label has room.
func (d *drawing) width() int {
	width := 2
	for _, row := range d.rows {
		for _, c := range row {
			width = max(width, (len(d.text(c.action))+c.end-c.start)/(c.end-c.start))
		}
	}
	return width
}

// idle draws columns in which nothing happens.
func idle(columns, width int) []byte {
	dot := append([]byte{'.'}, slices.Repeat([]byte{' '}, width-1)...)
	return slices.Repeat(dot, columns)
}
