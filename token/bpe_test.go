package token

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func readFile(t rapid.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// tokenizers are the implementations, each ready to use.
func tokenizers(t rapid.TB) map[string]Tokenizer {
	sample := readFile(t, "testdata/sample.txt")
	return map[string]Tokenizer{
		"bytes":  Bytes{},
		"llama3": train(t, Llama3, 200, sample),
		"gpt2":   train(t, GPT2, 200, sample),
	}
}

func TestDecodeIsLossless(t *testing.T) {
	for name, tok := range tokenizers(t) {
		rapid.Check(t, func(t *rapid.T) {
			text := []byte(genText().Draw(t, "text"))
			ids := tok.Encode([]int32{-7}, text)
			if ids[0] != -7 {
				t.Fatal("Encode changed what dst held")
			}
			got, err := tok.Decode([]byte("x"), ids[1:])
			if err != nil || !bytes.Equal(got, append([]byte("x"), text...)) {
				t.Fatalf("%s: %q came back as %q, error %v", name, text, got, err)
			}
		})
	}
}

func TestDecodeAnyIDs(t *testing.T) {
	for name, tok := range tokenizers(t) {
		vocab := int32(tok.VocabSize())
		for id := range vocab {
			if _, err := tok.Decode(nil, []int32{id}); err != nil {
				t.Errorf("%s: id %d: %v", name, id, err)
			}
		}
		for _, id := range []int32{-1, vocab, 1 << 30} {
			out, err := tok.Decode([]byte("kept"), []int32{1, id})
			if err == nil || !strings.Contains(err.Error(), "outside the vocabulary") {
				t.Errorf("%s: id %d: error %v", name, id, err)
			}
			if string(out) != "kept" {
				t.Errorf("%s: after an error dst is %q", name, out)
			}
		}
	}
}

func TestTextIsNeverSpecial(t *testing.T) {
	for name, tok := range tokenizers(t) {
		end, ok := tok.EndOfText()
		if !ok || int(end) != tok.VocabSize()-1 {
			t.Errorf("%s: end of text %d, %t", name, end, ok)
		}
		if ids := tok.Encode(nil, []byte("a"+EndOfTextName+"b")); slices.Contains(ids, end) {
			t.Errorf("%s: text encodes to the special token", name)
		}
		if text, _ := tok.Decode(nil, []int32{end}); string(text) != EndOfTextName {
			t.Errorf("%s: end of text decodes to %q", name, text)
		}
	}
}

func TestTrainLearns(t *testing.T) {
	b := train(t, GPT2, 3, "low low low low low lower lower newest newest newest newest newest newest widest widest widest")
	var got []string
	for _, id := range []int{256, 257, 258} {
		got = append(got, string(b.tokens[id]))
	}
	// The dictionary of Sennrich et al. 2016, figure 1, whose third merge is that
	// of "est" with the end of the word, which bytes do not have.
	if diff := cmp.Diff([]string{"es", "est", "lo"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestTrainIsDeterministic(t *testing.T) {
	lines := strings.SplitAfter(readFile(t, "testdata/sample.txt"), "\n")
	whole := count(t, Llama3, lines...)
	want, err := Train(context.Background(), whole, TrainOptions{VocabSize: 320})
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		parts := []*Counter{count(t, Llama3), count(t, Llama3), count(t, Llama3)}
		for _, line := range rapid.Permutation(lines).Draw(t, "lines") {
			parts[rapid.IntRange(0, 2).Draw(t, "part")].Add([]byte(line))
		}
		parts[0].Merge(parts[2])
		parts[0].Merge(parts[1])
		if parts[0].Bytes() != whole.Bytes() || parts[0].Words() != whole.Words() {
			t.Fatalf("%d bytes and %d words, want %d and %d", parts[0].Bytes(), parts[0].Words(), whole.Bytes(), whole.Words())
		}
		got, err := Train(context.Background(), parts[0], TrainOptions{VocabSize: 320})
		if err != nil || got.Hash() != want.Hash() {
			t.Fatalf("another order gives another tokenizer (error %v)", err)
		}
	})
}

func TestTrainOptions(t *testing.T) {
	counts := count(t, Llama3, strings.Repeat("abcd ", 4))
	cases := []struct {
		name string
		opts TrainOptions
		want string // error, or "" with the vocabulary size below
		size int
	}{
		{"no merges", TrainOptions{VocabSize: 257}, "", 257},
		{"text has fewer", TrainOptions{VocabSize: 1000}, "", 261},
		{"no special tokens", TrainOptions{VocabSize: 256, Special: []string{}}, "", 256},
		{"zero", TrainOptions{}, "token: vocabulary size 0; use 257 (256 bytes and 1 special tokens) to 16777216", 0},
		{"too small", TrainOptions{VocabSize: 256}, "token: vocabulary size 256; use 257 (256 bytes and 1 special tokens) to 16777216", 0},
		{"special twice", TrainOptions{VocabSize: 300, Special: []string{"<a>", "<a>"}}, `token: "<a>" is both token 260 and token 261; names must differ`, 0},
		{"special is a token", TrainOptions{VocabSize: 300, Special: []string{"ab"}}, `token: "ab" is both token 256 and token 260; names must differ`, 0},
		{"special is empty", TrainOptions{VocabSize: 300, Special: []string{""}}, `token: token 260 is empty`, 0},
		{"special is not text", TrainOptions{VocabSize: 300, Special: []string{"\xff\xfe"}}, `token: special token "\xff\xfe" is not valid UTF-8`, 0},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b, err := Train(context.Background(), counts, c.opts)
			switch {
			case c.want != "":
				if err == nil || err.Error() != c.want {
					t.Errorf("error %v, want %s", err, c.want)
				}
			case err != nil:
				t.Error(err)
			case b.VocabSize() != c.size:
				t.Errorf("%d tokens, want %d", b.VocabSize(), c.size)
			}
		})
	}
	if _, err := NewCounter(patternCount); err == nil || !strings.Contains(err.Error(), "unknown pattern 3") {
		t.Errorf("unknown pattern: %v", err)
	}
}

func TestTrainStops(t *testing.T) {
	counts := count(t, Llama3, readFile(t, "testdata/sample.txt"))
	ctx, cancel := context.WithCancel(context.Background())
	_, err := Train(ctx, counts, TrainOptions{VocabSize: 600, Progress: func(done, _ int) {
		if done == 64 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "after 128 of") {
		t.Errorf("error %v", err)
	}
}

func TestEncodeConcurrently(t *testing.T) {
	sample := []byte(readFile(t, "testdata/sample.txt"))
	b := train(t, Llama3, 200, string(sample))
	want := b.Encode(nil, sample)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				if !slices.Equal(b.Encode(nil, sample), want) {
					t.Error("concurrent encoding differs")
				}
			}
		})
	}
	wg.Wait()
}

// TestCacheIsBounded encodes more different words than the cache holds.
func TestCacheIsBounded(t *testing.T) {
	b := train(t, GPT2, 50, readFile(t, "testdata/sample.txt"))
	var text []byte
	for i := range cacheWords + 100 {
		text = append(text, ' ', 'a'+byte(i%26), 'a'+byte(i/26%26), 'a'+byte(i/676%26), 'a'+byte(i/17576%26), 'x')
	}
	for i := range cacheLong + 100 {
		text = append(text, " aaaaaaaaaaaaaaaaaaaa"...)
		text = append(text, 'a'+byte(i%26), 'a'+byte(i/26%26), 'a'+byte(i/676%26))
	}
	ids := b.Encode(nil, text)
	if back, err := b.Decode(nil, ids); err != nil || !bytes.Equal(back, text) {
		t.Fatalf("lost text, error %v", err)
	}
	e := b.acquire()
	if e.cache.used > cacheWords || len(e.cache.long) > cacheLong || len(e.spill) > spillCapacity+cacheLongest {
		t.Errorf("cache has %d short words, %d long ones, %d ids", e.cache.used, len(e.cache.long), len(e.spill))
	}
}

func TestEncodeAllocatesNothing(t *testing.T) {
	sample := []byte(readFile(t, "testdata/sample.txt"))
	for name, tok := range tokenizers(t) {
		dst := make([]int32, 0, len(sample))
		back := make([]byte, 0, len(sample))
		ids := tok.Encode(nil, sample)
		allocs := testing.AllocsPerRun(20, func() {
			dst = tok.Encode(dst[:0], sample)
			back, _ = tok.Decode(back[:0], ids)
		})
		if allocs != 0 {
			t.Errorf("%s: %v allocations a text, want 0", name, allocs)
		}
	}
}

func TestStream(t *testing.T) {
	for name, tok := range tokenizers(t) {
		rapid.Check(t, func(t *rapid.T) {
			text := genText().Draw(t, "text")
			s := NewStream(tok)
			var got strings.Builder
			for _, id := range tok.Encode(nil, []byte(text)) {
				part, err := s.Next(id)
				if err != nil {
					t.Fatal(err)
				}
				got.WriteString(part)
			}
			got.WriteString(s.Flush())
			if want := string([]rune(text)); got.String() != want {
				t.Fatalf("%s: streamed %q, want %q", name, got.String(), want)
			}
		})
	}
}

func TestStreamHoldsPartsOfCharacters(t *testing.T) {
	s := NewStream(Bytes{})
	var got []string
	for _, b := range []byte("é👍\xe2\x82x\xf0\x9f") {
		part, err := s.Next(int32(b))
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, part)
	}
	got = append(got, s.Flush(), s.Flush())
	want := []string{"", "é", "", "", "", "👍", "", "", "\ufffd\ufffdx", "", "", "\ufffd\ufffd", ""}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if _, err := s.Next(999); err == nil {
		t.Error("an id outside the vocabulary passes")
	}
}
