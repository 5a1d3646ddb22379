package comm

import (
	"sync"
	"sync/atomic"
)

// Token is the right to compute of one rank. The goroutine that computes holds it; whoever waits for a
// message gives it up, so that another goroutine of the rank may move data or compute meanwhile. Those
// who ask get it in the order of asking.
type Token struct {
	waiting atomic.Int32

	mu      sync.Mutex // guards what follows
	turn    sync.Cond  // serving or open changed
	next    uint64     // ticket of the next who asks
	serving uint64     // ticket of the holder; equal to next when nobody holds the token
	open    bool       // the rank has left: everybody may pass
}

// NewToken makes a token that its maker holds.
func NewToken() *Token {
	t := &Token{next: 1}
	t.turn.L = &t.mu
	return t
}

// Acquire waits for the token.
func (t *Token) Acquire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	ticket := t.next
	t.next++
	for t.serving != ticket && !t.open {
		t.waiting.Add(1)
		t.turn.Wait()
		t.waiting.Add(-1)
	}
}

// Release gives the token up. The caller must hold it.
func (t *Token) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open {
		return
	}
	if t.serving == t.next {
		panic("comm: release of a compute token that nobody holds")
	}
	t.serving++
	t.turn.Broadcast()
}

// Wanted tells whether somebody waits for the token.
func (t *Token) Wanted() bool { return t.waiting.Load() > 0 }

// Yield lets those who wait have the token first. Long computations call it between their parts; it costs
// a nanosecond when nobody waits.
func (t *Token) Yield() {
	if !t.Wanted() {
		return
	}
	t.Release()
	t.Acquire()
}

// Open ends the token: nobody waits for it any more. For engines, when a rank leaves.
func (t *Token) Open() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open = true
	t.turn.Broadcast()
}
