package token

import "fmt"

// Tokenizer maps text to token ids and back.
//
// Implementations are immutable as seen from outside and safe for concurrent
// use: several goroutines may encode with one Tokenizer.
type Tokenizer interface {
	// Encode appends the ids of text to dst and returns the extended slice.
	// Any bytes are accepted. Text never produces a special token: the words
	// "<|endoftext|>" in a document are encoded as ordinary text.
	Encode(dst []int32, text []byte) []int32

	// Decode appends the bytes of ids to dst and returns the extended slice.
	// Decoding what Encode produced gives the same bytes back; a special token
	// decodes to its name. An id outside [0, VocabSize) is an error and dst
	// comes back with what stood before it.
	Decode(dst []byte, ids []int32) ([]byte, error)

	// VocabSize is the number of ids, special tokens included.
	VocabSize() int

	// Special lists the special tokens by ascending id. The caller must not
	// change it.
	Special() []Special

	// EndOfText is the token that separates documents; ok is false when the
	// vocabulary has none.
	EndOfText() (id int32, ok bool)

	// Hash identifies the mapping: tokenizers with equal hashes encode every
	// text alike. It is a hexadecimal SHA-256.
	Hash() string
}

// Special is a token that no text produces.
type Special struct {
	ID   int32
	Text string
}

// EndOfTextName is the name that carve gives to the end-of-text token.
const EndOfTextName = "<|endoftext|>"

// endOfTextNames are the names under which other vocabularies know it.
func endOfTextNames() []string {
	return []string{EndOfTextName, "<|end_of_text|>", "</s>", "<|end▁of▁sentence|>"}
}

// findEndOfText returns the end-of-text token among special.
func findEndOfText(special []Special) (id int32, ok bool) {
	for _, name := range endOfTextNames() {
		for _, s := range special {
			if s.Text == name {
				return s.ID, true
			}
		}
	}
	return 0, false
}

// errRange reports an id that a vocabulary of the given size does not have.
func errRange(id int32, vocab int) error {
	return fmt.Errorf("token: id %d is outside the vocabulary of %d; the ids come from another tokenizer", id, vocab)
}
