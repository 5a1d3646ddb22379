package token

import (
	"crypto/sha256"
	"encoding/hex"
)

// Bytes is the tokenizer without a vocabulary to learn: ids 0 to 255 are the
// bytes themselves and 256 is end-of-text. The zero value is ready to use.
type Bytes struct{}

const bytesEndOfText = 256

// Encode appends one id per byte of text.
func (Bytes) Encode(dst []int32, text []byte) []int32 {
	for _, b := range text {
		dst = append(dst, int32(b))
	}
	return dst
}

// Decode appends the bytes of ids.
func (t Bytes) Decode(dst []byte, ids []int32) ([]byte, error) {
	start := len(dst)
	for _, id := range ids {
		switch {
		case id == bytesEndOfText:
			dst = append(dst, EndOfTextName...)
		case id >= 0 && id < bytesEndOfText:
			dst = append(dst, byte(id))
		default:
			return dst[:start], errRange(id, t.VocabSize())
		}
	}
	return dst, nil
}

// VocabSize is 257.
func (Bytes) VocabSize() int { return bytesEndOfText + 1 }

// Special is end-of-text alone.
func (Bytes) Special() []Special {
	return []Special{{ID: bytesEndOfText, Text: EndOfTextName}}
}

// EndOfText is 256.
func (Bytes) EndOfText() (id int32, ok bool) { return bytesEndOfText, true }

// Hash is the same for every Bytes.
func (Bytes) Hash() string {
	sum := sha256.Sum256([]byte("carve byte tokenizer 1"))
	return hex.EncodeToString(sum[:])
}
