// Package terminal draws for people: a block of lines that is replaced in place, bars, small curves and tables.
//
// Nothing it draws needs colour. What it writes to a file or a pipe is plain text without control sequences: whether
// there is a terminal, and how wide, is asked once per drawing, so that a window may be resized.
package terminal
