package commtest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"carve/comm"
	"carve/tensor"

	"pgregory.net/rapid"
)

// Suite says how to make the worlds that the checks use.
type Suite struct {
	// New makes a world of n ranks.
	New func(n int) World
	// Sizes are the world sizes to try; nil is 1 to 5 and 8.
	Sizes []int
	// Limit is how long one world may take before it counts as hung; 0 is a minute.
	Limit time.Duration

	arena *tensor.Arena // of all ranks of a check, so that not every small world takes memory from the system
}

// World is a new world of ranks.
type World struct {
	Endpoints []comm.Endpoint // of the ranks that live in this process
	// Close ends the world after its ranks have left, and reports messages that nobody matched.
	Close func() error
}

func (s Suite) sizes() []int {
	if s.Sizes == nil {
		return []int{1, 2, 3, 4, 5, 8}
	}
	return s.Sizes
}

// several is the sizes of two or more.
func (s Suite) several() (sizes []int) {
	for _, size := range s.sizes() {
		if size > 1 {
			sizes = append(sizes, size)
		}
	}
	return sizes
}

// Check is one part of the suite.
type Check struct {
	Name string
	body func(t rapid.TB, s Suite)
}

// Run runs the check. The arena of a world that hangs is left to its goroutines.
func (c Check) Run(t rapid.TB, s Suite) {
	s.arena = tensor.NewArena(tensor.ArenaOptions{Poison: true})
	c.body(t, s)
	s.arena.Close()
}

// Results are the checks of what operations compute. No world fails in them.
func Results() []Check {
	return []Check{
		{"operations", checkOperations},
		{"started operations", checkStarted},
		{"variable all-to-all", checkAllToAllV},
		{"rank order", checkRankOrder},
		{"identities", checkIdentities},
		{"issue order", checkIssueOrder},
		{"groups are independent", checkIndependence},
		{"messages", checkMessages},
		{"messages cross", checkRing},
		{"overlap", checkOverlap},
		{"listeners", checkListeners},
		{"random programs", checkPrograms},
	}
}

// Failures are the checks of what happens when something is wrong. Their worlds fail.
func Failures() []Check {
	return []Check{
		{"mismatches", checkMismatches},
		{"mismatched messages", checkMismatchedMessages},
		{"invalid arguments", checkInvalid},
		{"failing rank", checkFail},
		{"panicking rank", checkPanic},
		{"leaving rank", checkLeave},
		{"unfinished operations", checkUnfinished},
		{"cancellation", checkCancel},
		{"groups", checkGroups},
	}
}

// Run runs all checks as subtests.
func Run(t *testing.T, s Suite) {
	for _, c := range append(Results(), Failures()...) {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, s) })
	}
}

// Fails runs one check and returns what it complained about; "" when it passed.
func Fails(c Check, s Suite) string {
	v := &verdict{name: c.Name}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(v, s)
	}()
	<-done
	return v.text()
}

// run runs f as every rank of a world of n and returns the world's error.
func (s Suite) run(t rapid.TB, n int, f func(r *rank) error) error {
	t.Helper()
	return s.runContext(context.Background(), t, n, f)
}

func (s Suite) runContext(ctx context.Context, t rapid.TB, n int, f func(r *rank) error) error {
	t.Helper()
	limit := s.Limit
	if limit == 0 {
		limit = time.Minute
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends a world that hangs
	result := make(chan error, 1)
	go func() { result <- runWorld(ctx, s.New(n), s.arena, f) }()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case err := <-result:
		return err
	case <-timer.C:
		stacks := make([]byte, 1<<16)
		t.Fatalf("a world of %d hangs after %v\n%s", n, limit, stacks[:runtime.Stack(stacks, true)])
		return nil
	}
}

// runWorld runs f as every rank of w, and gives the ranks' tensors back when nobody can touch them any more.
func runWorld(ctx context.Context, w World, arena *tensor.Arena, f func(r *rank) error) error {
	ranks := map[int]*rank{}
	for _, e := range w.Endpoints {
		ranks[e.Rank()] = &rank{Endpoint: e, arena: arena}
	}
	err := comm.Run(ctx, w.Endpoints, func(e comm.Endpoint) error { return ranks[e.Rank()].run(f) })
	err = errors.Join(err, w.Close())
	for _, r := range ranks {
		r.free()
	}
	return err
}

// must is run for programs that must not fail.
func (s Suite) must(t rapid.TB, n int, f func(r *rank) error) {
	t.Helper()
	if err := s.run(t, n, f); err != nil {
		t.Fatalf("a world of %d: %v", n, err)
	}
}

// verdict is a test that notes its failure.
type verdict struct {
	name string
	mu   sync.Mutex
	logs []string
	bad  bool
}

func (v *verdict) Helper()                   {}
func (v *verdict) Name() string              { return v.name }
func (v *verdict) Logf(f string, a ...any)   { v.log(fmt.Sprintf(f, a...)) }
func (v *verdict) Log(a ...any)              { v.log(fmt.Sprint(a...)) }
func (v *verdict) Skipf(f string, a ...any)  { v.Fatalf(f, a...) }
func (v *verdict) Skip(a ...any)             { v.Fatal(a...) }
func (v *verdict) SkipNow()                  { v.FailNow() }
func (v *verdict) Errorf(f string, a ...any) { v.log(fmt.Sprintf(f, a...)); v.Fail() }
func (v *verdict) Error(a ...any)            { v.log(fmt.Sprint(a...)); v.Fail() }
func (v *verdict) Fatalf(f string, a ...any) { v.Errorf(f, a...); v.FailNow() }
func (v *verdict) Fatal(a ...any)            { v.Error(a...); v.FailNow() }

func (v *verdict) FailNow() {
	v.Fail()
	runtime.Goexit()
}

func (v *verdict) Fail() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.bad = true
}

func (v *verdict) Failed() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.bad
}

func (v *verdict) log(line string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.logs = append(v.logs, line)
}

func (v *verdict) text() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.bad {
		return ""
	}
	return "failed: " + strings.Join(v.logs, "\n")
}
