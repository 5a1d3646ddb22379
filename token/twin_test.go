package token

import (
	"context"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The dumb twins: training and encoding as the definition reads, with no index,
// heap or cache.

// twinTrain recounts every pair of every word for every merge.
func twinTrain(counts *Counter, merges int) (found []pair) {
	type twinWord struct {
		ids   []int32
		count int64
	}
	var all []twinWord
	for _, w := range counts.sorted() {
		all = append(all, twinWord{byteIDs(w.text), w.count})
	}
	for len(found) < merges {
		pairs := map[pair]int64{}
		for _, w := range all {
			for i := 1; i < len(w.ids); i++ {
				pairs[pairOf(w.ids[i-1], w.ids[i])] += w.count
			}
		}
		best, most := pair(0), int64(minPair-1)
		for p, n := range pairs {
			if n > most || n == most && n >= minPair && p < best {
				best, most = p, n
			}
		}
		if most < minPair {
			return found
		}
		for i := range all {
			all[i].ids = twinJoin(all[i].ids, best, int32(256+len(found)))
		}
		found = append(found, best)
	}
	return found
}

// twinJoin replaces every p in ids, from the left.
func twinJoin(ids []int32, p pair, id int32) (out []int32) {
	for i := 0; i < len(ids); i++ {
		if i+1 < len(ids) && pairOf(ids[i], ids[i+1]) == p {
			out = append(out, id)
			i++
			continue
		}
		out = append(out, ids[i])
	}
	return out
}

func byteIDs(text []byte) (ids []int32) {
	for _, b := range text {
		ids = append(ids, int32(b))
	}
	return ids
}

// twinEncode joins the leftmost pair of lowest rank, again and again.
func twinEncode(b *BPE, text []byte) (out []int32) {
	for i := 0; i < len(text); {
		end := b.split.next(text, i)
		var ids []int32
		for _, c := range text[i:end] {
			ids = append(ids, b.byteID[c])
		}
		for {
			rank, at := len(b.merges), -1
			for k := 1; k < len(ids); k++ {
				r := slices.IndexFunc(b.merges, func(m merge) bool { return m.left == ids[k-1] && m.right == ids[k] })
				if r >= 0 && r < rank {
					rank, at = r, k-1
				}
			}
			if at < 0 {
				break
			}
			ids = slices.Replace(ids, at, at+2, b.merges[rank].joined)
		}
		out = append(out, ids...)
		i = end
	}
	return out
}

// count counts texts under p.
func count(t rapid.TB, p Pattern, texts ...string) *Counter {
	t.Helper()
	c, err := NewCounter(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range texts {
		c.Add([]byte(text))
	}
	return c
}

// train learns up to merges merges from texts.
func train(t rapid.TB, p Pattern, merges int, texts ...string) *BPE {
	t.Helper()
	b, err := Train(context.Background(), count(t, p, texts...), TrainOptions{VocabSize: 257 + merges})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTrainEqualsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		// Few letters and long runs make ties, overlaps and repeated pairs.
		texts := rapid.SliceOfN(rapid.StringMatching(`([ab]{1,9}| |c|aaaa|abab|[0-9]{1,3}){0,12}`), 1, 6).Draw(t, "texts")
		merges := rapid.IntRange(0, 24).Draw(t, "merges")
		counts := count(t, GPT2, texts...)
		want := twinTrain(counts, merges)
		b, err := Train(context.Background(), counts, TrainOptions{VocabSize: 257 + merges})
		if err != nil {
			t.Fatal(err)
		}
		var got []pair
		for _, m := range b.merges {
			got = append(got, pairOf(m.left, m.right))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("merges %x, the twin's %x", got, want)
		}
	})
}

func TestEncodeEqualsTwin(t *testing.T) {
	corpus := readFile(t, "testdata/sample.txt")
	for p := range patternCount {
		b := train(t, p, 300, corpus)
		rapid.Check(t, func(t *rapid.T) {
			at := rapid.IntRange(0, len(corpus)-1).Draw(t, "at")
			n := rapid.IntRange(0, min(200, len(corpus)-at)).Draw(t, "n")
			text := []byte(corpus[at:at+n] + genText().Draw(t, "odd"))
			if got, want := b.Encode(nil, text), twinEncode(b, text); !slices.Equal(got, want) {
				t.Fatalf("%v: %q: %d, the twin's %d", p, text, got, want)
			}
		})
	}
}

// TestLongWordsEqualTwin compares words around and beyond the limits at which
// the cache and the algorithm change.
func TestLongWordsEqualTwin(t *testing.T) {
	b := train(t, GPT2, 60, "aaaaaaaaaaaaaaaaabaaaaaaab abababababaab aabaabbaabb bbbbbbbbb aabbaabbab")
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 14, 15, 16, 17, 63, 64, 65, 66, 127, 128, 129, 200}).Draw(t, "n")
		word := rapid.SliceOfN(rapid.SampledFrom([]byte("aab")), n, n).Draw(t, "word")
		want := twinEncode(b, word)
		for range 2 { // the second time from the cache
			if got := b.Encode(nil, word); !slices.Equal(got, want) {
				t.Fatalf("%q: %d, the twin's %d", word, got, want)
			}
		}
	})
}

// TestTwinFaultIsSeen plants a swapped rank.
func TestTwinFaultIsSeen(t *testing.T) {
	b := train(t, GPT2, 60, "aaaaaaaaabaaaaaaab abababababaab aabaabbaabb")
	word := []byte("abaababaabaa")
	want := twinEncode(b, word)
	for k := range b.rank.slots {
		switch s := &b.rank.slots[k]; s.value {
		case 1:
			s.value = 3
		case 3:
			s.value = 1
		}
	}
	if slices.Equal(b.Encode(nil, word), want) {
		t.Error("the comparison misses swapped ranks")
	}
}
