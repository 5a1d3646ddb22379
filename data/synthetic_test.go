package data

import (
	"errors"
	"slices"
	"testing"
)

func TestSynthetic(t *testing.T) {
	for _, vocab := range []int{0, maxVocab + 1} {
		if _, err := NewSynthetic(vocab, 1); err == nil {
			t.Errorf("a vocabulary of %d passes", vocab)
		}
	}
	s, err := NewSynthetic(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	var count [10]int
	a, b := make([]int32, 2001), make([]int32, 2001)
	for i := range int64(5) {
		if err := errors.Join(s.Read(a, i), s.Read(b, i)); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(a, b) {
			t.Fatal("a sample is not repeatable")
		}
		for _, id := range a {
			count[id]++
		}
	}
	for id, c := range count {
		if c < 850 || c > 1150 { // five standard deviations of 30 around 1,000
			t.Errorf("id %d occurs %d times of 10,005", id, c)
		}
	}
	other, err := NewSynthetic(10, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Read(b, 4); err != nil || slices.Equal(a, b) || other.Identity() == s.Identity() {
		t.Error("another seed gives the same tokens")
	}
	l := loader(t, s, LoaderOptions{Sequence: 8, GlobalBatch: 2})
	if _, err := l.Next(t.Context(), Batch{Tokens: make([]int32, 16), Targets: make([]int32, 16)}); err != nil || s.Vocab() != 10 || s.Tokens() < 1<<40 {
		t.Error(err)
	}
}
