package data

import (
	"bytes"
	"unicode/utf8"
)

// headBytes is how much of a file is looked at to tell text from other data.
const headBytes = 8 << 10

// isBinary tells whether a file that begins with head is not text: it holds a
// NUL byte, or more than a tenth of its characters are controls or invalid
// UTF-8. Text in an 8-bit encoding of a Latin language passes.
func isBinary(head []byte) bool {
	head = head[:min(len(head), headBytes)]
	if bytes.IndexByte(head, 0) >= 0 {
		return true
	}
	odd, all := 0, 0
	for i := 0; i < len(head); all++ {
		r, w := utf8.DecodeRune(head[i:])
		switch {
		case r == utf8.RuneError && w == 1:
			if !utf8.FullRune(head[i:]) {
				return 10*odd > all // the head ends inside a character
			}
			odd++
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' && r != '\f' && r != '\v' || r == 0x7f:
			odd++
		}
		i += w
	}
	return 10*odd > all
}
