package kernel

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// counter counts how often each item ran, and refuses overlapping calls of one
// worker.
type counter struct {
	items []atomic.Int32
	busy  []atomic.Bool
	spin  int
	sum   atomic.Int64
}

func (c *counter) Do(worker, i int) {
	if c.busy[worker].Swap(true) {
		panic("overlapping worker")
	}
	for k := range c.spin {
		c.sum.Add(int64(k))
	}
	c.items[i].Add(1)
	c.busy[worker].Store(false)
}

func newCounter(threads, items int) *counter {
	return &counter{items: make([]atomic.Int32, items), busy: make([]atomic.Bool, threads)}
}

func (c *counter) check(t rapid.TB) {
	t.Helper()
	for i := range c.items {
		if got := c.items[i].Swap(0); got != 1 {
			t.Fatalf("item %d ran %d times", i, got)
		}
	}
}

func TestPoolRunsEveryItemOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		threads := rapid.IntRange(1, 9).Draw(t, "threads")
		p := NewPool(threads)
		defer p.Close()
		if p.Threads() != threads {
			t.Fatalf("Threads() = %d, want %d", p.Threads(), threads)
		}
		for range rapid.IntRange(1, 20).Draw(t, "runs") {
			c := newCounter(threads, rapid.IntRange(0, 200).Draw(t, "items"))
			c.spin = rapid.IntRange(0, 50).Draw(t, "spin")
			p.Run(len(c.items), c)
			c.check(t)
		}
	})
}

// A pool with more workers than processors must finish: spinning workers yield.
func TestPoolOversubscribed(t *testing.T) {
	old := runtime.GOMAXPROCS(1)
	defer runtime.GOMAXPROCS(old)
	p := NewPool(8)
	defer p.Close()
	c := newCounter(8, 64)
	for range 200 {
		p.Run(64, c)
		c.check(t)
	}
}

var errPlanted = errors.New("planted")

type failing struct{ at int }

func (f failing) Do(_, i int) {
	if i == f.at {
		panic(errPlanted)
	}
}

func TestPoolRaisesPanicInCaller(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	for i := range 50 {
		func() {
			defer func() {
				f, ok := recover().(*TaskPanic)
				if !ok || !errors.Is(f, errPlanted) {
					t.Fatalf("recovered %v, want a TaskPanic of %v", f, errPlanted)
				}
			}()
			p.Run(50, failing{at: i})
			t.Fatal("Run returned")
		}()
	}
	c := newCounter(3, 10)
	p.Run(10, c) // the pool is still whole
	c.check(t)
}

type nested struct{ p *Pool }

func (n nested) Do(_, _ int) { n.p.Run(1, n) }

func TestPoolRefusesNestedRun(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	defer func() {
		if recover() == nil {
			t.Fatal("nested Run went through")
		}
	}()
	p.Run(2, nested{p})
}

func TestPoolRunAllocatesNothing(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	c := newCounter(2, 16)
	if n := testing.AllocsPerRun(100, func() { p.Run(16, c) }); n != 0 {
		t.Fatalf("%v allocations per Run", n)
	}
}

func TestPoolCloseEndsWorkers(t *testing.T) {
	before := runtime.NumGoroutine()
	p := NewPool(6)
	p.Run(6, newCounter(6, 6))
	p.Close()
	p.Close()
	if now := runtime.NumGoroutine(); now > before {
		t.Fatalf("%d goroutines left, %d before", now, before)
	}
}

func BenchmarkPool(b *testing.B) {
	p := NewPool(runtime.GOMAXPROCS(0))
	defer p.Close()
	c := newCounter(p.Threads(), 16)
	for b.Loop() {
		p.Run(16, c)
	}
}
