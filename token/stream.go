package token

import "unicode/utf8"

// Stream decodes tokens one by one into text that can be shown at once: bytes of
// a character that is not complete yet wait for the next token. Bytes that are
// not valid UTF-8 become U+FFFD, each one. A Stream is for one goroutine.
type Stream struct {
	tokenizer Tokenizer
	pending   []byte
	id        [1]int32
}

// NewStream decodes ids of t.
func NewStream(t Tokenizer) *Stream { return &Stream{tokenizer: t} }

// Next adds a token and returns the text that is now complete, which may be
// empty. After an error the Stream is as it was.
func (s *Stream) Next(id int32) (string, error) {
	s.id[0] = id
	pending, err := s.tokenizer.Decode(s.pending, s.id[:])
	if err != nil {
		return "", err
	}
	n := complete(pending)
	text := toValid(pending[:n])
	s.pending = append(s.pending[:0], pending[n:]...)
	return text, nil
}

// Flush returns what is left when no more tokens come.
func (s *Stream) Flush() string {
	text := toValid(s.pending)
	s.pending = s.pending[:0]
	return text
}

// complete is the length of b without an unfinished character at its end.
func complete(b []byte) int {
	for n := len(b) - 1; n >= 0 && n > len(b)-utf8.UTFMax; n-- {
		if utf8.RuneStart(b[n]) {
			if !utf8.FullRune(b[n:]) {
				return n
			}
			break
		}
	}
	return len(b)
}

// toValid is b as text, each invalid byte as U+FFFD.
func toValid(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b)))
}
