package token

import "bytes"

// SafeCut is the largest cut in (0, len(text)] at which text may be taken apart
// so that its two parts, encoded one after the other, give the ids of the whole:
// a single LF between two ASCII characters that are not white space, both of
// them in text. Every pattern ends a word there and looks no further ahead. It
// is 0 when text has no such place.
func SafeCut(text []byte) int {
	for end := len(text) - 1; end > 1; {
		at := bytes.LastIndexByte(text[:end], '\n')
		if at < 1 {
			return 0
		}
		if solid(text[at-1]) && solid(text[at+1]) {
			return at + 1
		}
		end = at
	}
	return 0
}

// solid reports an ASCII character that is not white space or a control.
func solid(c byte) bool { return c > ' ' && c < 0x7f }
