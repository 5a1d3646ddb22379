package token

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"sync"
	"unicode/utf8"
)

// BPE is a byte-level BPE vocabulary: any bytes can be encoded, since each byte
// has a token. Make one with Train or Load.
type BPE struct {
	vocabulary
	byteID    [256]int32
	rank      pairMap // pair → index in merges
	endOfText int32   // -1: none
	hash      string

	mu   sync.Mutex
	idle []*encoder // encoders between calls, with their warm caches; guarded by mu
}

// vocabulary is what defines a BPE: how words are cut, the bytes of each token,
// the merges in order of rank, and the special tokens by ascending id.
type vocabulary struct {
	split   *splitter
	tokens  [][]byte
	merges  []merge
	special []Special
}

// merge joins two neighbouring tokens into a third.
type merge struct{ left, right, joined int32 }

// newBPE checks the vocabulary and takes it over.
func newBPE(v vocabulary) (*BPE, error) {
	b := &BPE{vocabulary: v, endOfText: -1, rank: newPairMap(len(v.merges))}
	if err := b.indexTokens(); err != nil {
		return nil, err
	}
	if err := b.indexMerges(); err != nil {
		return nil, err
	}
	if id, ok := findEndOfText(v.special); ok {
		b.endOfText = id
	}
	b.hash = v.digest()
	return b, nil
}

// indexTokens checks that tokens are distinct and that every byte has one.
func (b *BPE) indexTokens() error {
	seen := make(map[string]int32, len(b.tokens))
	for id, text := range b.tokens {
		if len(text) == 0 {
			return fmt.Errorf("token %d is empty", id)
		}
		if first, twice := seen[string(text)]; twice {
			return fmt.Errorf("%q is both token %d and token %d; names must differ", text, first, id)
		}
		seen[string(text)] = int32(id)
	}
	for _, s := range b.special {
		if !utf8.ValidString(s.Text) {
			return fmt.Errorf("special token %q is not valid UTF-8", s.Text)
		}
		delete(seen, s.Text)
	}
	for i := range b.byteID {
		id, ok := seen[string([]byte{byte(i)})]
		if !ok {
			return fmt.Errorf("byte 0x%02x has no token; a byte-level vocabulary needs all 256", i)
		}
		b.byteID[i] = id
	}
	return nil
}

// indexMerges checks that each merge joins what it says and occurs once.
func (b *BPE) indexMerges() error {
	for rank, m := range b.merges {
		left, right, joined := b.tokens[m.left], b.tokens[m.right], b.tokens[m.joined]
		if len(left)+len(right) != len(joined) || string(joined[:len(left)]) != string(left) || string(joined[len(left):]) != string(right) {
			return fmt.Errorf("merge %d joins %q and %q into %q", rank, left, right, joined)
		}
		if first := b.rank.get(pairOf(m.left, m.right)); first >= 0 {
			return fmt.Errorf("merge %d repeats merge %d, %q and %q", rank, first, left, right)
		}
		b.rank.put(pairOf(m.left, m.right), int32(rank))
	}
	return nil
}

// digest identifies the vocabulary.
func (v *vocabulary) digest() string {
	h := sha256.New()
	writeString(h, "carve byte-level bpe 1")
	writeString(h, v.split.pattern.Regex())
	writeInts(h, int32(len(v.tokens)), int32(len(v.merges)), int32(len(v.special)))
	for _, t := range v.tokens {
		writeString(h, string(t))
	}
	for _, m := range v.merges {
		writeInts(h, m.left, m.right, m.joined)
	}
	for _, s := range v.special {
		writeInts(h, s.ID)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func writeString(h hash.Hash, s string) {
	writeInts(h, int32(len(s)))
	h.Write([]byte(s)) // a hash never fails
}

func writeInts(h hash.Hash, values ...int32) {
	var b [4]byte
	for _, v := range values {
		binary.LittleEndian.PutUint32(b[:], uint32(v))
		h.Write(b[:]) // a hash never fails
	}
}

// VocabSize is the number of tokens.
func (b *BPE) VocabSize() int { return len(b.tokens) }

// Special lists the special tokens by ascending id.
func (b *BPE) Special() []Special { return b.special }

// EndOfText is the token that separates documents.
func (b *BPE) EndOfText() (id int32, ok bool) { return b.endOfText, b.endOfText >= 0 }

// Hash identifies the vocabulary, the merges and the pattern.
func (b *BPE) Hash() string { return b.hash }

// Pattern is the rule that cuts text into words.
func (b *BPE) Pattern() Pattern { return b.split.pattern }

// Decode appends the bytes of ids.
func (b *BPE) Decode(dst []byte, ids []int32) ([]byte, error) {
	start := len(dst)
	for _, id := range ids {
		if id < 0 || int(id) >= len(b.tokens) {
			return dst[:start], errRange(id, len(b.tokens))
		}
		dst = append(dst, b.tokens[id]...)
	}
	return dst, nil
}

// Encode appends the ids of text. It allocates nothing once dst has room and
// the words of text have been seen.
func (b *BPE) Encode(dst []int32, text []byte) []int32 {
	e := b.acquire()
	dst = e.encode(dst, text)
	b.release(e)
	return dst
}

// acquire hands out an encoder for one call. Each has a cache of its own, so
// that encoding goroutines share no lock; there are as many as calls ever ran
// at once.
func (b *BPE) acquire() *encoder {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := len(b.idle); n > 0 {
		e := b.idle[n-1]
		b.idle = slices.Delete(b.idle, n-1, n)
		return e
	}
	return newEncoder(b)
}

func (b *BPE) release(e *encoder) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.idle = append(b.idle, e)
}
