package comm

import (
	"fmt"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"

	"carve/comm/flight"
)

// watched is a rank whose operations are recorded.
type watched struct {
	Endpoint
	dog *Watchdog

	mu       sync.Mutex  // guards what follows
	ring     []watchedOp // of operations by ticket; grows when more are unfinished at once
	issued   uint64      // tickets given
	carriers []*watchedCarrier
	left     bool
}

// watchedOp is an operation of the record. Its slot is used again only after it has ended.
type watchedOp struct {
	carrier *watchedCarrier
	ticket  uint64
	sig     Signature
	seq     int
	peer    int // of a message: a position; else Nobody
	bytes   int
	issued  int64
	since   int64 // when the first began to wait for it; 0 for nobody
	ended   int64
	waiters int // goroutines that wait for it; one that got an error counts for ever
	over    bool
	callers [8]uintptr

	// Of a started operation:
	listener Listener // the caller's
	cookie   uint64
	work     Work
}

// Group implements [Endpoint].
func (r *watched) Group(name string, ranks []int) (*Group, error) {
	g, err := r.Endpoint.Group(name, ranks)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.carriers {
		if c.group.Name() == name {
			return c.handle, nil
		}
	}
	c := &watchedCarrier{rank: r, group: g, index: len(r.carriers), sent: make([]int, g.Size()), received: make([]int, g.Size())}
	r.carriers = append(r.carriers, c)
	c.handle = g.With(c)
	return c.handle, nil
}

// Close implements [Endpoint].
func (r *watched) Close() error {
	r.mu.Lock()
	r.left = true
	r.mu.Unlock()
	return r.Endpoint.Close()
}

// slot is where the operation of a ticket is. The caller holds mu.
func (r *watched) slot(ticket uint64) *watchedOp { return &r.ring[ticket%uint64(len(r.ring))] }

// live is the operation of a ticket, or nil when the record no longer holds it; then it has ended. The caller holds mu.
func (r *watched) live(ticket uint64) *watchedOp {
	if o := r.slot(ticket); o.carrier != nil && o.ticket == ticket {
		return o
	}
	return nil
}

// next is the slot of a new operation. The caller holds mu.
func (r *watched) next() (ticket uint64, o *watchedOp) {
	if o := r.slot(r.issued); o.carrier != nil && !o.over {
		n := uint64(len(r.ring))
		grown := make([]watchedOp, 2*n)
		for i := r.issued - min(r.issued, n); i < r.issued; i++ {
			grown[i%(2*n)] = r.ring[i%n]
		}
		r.ring = grown
	}
	ticket = r.issued
	r.issued++
	return ticket, r.slot(ticket)
}

// waitsSince is since when the rank waits for the operation that it has waited for longest without any progress of
// that operation's group.
func (r *watched) waitsSince() (since int64, waits bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.ring {
		o := &r.ring[i]
		if o.carrier == nil || o.over || o.waiters == 0 {
			continue
		}
		if from := max(o.since, o.carrier.progress); !waits || from < since {
			since, waits = from, true
		}
	}
	return since, waits
}

// snapshot copies what the rank did.
func (r *watched) snapshot() flight.Rank {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := flight.Rank{Rank: r.Rank(), Left: r.left, Issued: int(r.issued)}
	for _, c := range r.carriers {
		k.Groups = append(k.Groups, flight.Group{
			Name: c.group.Name(), Ranks: c.group.Ranks(), Collectives: c.collectives,
			Sent: slices.Clone(c.sent), Received: slices.Clone(c.received),
		})
	}
	for t := r.issued - min(r.issued, uint64(len(r.ring))); t < r.issued; t++ {
		if o := r.live(t); o != nil {
			k.Operations = append(k.Operations, o.snapshot())
		}
	}
	return k
}

// snapshot copies an operation.
func (o *watchedOp) snapshot() flight.Operation {
	f := flight.Operation{
		Group: o.carrier.index, Op: strings.ReplaceAll(o.sig.Op.String(), "-", "_"), What: o.sig.String(),
		Seq: o.seq, Peer: flight.Nobody, Bytes: o.bytes,
		State: flight.Started, Issued: o.issued, Since: o.since, Ended: o.ended, Site: site(o.callers[:]),
	}
	if o.peer != Nobody {
		f.Peer = o.carrier.group.ranks[o.peer]
	}
	switch {
	case o.over:
		f.State = flight.Finished
	case o.waiters > 0:
		f.State = flight.Waiting
	}
	return f
}

// site names the first caller outside this package: "nn.(*Row).Forward (nn/linear.go:88)".
func site(callers []uintptr) string {
	if n := slices.Index(callers, 0); n >= 0 {
		callers = callers[:n]
	}
	frames := runtime.CallersFrames(callers)
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "carve/comm.") {
			file := path.Join(path.Base(path.Dir(f.File)), path.Base(f.File))
			return fmt.Sprintf("%s (%s:%d)", path.Base(f.Function), file, f.Line)
		}
		if !more {
			return ""
		}
	}
}
