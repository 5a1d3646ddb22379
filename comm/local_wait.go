package comm

import "runtime"

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

// watch counts what a waiting goroutine does between its looks at memory.
type watch struct {
	token  *Token
	looks  int // left before the next yield
	yields int // left before sleeping
}

func (l *Local) watch(how patience, token *Token) watch {
	if how == background {
		return watch{token: token}
	}
	return watch{token, l.looks, yields}
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
	w.looks = moreLooks
	w.yields--
	runtime.Gosched()
	return false
}

// slept is called after a sleep: what was waited for is not there yet, but near.
func (w *watch) slept(how patience) {
	if how == foreground {
		w.yields = yields
	}
}
