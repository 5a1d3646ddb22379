package data

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	if _, err := l.Next(context.Background(), tokens, targets); err != nil {
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

func TestReadingAheadEqualsReading(t *testing.T) {
	c := numbers(500)
	o := LoaderOptions{Sequence: 5, GlobalBatch: 6, Ranks: 2, Rank: 1, Seed: 4}
	plain := loader(t, c, o)
	for depth := 1; depth <= 4; depth++ {
		plain.Close()
		plain = loader(t, c, o)
		ahead := loader(t, c, o)
		if err := ahead.Start(t.Context(), depth); err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			if want, got := next(t, plain), next(t, ahead); !slices.Equal(want, got) {
				t.Fatalf("depth %d, step %d: %d, want %d", depth, i, got, want)
			}
			if plain.State() != ahead.State() {
				t.Fatalf("depth %d, step %d: at %+v, want %+v", depth, i, ahead.State(), plain.State())
			}
		}
		ahead.Close()
	}
}

// TestLoaderStops ends the goroutine in every way; synctest fails if one is left.
func TestLoaderStops(t *testing.T) {
	o := LoaderOptions{Sequence: 5, GlobalBatch: 2, Seed: 4}
	buffer := func() ([]int32, []int32) { return make([]int32, 10), make([]int32, 10) }
	cases := []struct {
		name string
		run  func(t *testing.T, l *Loader, c *memoryCorpus)
	}{
		{"close at once", func(*testing.T, *Loader, *memoryCorpus) {}},
		{"close with full buffers", func(*testing.T, *Loader, *memoryCorpus) { synctest.Wait() }},
		{"close twice", func(_ *testing.T, l *Loader, _ *memoryCorpus) { l.Close() }},
		{"use after close", func(t *testing.T, l *Loader, _ *memoryCorpus) {
			l.Close()
			x, y := buffer()
			if _, err := l.Next(t.Context(), x, y); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
			if err := l.Start(t.Context(), 1); !errors.Is(err, ErrClosed) {
				t.Error(err)
			}
		}},
		{"start twice", func(t *testing.T, l *Loader, _ *memoryCorpus) {
			if err := l.Start(t.Context(), 1); err == nil {
				t.Error("no error")
			}
			if err := l.Resume(l.State()); err == nil {
				t.Error("resumed after the start")
			}
		}},
		{"Next is cancelled", func(t *testing.T, l *Loader, c *memoryCorpus) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(errors.New("rank 1 failed")) })
			x, y := buffer()
			before := l.State()
			if _, err := l.Next(ctx, x, y); err == nil || !strings.Contains(err.Error(), "waiting for a step: rank 1 failed") {
				t.Error(err)
			}
			if l.State() != before {
				t.Error("the position moved")
			}
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				corpus := numbers(100)
				if c.name == "Next is cancelled" {
					corpus.gate = make(chan struct{})
				}
				l := loader(t, corpus, o)
				if err := l.Start(t.Context(), 3); err != nil {
					t.Fatal(err)
				}
				c.run(t, l, corpus)
				if corpus.gate != nil {
					close(corpus.gate)
				}
				l.Close()
			})
		})
	}
}

// TestReadingAheadFails returns what was read before the error, then the error,
// as often as it is asked.
func TestReadingAheadFails(t *testing.T) {
	c := numbers(100)
	c.err = errors.New("disk on fire")
	l := loader(t, c, LoaderOptions{Sequence: 5, GlobalBatch: 2})
	if err := l.Start(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for range 3 {
		if _, err := l.Next(t.Context(), make([]int32, 10), make([]int32, 10)); !errors.Is(err, c.err) {
			t.Error(err)
		}
	}
	plain := loader(t, c, LoaderOptions{Sequence: 5, GlobalBatch: 2})
	if _, err := plain.Next(t.Context(), make([]int32, 10), make([]int32, 10)); !errors.Is(err, c.err) || plain.State().Index != 0 {
		t.Errorf("%v, at %+v", err, plain.State())
	}
}

func TestLoaderEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		l := loader(t, numbers(100), LoaderOptions{Sequence: 5, GlobalBatch: 2})
		if err := l.Start(ctx, 2); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		next(t, l) // two steps were read
		next(t, l)
		if _, err := l.Next(t.Context(), make([]int32, 10), make([]int32, 10)); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "reading ahead") {
			t.Error(err)
		}
		l.Close()
	})
}

func TestNextErrors(t *testing.T) {
	l := loader(t, numbers(100), LoaderOptions{Sequence: 5, GlobalBatch: 4, Ranks: 2})
	if _, err := l.Next(t.Context(), make([]int32, 20), make([]int32, 10)); err == nil || err.Error() != "data: buffers of 20 and 10 ids; a step has 2 samples of 5" {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Next(ctx, make([]int32, 10), make([]int32, 10)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := l.Start(t.Context(), 0); err == nil || err.Error() != "data: read 0 steps ahead; use at least 1" {
		t.Error(err)
	}
}

// TestWaitIsMeasured holds data back for known times on a fake clock.
func TestWaitIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := numbers(100)
		c.gate = make(chan struct{})
		l := loader(t, c, LoaderOptions{Sequence: 5, GlobalBatch: 1})
		if err := l.Start(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		x, y := make([]int32, 5), make([]int32, 5)
		var waits []time.Duration
		for _, late := range []time.Duration{3 * time.Second, 0, 2 * time.Second} {
			go func() {
				<-time.After(late) // of the bubble's clock
				c.gate <- struct{}{}
			}()
			if late == 0 {
				synctest.Wait() // the step is ready before it is asked for
			}
			wait, err := l.Next(t.Context(), x, y)
			if err != nil {
				t.Fatal(err)
			}
			waits = append(waits, wait)
		}
		if diff := cmp.Diff([]time.Duration{3 * time.Second, 0, 2 * time.Second}, waits); diff != "" || l.Waited() != 5*time.Second {
			t.Errorf("waited %v in all\n%s", l.Waited(), diff)
		}
		close(c.gate)
		l.Close()
	})
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
	check("reading", func() error { _, err := plain.Next(t.Context(), x, y); return err })
	ahead := loader(t, ds.Train, LoaderOptions{Sequence: 32, GlobalBatch: 4})
	if err := ahead.Start(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	defer ahead.Close()
	check("reading ahead", func() error { _, err := ahead.Next(t.Context(), x, y); return err })
	e, err := NewEvaluation(ds.Train, EvaluationOptions{Sequence: 32, Rows: 4})
	if err != nil {
		t.Fatal(err)
	}
	check("evaluating", func() error {
		if e.at > 100 {
			e.Rewind()
		}
		_, err := e.Next(x, y)
		return err
	})
}

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
	if _, err := l.Next(t.Context(), make([]int32, 16), make([]int32, 16)); err != nil || s.Vocab() != 10 || s.Tokens() < 1<<40 {
		t.Error(err)
	}
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
