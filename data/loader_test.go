package data

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func loader(t rapid.TB, c Corpus, o LoaderOptions) *Loader {
	t.Helper()
	l, err := NewLoader(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// next is the rank's tokens of the next step; it checks the targets.
func next(t rapid.TB, l *Loader) []int32 {
	t.Helper()
	n := l.Rows() * l.opts.Sequence
	tokens, targets := make([]int32, n), make([]int32, n)
	if _, err := l.Next(context.Background(), Batch{Tokens: tokens, Targets: targets}); err != nil {
		t.Fatal(err)
	}
	for i, id := range tokens { // the corpus counts
		if targets[i] != id+1 {
			t.Fatalf("after %d comes %d", id, targets[i])
		}
	}
	return tokens
}

// steps is the tokens of n steps on each of ranks, joined by step.
func steps(t rapid.TB, c Corpus, o LoaderOptions, ranks, n int) [][]int32 {
	t.Helper()
	out := make([][]int32, n)
	for rank := range ranks {
		o.Ranks, o.Rank = ranks, rank
		l := loader(t, c, o)
		for i := range out {
			out[i] = append(out[i], next(t, l)...)
		}
	}
	return out
}

func TestEveryLayoutSeesTheSameSamples(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := numbers(rapid.IntRange(5, 400).Draw(t, "tokens"))
		o := LoaderOptions{
			Sequence:    rapid.IntRange(1, 4).Draw(t, "sequence"),
			GlobalBatch: rapid.IntRange(1, 12).Draw(t, "batch"),
			Seed:        rapid.Uint64().Draw(t, "seed"),
		}
		want := steps(t, c, o, 1, 5)
		ranks := rapid.IntRange(1, o.GlobalBatch).Draw(t, "ranks")
		if diff := cmp.Diff(want, steps(t, c, o, ranks, 5)); diff != "" {
			t.Fatalf("1 rank -, %d ranks +\n%s", ranks, diff)
		}
	})
}

func TestAnEpochSeesEverySampleOnce(t *testing.T) {
	const sequence, samples, batch = 3, 20, 7 // 7 does not divide 20
	l := loader(t, numbers(sequence*samples+2), LoaderOptions{Sequence: sequence, GlobalBatch: batch, Seed: 3})
	var epochs [2][]int32
	for i := range (2*samples + batch - 1) / batch {
		for k, id := range next(t, l) {
			if at := i*batch + k/sequence; k%sequence == 0 && at < 2*samples {
				epochs[at/samples] = append(epochs[at/samples], id/sequence)
			}
		}
	}
	if slices.Equal(epochs[0], epochs[1]) || slices.IsSorted(epochs[0]) {
		t.Errorf("epochs %v and %v", epochs[0], epochs[1])
	}
	for _, e := range epochs {
		slices.Sort(e)
		for i, v := range e {
			if int(v) != i || len(e) != samples {
				t.Fatalf("an epoch has samples %v", e)
			}
		}
	}
	if got := l.State(); got.Epoch != 2 || got.Index != 2 {
		t.Errorf("after 42 samples of 20: %+v", got)
	}
}

func TestSeedsGiveOrders(t *testing.T) {
	c := numbers(1000)
	one := steps(t, c, LoaderOptions{Sequence: 4, GlobalBatch: 8, Seed: 1}, 1, 3)
	if cmp.Equal(one, steps(t, c, LoaderOptions{Sequence: 4, GlobalBatch: 8, Seed: 2}, 1, 3)) {
		t.Error("two seeds give one order")
	}
}

func TestResumeEqualsUninterrupted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := numbers(rapid.IntRange(20, 300).Draw(t, "tokens"))
		o := LoaderOptions{Sequence: 3, GlobalBatch: rapid.IntRange(4, 8).Draw(t, "batch"), Seed: 9}
		before, after := rapid.IntRange(0, 9).Draw(t, "before"), 4
		want := steps(t, c, o, 1, before+after)[before:]

		l := loader(t, c, o)
		if rapid.Bool().Draw(t, "ahead") { // what was read ahead is not used up
			if err := l.Start(t.Context(), 3); err != nil {
				t.Fatal(err)
			}
		}
		for range before {
			next(t, l)
		}
		l.Close()
		ranks := rapid.IntRange(1, 4).Draw(t, "ranks")
		got := make([][]int32, after)
		for rank := range ranks {
			o.Ranks, o.Rank = ranks, rank
			r := loader(t, c, o)
			if err := r.Resume(l.State()); err != nil {
				t.Fatal(err)
			}
			for i := range got {
				got[i] = append(got[i], next(t, r)...)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("uninterrupted -, resumed on %d ranks +\n%s", ranks, diff)
		}
	})
}

func TestResumeErrors(t *testing.T) {
	o := LoaderOptions{Sequence: 3, GlobalBatch: 2, Seed: 9}
	good := loader(t, numbers(100), o).State()
	cases := []struct {
		name   string
		change func(s *State)
		is     error
		want   string
	}{
		{"corpus", func(s *State) { s.Corpus = "memory 99" }, ErrChanged, "data: the corpus changed since the state was saved: memory 99 then, memory 100 now; restore the text and the tokenizer, or start the data anew"},
		{"sequence", func(s *State) { s.Sequence = 4 }, nil, "data: the state counts 33 samples of 4 tokens, this run has 33 of 3; keep the sequence length or start the data anew"},
		{"samples", func(s *State) { s.Samples = 5 }, nil, "data: the state counts 5 samples of 3 tokens, this run has 33 of 3; keep the sequence length or start the data anew"},
		{"seed", func(s *State) { s.Seed = 1 }, nil, "data: the state has seed 1, this run 9; keep the seed or start the data anew"},
		{"index", func(s *State) { s.Index = 33 }, nil, "data: the state is at sample 33 of 33 in epoch 0, which does not exist; it is damaged"},
		{"negative", func(s *State) { s.Epoch = -1 }, nil, "data: the state is at sample 0 of 33 in epoch -1, which does not exist; it is damaged"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			l, s := loader(t, numbers(100), o), good
			c.change(&s)
			err := l.Resume(s)
			if err == nil || err.Error() != c.want || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("error %v\nwant  %s", err, c.want)
			}
			if l.State() != good {
				t.Error("a refused state changes the position")
			}
		})
	}
}

func TestNewLoaderErrors(t *testing.T) {
	cases := []struct {
		name   string
		tokens int
		o      LoaderOptions
		want   string
	}{
		{"too short", 8, LoaderOptions{Sequence: 16, GlobalBatch: 1}, "data: too little text for one sequence: 8 tokens, a sequence of 16 needs 17; add text or use a sequence of at most 7"},
		{"one short", 16, LoaderOptions{Sequence: 16, GlobalBatch: 1}, "data: too little text for one sequence: 16 tokens, a sequence of 16 needs 17; add text or use a sequence of at most 15"},
		{"no tokens", 0, LoaderOptions{Sequence: 16, GlobalBatch: 1}, "data: too little text for one sequence: 0 tokens, a sequence of 16 needs 17; add text"},
		{"no sequence", 8, LoaderOptions{GlobalBatch: 1}, "data: sequence 0, global batch 1; both must be at least 1"},
		{"no batch", 8, LoaderOptions{Sequence: 1}, "data: sequence 1, global batch 0; both must be at least 1"},
		{"rank", 8, LoaderOptions{Sequence: 1, GlobalBatch: 4, Ranks: 2, Rank: 2}, "data: rank 2 of 2; ranks count from 0"},
		{"too many ranks", 8, LoaderOptions{Sequence: 1, GlobalBatch: 2, Ranks: 3}, "data: global batch 2 leaves some of 3 ranks without a sample; use a batch of at least 3 or fewer ranks"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if _, err := NewLoader(numbers(c.tokens), c.o); err == nil || err.Error() != c.want {
				t.Errorf("error %v\nwant  %s", err, c.want)
			}
		})
	}
	if _, err := NewLoader(numbers(17), LoaderOptions{Sequence: 16, GlobalBatch: 1}); err != nil {
		t.Errorf("just enough: %v", err)
	}
}

func TestNextErrors(t *testing.T) {
	l := loader(t, numbers(100), LoaderOptions{Sequence: 5, GlobalBatch: 4, Ranks: 2})
	if _, err := l.Next(t.Context(), Batch{Tokens: make([]int32, 20), Targets: make([]int32, 10)}); err == nil || err.Error() != "data: buffers of 20 and 10 ids; a step has 2 samples of 5" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Next(ctx, Batch{Tokens: make([]int32, 10), Targets: make([]int32, 10)}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := l.Start(t.Context(), 0); err == nil || err.Error() != "data: read 0 steps ahead; use at least 1" {
		t.Error(err)
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	folder := t.TempDir()
	path := writeShard(t, folder, "x", 1<<17, make([]int32, 5000)...)
	ds, err := OpenShards(path, ShardOptions{})
	if err != nil {
		t.Fatal(err)
	}
	cleanup(t, ds)
	x, y := make([]int32, 4*32), make([]int32, 4*32)
	check := func(name string, f func() error) {
		t.Helper()
		if n := testing.AllocsPerRun(100, func() {
			if err := f(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s allocates %v times a step", name, n)
		}
	}
	plain := loader(t, ds.Train, LoaderOptions{Sequence: 32, GlobalBatch: 4})
	check("reading", func() error { _, err := plain.Next(t.Context(), Batch{Tokens: x, Targets: y}); return err })
	ahead := loader(t, ds.Train, LoaderOptions{Sequence: 32, GlobalBatch: 4})
	if err := ahead.Start(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	defer ahead.Close()
	check("reading ahead", func() error { _, err := ahead.Next(t.Context(), Batch{Tokens: x, Targets: y}); return err })
	e, err := NewEvaluation(ds.Train, EvaluationOptions{Sequence: 32, Rows: 4})
	if err != nil {
		t.Fatal(err)
	}
	check("evaluating", func() error {
		if e.at > 100 {
			e.Rewind()
		}
		_, err := e.Next(Batch{Tokens: x, Targets: y})
		return err
	})
}

func TestSliceCoversTheBatch(t *testing.T) {
	for n := 1; n < 20; n++ {
		for ranks := 1; ranks <= n; ranks++ {
			end := 0
			for d := range ranks {
				lo, hi := slice(n, ranks, d)
				if lo != end || hi-lo < n/ranks || hi-lo > (n+ranks-1)/ranks {
					t.Fatalf("rank %d of %d takes %d to %d of %d", d, ranks, lo, hi, n)
				}
				end = hi
			}
			if end != n {
				t.Fatalf("%d ranks take %d of %d", ranks, end, n)
			}
		}
	}
}
