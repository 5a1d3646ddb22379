package token

// Limits of an encoder's cache. Text has no end of different words (numbers,
// names), so a full cache is emptied and fills again with what is now in use.
const (
	cacheWords    = 1 << 16 // short words: 2 to 4 MiB
	cacheLong     = 1 << 14 // words over shortWord bytes
	cacheLongest  = 128     // longer words are not kept
	cacheStart    = 1 << 10
	inlineIDs     = 3
	spillCapacity = 1 << 18 // ids of words that do not fit inline
)

// encoder applies the merges of one BPE for one goroutine at a time and
// remembers the words it has met.
type encoder struct {
	bpe    *BPE
	cache  wordMap[cached]
	spill  []int32
	merger merger
}

// cached is a word's ids: in place when there are at most inlineIDs of them,
// else spill[ids[0]:][:n].
type cached struct {
	n   int32
	ids [inlineIDs]int32
}

func newEncoder(b *BPE) *encoder {
	return &encoder{
		bpe:    b,
		cache:  newWordMap[cached](cacheStart),
		merger: merger{rank: &b.rank, merges: b.merges},
	}
}

// encode appends the ids of text to dst.
func (e *encoder) encode(dst []int32, text []byte) []int32 {
	split, byteID := e.bpe.split, &e.bpe.byteID
	for i := 0; i < len(text); {
		end := split.next(text, i)
		switch {
		case end-i == 1:
			dst = append(dst, byteID[text[i]])
		case end-i <= shortWord:
			dst = e.short(dst, text, i, end)
		default:
			dst = e.long(dst, text[i:end])
		}
		i = end
	}
	return dst
}

// short encodes the word text[i:end] of at most shortWord bytes.
func (e *encoder) short(dst []int32, text []byte, i, end int) []int32 {
	key := keyOf(text, i, end)
	if s := e.cache.slot(key); s.key == key {
		return e.recall(dst, s.value)
	}
	start := len(dst)
	dst = e.merge(dst, text[i:end])
	if e.cache.used >= cacheWords || len(e.spill) >= spillCapacity {
		e.forget()
	}
	e.cache.put(key, e.remember(dst[start:]))
	return dst
}

// long encodes a word that has no room in the inline cache.
func (e *encoder) long(dst []int32, word []byte) []int32 {
	if len(word) > cacheLongest {
		return e.merge(dst, word)
	}
	if c := e.cache.long[string(word)]; c != nil {
		return e.recall(dst, *c)
	}
	start := len(dst)
	dst = e.merge(dst, word)
	if len(e.cache.long) >= cacheLong || len(e.spill) >= spillCapacity {
		e.forget()
	}
	c := e.remember(dst[start:])
	e.cache.long[string(word)] = &c
	return dst
}

// forget empties the cache.
func (e *encoder) forget() {
	e.cache.clear()
	e.spill = e.spill[:0]
}

// recall appends the ids of a cached word.
func (e *encoder) recall(dst []int32, c cached) []int32 {
	if c.n > inlineIDs {
		return append(dst, e.spill[c.ids[0]:][:c.n]...)
	}
	for k := range c.n {
		dst = append(dst, c.ids[k])
	}
	return dst
}

// remember makes a cache entry of ids.
func (e *encoder) remember(ids []int32) cached {
	c := cached{n: int32(len(ids))}
	if len(ids) <= inlineIDs {
		copy(c.ids[:], ids)
		return c
	}
	c.ids[0] = int32(len(e.spill))
	e.spill = append(e.spill, ids...)
	return c
}

// merge appends the ids of a word that is not in the cache.
func (e *encoder) merge(dst []int32, word []byte) []int32 {
	start := len(dst)
	for _, b := range word {
		dst = append(dst, e.bpe.byteID[b])
	}
	return dst[:start+e.merger.apply(dst[start:])]
}
