package token

import (
	"context"
	"fmt"
)

// minPair is how often a pair must occur to be worth a token.
const minPair = 2

// maxVocab bounds every vocabulary, so that a bad number or file cannot ask for
// absurd memory. The largest published vocabularies have a few hundred thousand
// tokens.
const maxVocab = 1 << 24

// TrainOptions says what to learn. VocabSize is the number of tokens wanted,
// with the 256 bytes and the special tokens; Special are the special tokens'
// names, end-of-text alone when nil; Progress, if any, is called now and then
// with the number of merges found and wanted.
type TrainOptions struct {
	VocabSize int
	Special   []string
	Progress  func(done, total int)
}

// Train learns a byte-level BPE from counted words: it joins the most frequent
// pair of neighbouring tokens, again and again (Sennrich et al. 2016, "Neural
// machine translation of rare words with subword units", algorithm 1, over
// bytes as in GPT-2). Among equally frequent pairs the one with the smaller
// left, then smaller right id wins, so equal counts give equal tokenizers.
//
// Ids are: bytes 0 to 255, merges in the order they were found, special tokens.
// When the text runs out of pairs that occur twice, the vocabulary is smaller
// than asked for.
func Train(ctx context.Context, counts *Counter, opts TrainOptions) (*BPE, error) {
	special := opts.Special
	if special == nil {
		special = []string{EndOfTextName}
	}
	wanted := opts.VocabSize - 256 - len(special)
	if wanted < 0 || opts.VocabSize > maxVocab {
		return nil, fmt.Errorf("token: vocabulary size %d; use %d (256 bytes and %d special tokens) to %d",
			opts.VocabSize, 256+len(special), len(special), maxVocab)
	}
	t := newTrainer(counts.sorted())
	for len(t.merges) < wanted {
		if !t.step() {
			break
		}
		if len(t.merges)%64 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, fmt.Errorf("token: training stopped after %d of %d merges: %w", len(t.merges), wanted, err)
			}
			report(opts.Progress, len(t.merges), wanted)
		}
	}
	report(opts.Progress, len(t.merges), len(t.merges))
	b, err := newBPE(t.vocabulary(counts.split, special))
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	return b, nil
}

func report(progress func(done, total int), done, total int) {
	if progress != nil {
		progress(done, total)
	}
}

// trainer keeps the words as token sequences, and for every pair its count and
// the words that may hold it.
type trainer struct {
	words  []trainWord
	stats  []pairStat
	index  pairMap // pair → index in stats
	queue  heap[candidate]
	merges []pair
	fresh  []int32 // stats made by the merge at hand
}

type trainWord struct {
	ids   []int32
	count int64
}

// pairStat is a pair's present count and the words it was seen in. A word may
// have lost the pair since.
type pairStat struct {
	pair  pair
	count int64
	words []uint32
}

// candidate is a pair with the count it had when queued. Counts of queued pairs
// only fall, so a candidate whose count is out of date is queued again with the
// right one when it comes up.
type candidate struct {
	count int64
	pair  pair
	stat  int32
}

func (c candidate) before(d candidate) bool {
	if c.count != d.count {
		return c.count > d.count
	}
	return c.pair < d.pair
}

func newTrainer(words []word) *trainer {
	total := 0
	for _, w := range words {
		total += len(w.text)
	}
	t := &trainer{words: make([]trainWord, 0, len(words)), index: newPairMap(1 << 14)}
	arena := make([]int32, 0, total)
	for _, w := range words {
		if len(w.text) < 2 {
			continue
		}
		start := len(arena)
		for _, b := range w.text {
			arena = append(arena, int32(b))
		}
		t.addWord(arena[start:len(arena):len(arena)], w.count)
	}
	for i := range t.stats {
		t.enqueue(int32(i))
	}
	t.fresh = t.fresh[:0]
	return t
}

func (t *trainer) addWord(ids []int32, count int64) {
	at := uint32(len(t.words))
	t.words = append(t.words, trainWord{ids, count})
	for i := 1; i < len(ids); i++ {
		t.add(pairOf(ids[i-1], ids[i]), count, at)
	}
}

// add counts p in a word.
func (t *trainer) add(p pair, count int64, word uint32) {
	i := t.index.get(p)
	if i < 0 {
		i = int32(len(t.stats))
		t.stats = append(t.stats, pairStat{pair: p})
		t.index.put(p, i)
		t.fresh = append(t.fresh, i)
	}
	s := &t.stats[i]
	s.count += count
	if n := len(s.words); n == 0 || s.words[n-1] != word {
		s.words = append(s.words, word)
	}
}

// sub takes back a count of p.
func (t *trainer) sub(p pair, count int64) {
	t.stats[t.index.get(p)].count -= count
}

func (t *trainer) enqueue(stat int32) {
	if s := &t.stats[stat]; s.count >= minPair {
		t.queue.push(candidate{s.count, s.pair, stat})
	}
}

// step merges the most frequent pair; it is false when none is left.
func (t *trainer) step() bool {
	for {
		c, ok := t.queue.pop()
		if !ok {
			return false
		}
		if c.count != t.stats[c.stat].count {
			t.enqueue(c.stat)
			continue
		}
		t.merge(c.stat)
		return true
	}
}

// merge replaces a pair by a new token in every word that holds it.
func (t *trainer) merge(stat int32) {
	p, words := t.stats[stat].pair, t.stats[stat].words
	id := int32(256 + len(t.merges))
	t.merges = append(t.merges, p)
	t.fresh = t.fresh[:0]
	for _, w := range words {
		t.rewrite(w, p.left(), p.right(), id)
	}
	t.stats[stat].count = 0
	t.stats[stat].words = nil
	for _, f := range t.fresh {
		t.enqueue(f)
	}
}

// rewrite replaces left right by id in word w, in place, and moves the counts of
// the neighbouring pairs.
func (t *trainer) rewrite(w uint32, left, right, id int32) {
	word := &t.words[w]
	in, out := word.ids, word.ids[:0]
	for i := 0; i < len(in); i++ {
		if in[i] != left || i+1 == len(in) || in[i+1] != right {
			out = append(out, in[i])
			continue
		}
		if n := len(out); n > 0 {
			t.sub(pairOf(out[n-1], left), word.count)
			t.add(pairOf(out[n-1], id), word.count, w)
		}
		if i+2 < len(in) {
			t.sub(pairOf(right, in[i+2]), word.count)
			t.add(pairOf(id, in[i+2]), word.count, w)
		}
		out = append(out, id)
		i++
	}
	word.ids = out
}

// vocabulary is the result: bytes, merges, special tokens.
func (t *trainer) vocabulary(split *splitter, special []string) vocabulary {
	v := vocabulary{split: split}
	for b := range 256 {
		v.tokens = append(v.tokens, []byte{byte(b)})
	}
	for _, p := range t.merges {
		joined := append([]byte(nil), v.tokens[p.left()]...)
		v.merges = append(v.merges, merge{p.left(), p.right(), int32(len(v.tokens))})
		v.tokens = append(v.tokens, append(joined, v.tokens[p.right()]...))
	}
	for _, name := range special {
		v.special = append(v.special, Special{ID: int32(len(v.tokens)), Text: name})
		v.tokens = append(v.tokens, []byte(name))
	}
	return v
}
