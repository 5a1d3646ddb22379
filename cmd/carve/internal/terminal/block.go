package terminal

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// Width is the number of columns of the terminal that w writes to, and whether it is one that can move its cursor.
func Width(w io.Writer) (columns int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return 0, false
	}
	columns, _, err := term.GetSize(int(f.Fd()))
	if err != nil || columns <= 0 {
		return 80, true
	}
	return columns, true
}

// Block is a run of lines at the bottom of a terminal that each drawing replaces. The zero value with a Writer and a
// Width is ready.
type Block struct {
	Writer io.Writer
	Width  func() int // columns; lines are cut to it

	drawn int // lines on the screen now
}

// Draw replaces the block by the given lines. All is written at once, so that the screen does not flicker.
func (b *Block) Draw(lines ...string) {
	var out strings.Builder
	b.rewind(&out)
	width := b.Width()
	for _, l := range lines {
		out.WriteString(Cut(l, width-1))
		out.WriteString("\x1b[K\n")
	}
	out.WriteString("\x1b[J")
	b.drawn = len(lines)
	_, _ = io.WriteString(b.Writer, out.String()) // a lost screen must not end a run
}

// Print writes lines above the block, which the next drawing puts below them.
func (b *Block) Print(lines ...string) {
	var out strings.Builder
	b.rewind(&out)
	out.WriteString("\x1b[J")
	for _, l := range lines {
		out.WriteString(l + "\n")
	}
	b.drawn = 0
	_, _ = io.WriteString(b.Writer, out.String())
}

// Keep leaves the block where it is; the next drawing begins below it.
func (b *Block) Keep() { b.drawn = 0 }

// rewind moves the cursor to where the block begins.
func (b *Block) rewind(out *strings.Builder) {
	if b.drawn > 0 {
		fmt.Fprintf(out, "\x1b[%dA\r", b.drawn)
	}
}

// Cut shortens a line to a number of columns; every character counts as one.
func Cut(line string, columns int) string {
	columns = max(columns, 0)
	if utf8.RuneCountInString(line) <= columns {
		return line
	}
	if columns == 0 {
		return ""
	}
	runes := []rune(line)
	return string(runes[:columns-1]) + "…"
}
