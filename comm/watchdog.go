package comm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"carve/comm/flight"
)

// WatchdogOptions say how long ranks may wait for each other, and what is kept of what they did.
type WatchdogOptions struct {
	// Limit is how long a rank may wait for one operation before the world counts as hung; 0 is no limit.
	Limit time.Duration
	// Keep is how many operations of each rank the flight record holds; 0 is 1,000.
	Keep int
}

// Watchdog watches the ranks of one process: what each has called, how far that has come, and who waits for whom. When a
// rank waits longer than the limit it ends the world with a [*HangError] that names the rank to blame.
type Watchdog struct {
	options WatchdogOptions
	began   time.Time
	hang    atomic.Pointer[HangError]

	mu    sync.Mutex // guards ranks; taken before a rank's mutex
	ranks []*watched
}

// HangError is the end of a world in which a rank waited longer than the limit.
type HangError struct {
	Limit  time.Duration
	Hang   flight.Hang
	Record flight.Record // of the moment when it was noticed
}

func (e *HangError) Error() string { return fmt.Sprintf("time limit of %v: %v", e.Limit, e.Hang) }

// NewWatchdog makes a watchdog without ranks.
func NewWatchdog(o WatchdogOptions) *Watchdog {
	if o.Keep == 0 {
		o.Keep = 1000
	}
	return &Watchdog{options: o, began: time.Now()}
}

// Watch wraps the endpoint of a rank. All ranks of the process are wrapped before one of them communicates.
func (w *Watchdog) Watch(e Endpoint) Endpoint {
	r := &watched{Endpoint: e, dog: w, ring: make([]watchedOp, w.options.Keep)}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ranks = append(w.ranks, r)
	slices.SortFunc(w.ranks, func(a, b *watched) int { return a.Rank() - b.Rank() })
	return r
}

// now is nanoseconds since the watchdog was made.
func (w *Watchdog) now() int64 { return int64(time.Since(w.began)) }

// Run watches until ctx ends or the world hangs. It looks eight times in each limit, and twice a second at least.
func (w *Watchdog) Run(ctx context.Context) {
	if w.options.Limit <= 0 {
		return
	}
	period := min(max(w.options.Limit/8, time.Millisecond), time.Second/2)
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	last, floor := w.now(), int64(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		now := w.now()
		if now-last > int64(2*period+time.Second) {
			floor = now // the whole process stood still; that is nobody's fault
		}
		last = now
		if w.overdue(now, floor) {
			w.bark()
			return
		}
	}
}

// overdue tells whether a rank has waited too long; what it waited before floor does not count.
func (w *Watchdog) overdue(now, floor int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.ranks {
		if since, waits := r.waitsSince(); waits && now-max(since, floor) > int64(w.options.Limit) {
			return true
		}
	}
	return false
}

// bark ends the world because of the rank that holds the others up.
func (w *Watchdog) bark() {
	e := &HangError{Limit: w.options.Limit, Record: w.snapshot(Nobody, "")}
	e.Hang, _ = flight.Diagnose(e.Record)
	e.Record.Blamed, e.Record.Cause = e.Hang.Culprit, e.Error()
	w.hang.Store(e)
	w.mu.Lock()
	ranks := w.ranks
	w.mu.Unlock()
	for _, r := range ranks {
		if r.Rank() == e.Hang.Culprit {
			r.Fail(e)
			return
		}
	}
	ranks[0].Cancel(e) // the culprit lives elsewhere
}

// Record is the flight record: of the moment when the world hung, or else of now. cause is why it is taken; when that
// is a [*Failure] the record blames its rank.
func (w *Watchdog) Record(cause error) flight.Record {
	if e := w.hang.Load(); e != nil {
		return e.Record
	}
	blamed, text := Nobody, ""
	if failure, ok := errors.AsType[*Failure](cause); ok {
		blamed = failure.Rank
	}
	if cause != nil {
		text = cause.Error()
	}
	return w.snapshot(blamed, text)
}

// snapshot copies what every rank did.
func (w *Watchdog) snapshot(blamed int, cause string) flight.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := flight.Record{
		Version: flight.Version, Cause: cause, Blamed: blamed, Limit: int64(w.options.Limit), Taken: w.now(),
		Ranks: make([]flight.Rank, len(w.ranks)),
	}
	for i, rank := range w.ranks {
		r.Ranks[i] = rank.snapshot()
	}
	return r
}
