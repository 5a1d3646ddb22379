package trace

import (
	"strconv"
	"unicode/utf8"
)

// appendEscaped appends s as the inside of a JSON string. What is not UTF-8 becomes U+FFFD.
func appendEscaped(buf []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			buf = append(buf, '\\', byte(r))
		case r < ' ':
			buf = append(buf, `\u00`...)
			buf = append(buf, "0123456789abcdef"[r>>4], "0123456789abcdef"[r&15])
		default:
			buf = utf8.AppendRune(buf, r)
		}
	}
	return buf
}

// list writes numbers as the PyTorch profiler writes lists: text in brackets.
func list[T int | int32](buf []byte, xs []T) []byte {
	buf = append(buf, '"', '[')
	for i, x := range xs {
		if i > 0 {
			buf = append(buf, ", "...)
		}
		buf = strconv.AppendInt(buf, int64(x), 10)
	}
	return append(buf, ']', '"')
}
