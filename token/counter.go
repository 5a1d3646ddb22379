package token

import (
	"bytes"
	"fmt"
	"slices"
)

// Counter counts the words of text, which is all that training needs to know of
// a corpus. A Counter is for one goroutine; several may count parts of a corpus
// and be merged.
type Counter struct {
	split  *splitter
	counts wordMap[int64]
	bytes  int64
}

// NewCounter counts the words that pattern finds.
func NewCounter(pattern Pattern) (*Counter, error) {
	if err := pattern.valid(); err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	return &Counter{split: newSplitter(pattern), counts: newWordMap[int64](1 << 12)}, nil
}

// Add counts the words of one document, or of a part that ends where SafeCut
// cuts.
func (c *Counter) Add(text []byte) {
	c.bytes += int64(len(text))
	for i := 0; i < len(text); {
		end := c.split.next(text, i)
		if end-i > shortWord {
			c.addLong(text[i:end], 1)
		} else {
			c.addShort(keyOf(text, i, end), 1)
		}
		i = end
	}
}

func (c *Counter) addShort(key wordKey, n int64) {
	if s := c.counts.slot(key); s.key == key {
		s.value += n
		return
	}
	c.counts.put(key, n)
}

func (c *Counter) addLong(word []byte, n int64) {
	if at := c.counts.long[string(word)]; at != nil {
		*at += n
		return
	}
	c.counts.long[string(word)] = &n
}

// Merge adds the counts of from, which must have the same pattern, and leaves
// from as it was.
func (c *Counter) Merge(from *Counter) {
	c.bytes += from.bytes
	for i := range from.counts.slots {
		if s := &from.counts.slots[i]; s.key != (wordKey{}) {
			c.addShort(s.key, s.value)
		}
	}
	for word, n := range from.counts.long {
		c.addLong([]byte(word), *n) // addition: the order of the map does not matter
	}
}

// Bytes is the number of bytes of text counted.
func (c *Counter) Bytes() int64 { return c.bytes }

// Words is the number of different words.
func (c *Counter) Words() int { return c.counts.len() }

// word is one distinct word and how often it occurs.
type word struct {
	text  []byte
	count int64
}

// sorted lists the words in ascending order of their bytes, so that nothing
// downstream depends on the order of a hash table.
func (c *Counter) sorted() []word {
	words := make([]word, 0, c.Words())
	arena := make([]byte, 0, 16*c.Words())
	var b [16]byte
	for i := range c.counts.slots {
		if s := &c.counts.slots[i]; s.key != (wordKey{}) {
			start := len(arena)
			arena = append(arena, s.key.word(&b)...)
			words = append(words, word{arena[start:len(arena):len(arena)], s.value})
		}
	}
	for text, n := range c.counts.long {
		words = append(words, word{[]byte(text), *n})
	}
	slices.SortFunc(words, func(a, b word) int { return bytes.Compare(a.text, b.text) })
	return words
}
