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
)

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
			if _, err := l.Next(t.Context(), Batch{Tokens: x, Targets: y}); !errors.Is(err, ErrClosed) {
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
			if _, err := l.Next(ctx, Batch{Tokens: x, Targets: y}); err == nil || !strings.Contains(err.Error(), "waiting for a step: rank 1 failed") {
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
		if _, err := l.Next(t.Context(), Batch{Tokens: make([]int32, 10), Targets: make([]int32, 10)}); !errors.Is(err, c.err) {
			t.Error(err)
		}
	}
	plain := loader(t, c, LoaderOptions{Sequence: 5, GlobalBatch: 2})
	if _, err := plain.Next(t.Context(), Batch{Tokens: make([]int32, 10), Targets: make([]int32, 10)}); !errors.Is(err, c.err) || plain.State().Index != 0 {
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
		if _, err := l.Next(t.Context(), Batch{Tokens: make([]int32, 10), Targets: make([]int32, 10)}); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "reading ahead") {
			t.Error(err)
		}
		l.Close()
	})
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
			wait, err := l.Next(t.Context(), Batch{Tokens: x, Targets: y})
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
