package token

import (
	"encoding/binary"
	"math/bits"
)

// shortWord is the longest word that a wordMap keeps inline.
const shortWord = 15

// wordMap maps words to values. Words of up to 15 bytes, nearly all of real
// text, live inline in one open-addressing table, so that a hit costs one cache
// line; longer words go to an ordinary map.
//
// Invariant: len(slots) is a power of two and more than a quarter of it is free.
type wordMap[V any] struct {
	slots []wordSlot[V]
	used  int
	long  map[string]*V
}

// wordSlot is free when key is zero; no word has key zero, since the length
// stands in its top byte.
type wordSlot[V any] struct {
	key   wordKey
	value V
}

// wordKey is a word of up to 15 bytes, zero padded, and its length.
type wordKey struct{ lo, hi uint64 }

func newWordMap[V any](slots int) wordMap[V] {
	n := 1 << bits.Len(uint(max(slots, 8)-1))
	return wordMap[V]{slots: make([]wordSlot[V], n), long: make(map[string]*V)}
}

// len is the number of words.
func (m *wordMap[V]) len() int { return m.used + len(m.long) }

// clear forgets all words and keeps the memory.
func (m *wordMap[V]) clear() {
	clear(m.slots)
	clear(m.long)
	m.used = 0
}

// keyOf packs text[i:end], at most 15 bytes. It reads whole words where text
// has bytes behind them, which is everywhere but at its end.
func keyOf(text []byte, i, end int) wordKey {
	n := uint(end - i)
	if len(text)-i < 16 {
		return keyOfEdge(text[i:end])
	}
	lo := binary.LittleEndian.Uint64(text[i:])
	if n <= 8 {
		return wordKey{lo & (1<<(8*n) - 1), uint64(n) << 56}
	}
	hi := binary.LittleEndian.Uint64(text[i+8:])
	return wordKey{lo, hi&(1<<(8*(n-8))-1) | uint64(n)<<56}
}

// keyOfEdge is keyOf without reading past the word.
func keyOfEdge(word []byte) wordKey {
	var b [16]byte
	copy(b[:], word)
	b[15] = byte(len(word))
	return wordKey{binary.LittleEndian.Uint64(b[:8]), binary.LittleEndian.Uint64(b[8:])}
}

// word writes the key's bytes into b and returns them.
func (k wordKey) word(b *[16]byte) []byte {
	binary.LittleEndian.PutUint64(b[:8], k.lo)
	binary.LittleEndian.PutUint64(b[8:], k.hi)
	return b[:b[15]]
}

// hash mixes the key: the two halves of a 128-bit product, folded.
func (k wordKey) hash() uint64 {
	hi, lo := bits.Mul64(k.lo^0x9e3779b97f4a7c15, k.hi^0xd6e8feb86659fd93)
	return hi ^ lo
}

// slot is where key is, or the free slot where it would go.
func (m *wordMap[V]) slot(key wordKey) *wordSlot[V] {
	mask := uint64(len(m.slots) - 1)
	for at := key.hash() & mask; ; at = (at + 1) & mask {
		s := &m.slots[at]
		if s.key == key || s.key == (wordKey{}) {
			return s
		}
	}
}

// put sets the value of a short word that the map does not hold yet.
func (m *wordMap[V]) put(key wordKey, value V) {
	if 4*m.used >= 3*len(m.slots) {
		m.grow()
	}
	*m.slot(key) = wordSlot[V]{key, value}
	m.used++
}

// grow doubles the table.
func (m *wordMap[V]) grow() {
	old := m.slots
	m.slots = make([]wordSlot[V], 2*len(old))
	for i := range old {
		if old[i].key != (wordKey{}) {
			*m.slot(old[i].key) = old[i]
		}
	}
}
