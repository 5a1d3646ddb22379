package comm

import (
	"runtime"
	"sync/atomic"
)

// patience is how a member waits.
type patience uint8

const (
	// foreground: the rank has nothing else to do. The goroutine holds the token. Look often before sleeping.
	foreground patience = iota
	// background: another goroutine of the rank computes. Sleep at once.
	background
)

const (
	// firstLooks is how often a waiting goroutine looks before it first lets others run: half a microsecond, about
	// what a meeting of ranks takes that arrive together. Longer would be in the way of another rank that Go
	// runs on the same processor.
	firstLooks = 300
	// moreLooks is the same for each time after that, and for ranks that share processors.
	moreLooks = 50
	// yields is how often it lets others run before it sleeps: ten to twenty microseconds, as long as falling
	// asleep and being woken take.
	yields = 50
)

const (
	// spreadLooks is how often a rank looks that wants another one off its processor: some hundred microseconds, in which an idle thread wakes
	// and takes the other's goroutine. Where the system lets that thread wait, it takes longer: up to longestSpread times.
	spreadLooks, longestSpread = 60_000, 16
	// spreadLeast and spreadMost are how many yields in a row must have helped before a rank tries that: at first, and when
	// it did no good again and again.
	spreadLeast, spreadMost = 16, 1 << 14
)

// sharing is what a rank knows of who runs on its processor. Go puts a goroutine where it became ready, and two that only
// yield to each other stay on one processor while another is idle: no thread sleeps long enough in the queue to be taken. When
// yielding is what brings the others on, time after time, a rank keeps its processor once for long enough that an idle one takes
// them.
type sharing struct {
	helped atomic.Int32 // waits in a row that a yield ended
	tries  atomic.Int32 // that did no good, in a row
}

// shared counts a wait that a yield ended.
func (s *sharing) shared() { s.helped.Add(1) }

// apart notes that the others ran while the rank kept its processor.
func (s *sharing) apart() {
	if s.helped.Load()|s.tries.Load() != 0 { // else it may stay in the cache
		s.helped.Store(0)
		s.tries.Store(0)
	}
}

// due is how often the rank should look now without giving its processor up; 0 for not at all. If it does no good, later tries are longer and
// come more seldom: they cost an eighth of the time at most.
func (s *sharing) due() (looks int) {
	tries := s.tries.Load()
	if int(s.helped.Load()) < min(spreadLeast<<tries, spreadMost) {
		return 0
	}
	s.helped.Store(0)
	s.tries.Store(min(tries+1, 16))
	return spreadLooks * min(1<<tries, longestSpread)
}

// watch counts what a waiting goroutine does between its looks at memory.
type watch struct {
	token   *Token
	sharing *sharing // nil where ranks must share processors
	first   int      // looks before the first yield
	looks   int      // left before the next yield
	yields  int      // left before sleeping
}

func (l *Local) watch(how patience, e *localEndpoint) watch {
	if how == background {
		return watch{token: e.token}
	}
	w := watch{e.token, &e.sharing, l.looks, l.looks, yields}
	if !l.roomy {
		w.sharing = nil
	}
	return w
}

// found is called when what was waited for is there, and nobody slept.
func (w *watch) found() {
	switch {
	case w.sharing == nil || w.looks == w.first: // it was there before: that tells nothing
	case w.yields == yields:
		w.sharing.apart()
	case w.looks == moreLooks: // at the first look after a yield
		w.sharing.shared()
	}
}

// tired does what comes next after a look that was in vain: nothing, letting others run, or telling the caller to sleep.
// A goroutine that keeps the token from another does not stay awake.
func (w *watch) tired() bool {
	if w.looks > 0 {
		w.looks--
		return false
	}
	if w.yields == 0 || w.token.Wanted() {
		return true
	}
	if w.sharing != nil && w.yields == yields {
		if w.looks = w.sharing.due(); w.looks > 0 {
			w.sharing = nil
			return false
		}
	}
	w.looks = moreLooks
	w.yields--
	runtime.Gosched()
	return false
}

// slept is called after a sleep: what was waited for is not there yet, but near.
func (w *watch) slept(how patience) {
	if how == foreground {
		w.yields, w.sharing = yields, nil
	}
}
