package token

import (
	"unicode"
	"unicode/utf8"
)

// class is what the patterns can tell of a character.
type class uint8

const (
	other   class = iota // neither letter, number nor white space
	letter               // \p{L}
	number               // \p{N}
	blank                // white space other than CR and LF
	newline              // CR or LF
)

// splitter finds the words of a pattern. It means what the pattern's regular
// expression means and is written by hand for speed; a property test holds the
// two equal. A byte that is not valid UTF-8 counts as one character of class
// other.
type splitter struct {
	pattern Pattern
	digits  int // longest word of numbers; 0 is no limit
	class   [1 << 16]class
}

func newSplitter(p Pattern) *splitter {
	s := &splitter{pattern: p}
	switch p {
	case Llama3:
		s.digits = 3
	case Qwen2:
		s.digits = 1
	case GPT2, patternCount:
	}
	s.fill(unicode.White_Space, blank)
	s.fill(unicode.L, letter)
	s.fill(unicode.N, number)
	s.class['\n'], s.class['\r'] = newline, newline
	return s
}

// fill sets the class of a table's characters below U+10000.
func (s *splitter) fill(table *unicode.RangeTable, k class) {
	for _, r := range table.R16 {
		for c := int(r.Lo); c <= int(r.Hi); c += int(r.Stride) {
			s.class[c] = k
		}
	}
}

// classOf is the class of a character by the tables of package unicode.
func classOf(r rune) class {
	switch {
	case r == '\r' || r == '\n':
		return newline
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	case unicode.IsSpace(r):
		return blank
	}
	return other
}

// next is the end of the word that begins at text[i]; i must be inside text.
func (s *splitter) next(text []byte, i int) int {
	if s.pattern == GPT2 {
		return s.nextGPT2(text, i)
	}
	return s.nextLlama3(text, i)
}

// nextLlama3 follows the alternatives of the published pattern:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,digits}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func (s *splitter) nextLlama3(text []byte, i int) int {
	k, w := s.at(text, i)
	after := i + w
	switch k {
	case letter:
		return s.run(text, after, letter)
	case number:
		return s.numbers(text, after)
	case newline:
		return s.lines(text, i)
	case blank, other:
	}
	if text[i] == '\'' {
		if n := foldedContraction(text[i:]); n > 0 {
			return i + n
		}
	}
	k2, w2 := s.at(text, after)
	switch {
	case k2 == letter:
		return s.run(text, after+w2, letter)
	case k == other:
		return s.newlines(text, s.run(text, after, other))
	case text[i] == ' ' && k2 == other && w2 > 0:
		return s.newlines(text, s.run(text, after+w2, other))
	}
	return s.lines(text, i)
}

// nextGPT2 follows 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func (s *splitter) nextGPT2(text []byte, i int) int {
	if text[i] == '\'' {
		if n := contraction(text[i:]); n > 0 {
			return i + n
		}
	}
	k, w := s.at(text, i)
	end := i + w
	if text[i] == ' ' {
		k, w = s.at(text, end)
		end += w
	}
	switch k {
	case letter, number:
		return s.run(text, end, k)
	case other:
		if w > 0 {
			return s.run(text, end, other)
		}
	case blank, newline:
	}
	end, last, _ := s.white(text, i)
	return beforeWord(text, i, end, last)
}

// at is the class and width of the character at text[i]; past the end it is
// other with width 0.
func (s *splitter) at(text []byte, i int) (class, int) {
	if i >= len(text) {
		return other, 0
	}
	if c := text[i]; c < utf8.RuneSelf {
		return s.class[c], 1
	}
	r, w := utf8.DecodeRune(text[i:])
	if r < 1<<16 {
		return s.class[r], w
	}
	return classOf(r), w
}

// run is the end of the characters of class k from i on.
func (s *splitter) run(text []byte, i int, k class) int {
	for i < len(text) {
		if c := text[i]; c < utf8.RuneSelf {
			if s.class[c] != k {
				return i
			}
			i++
			continue
		}
		k2, w := s.at(text, i)
		if k2 != k {
			return i
		}
		i += w
	}
	return i
}

// numbers ends \p{N}{1,digits} after its first character.
func (s *splitter) numbers(text []byte, i int) int {
	for n := 1; n != s.digits; n++ {
		k, w := s.at(text, i)
		if k != number {
			return i
		}
		i += w
	}
	return i
}

// newlines ends [\r\n]*.
func (s *splitter) newlines(text []byte, i int) int {
	for i < len(text) && (text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

// lines ends \s*[\r\n]+|\s+(?!\S)|\s+ at white space text[i].
func (s *splitter) lines(text []byte, i int) int {
	end, last, line := s.white(text, i)
	if line > 0 {
		return line
	}
	return beforeWord(text, i, end, last)
}

// beforeWord ends \s+(?!\S)|\s+ for the white space text[i:end], whose last
// character begins at last: what follows keeps that character, unless it is
// the only one.
func beforeWord(text []byte, i, end, last int) int {
	if end == len(text) || last == i {
		return end
	}
	return last
}

// white returns the end of the white space from i on, the start of its last
// character and the end of its last CR or LF (0 when there is none).
func (s *splitter) white(text []byte, i int) (end, last, line int) {
	for i < len(text) {
		k, w := s.at(text, i)
		if k != blank && k != newline {
			break
		}
		last = i
		i += w
		if k == newline {
			line = i
		}
	}
	return i, last, line
}

// contraction is the length of the English ending ('s, 't, 're, 've, 'm, 'll,
// 'd) that text begins with, or 0.
func contraction(text []byte) int {
	if len(text) < 2 {
		return 0
	}
	switch text[1] {
	case 's', 't', 'm', 'd':
		return 2
	}
	if len(text) < 3 {
		return 0
	}
	switch string(text[1:3]) {
	case "re", "ve", "ll":
		return 3
	}
	return 0
}

// foldedContraction is contraction in any case. Unicode folds ſ (U+017F) to s.
func foldedContraction(text []byte) int {
	const long = "ſ"
	if len(text) > len(long) && string(text[1:1+len(long)]) == long {
		return 1 + len(long)
	}
	var lower [3]byte
	n := copy(lower[:], text)
	for i := 1; i < n; i++ {
		lower[i] |= 'a' - 'A' // maps no other byte to the letters looked for
	}
	return contraction(lower[:n])
}
