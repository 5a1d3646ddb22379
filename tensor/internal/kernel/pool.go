package kernel

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// Task is work that a Pool divides: Do is called once for every index.
// A value that is reused between runs keeps Run free of allocation.
type Task interface {
	// Do computes item i on the worker with the given number, 0 to
	// Threads()-1. Two calls with the same worker never overlap, so worker
	// selects scratch memory.
	Do(worker, i int)
}

// Pool is a fixed set of goroutines that share the items of one Task at a time.
//
// Items are claimed one by one, so a worker whose core is taken away delays
// only the item it holds. An idle worker spins for a few microseconds, yielding
// its processor now and then, and then parks; so a pool that has more workers
// than processors is slow only by its switches.
//
// One goroutine calls Run at a time, and never from inside a Task.
type Pool struct {
	// claims is (run number)<<32 | (items not yet claimed). The run number makes
	// a claim by a worker that is late from an earlier run impossible.
	claims atomic.Uint64
	_      [56]byte
	// done counts finished items of this run.
	done atomic.Int64
	_    [56]byte

	// task and items belong to the caller of Run while claims has no items
	// left and done equals items; workers read them only between claiming and
	// finishing an item.
	task  Task
	items int

	running atomic.Bool
	closed  atomic.Bool
	caller  parker
	workers []parker // worker w is workers[w-1]; worker 0 is the caller of Run
	failure atomic.Pointer[TaskPanic]
	exited  sync.WaitGroup
}

// TaskPanic is the value Run panics with when a Task panicked.
type TaskPanic struct {
	Value any    // what Do panicked with
	Stack []byte // the stack of the worker at that point
}

func (p *TaskPanic) Error() string {
	return fmt.Sprintf("kernel: task panicked: %v\n%s", p.Value, p.Stack)
}

// Unwrap gives the panic value where it was an error.
func (p *TaskPanic) Unwrap() error {
	err, _ := p.Value.(error)
	return err
}

// NewPool starts threads-1 goroutines (the caller of Run is the other worker);
// Close ends them. Fewer than one thread counts as one.
func NewPool(threads int) *Pool {
	p := &Pool{workers: make([]parker, max(threads, 1)-1)}
	p.caller.init()
	for i := range p.workers {
		p.workers[i].init()
		p.exited.Add(1)
		go p.work(i + 1)
	}
	return p
}

// Threads is the number of workers, the caller of Run included.
func (p *Pool) Threads() int { return len(p.workers) + 1 }

// Close ends the workers and waits for them. The pool is not used after it.
func (p *Pool) Close() {
	if p.closed.Swap(true) {
		return
	}
	for i := range p.workers {
		p.workers[i].wake()
	}
	p.exited.Wait()
}

// Run calls t.Do(worker, i) once for every i in 0..n-1 and returns when all
// calls have returned. Which worker takes which item depends on timing. When a
// call panics the other items still run, then Run panics with a *TaskPanic.
func (p *Pool) Run(n int, t Task) {
	if n <= 0 {
		return
	}
	if p.running.Swap(true) {
		panic("kernel: Pool.Run called while it runs")
	}
	defer p.running.Store(false)
	p.start(n, t)
	p.drain(0)
	p.await(n)
	p.task = nil
	if f := p.failure.Swap(nil); f != nil {
		panic(f)
	}
}

// start publishes the items and wakes as many parked workers as can have one.
func (p *Pool) start(n int, t Task) {
	if n > 1<<31 {
		panic("kernel: Pool.Run with more than 2^31 items")
	}
	p.task, p.items = t, n
	p.done.Store(0)
	run := p.claims.Load()>>32 + 1
	p.claims.Store(run<<32 | uint64(n))
	for i := range min(len(p.workers), n-1) {
		p.workers[i].wake()
	}
}

// claim takes one item, or reports that none is left.
func (p *Pool) claim() (item int, ok bool) {
	for {
		c := p.claims.Load()
		left := int(uint32(c))
		if left == 0 {
			return 0, false
		}
		if p.claims.CompareAndSwap(c, c-1) {
			return p.items - left, true
		}
	}
}

// drain does items until none is left to claim.
func (p *Pool) drain(worker int) {
	for p.doItems(worker) {
	}
}

// doItems does items until none is left, which returns false, or one panics,
// which is recorded and returns true.
func (p *Pool) doItems(worker int) (more bool) {
	holding := false
	defer func() {
		if !holding {
			return
		}
		more = true
		p.failure.CompareAndSwap(nil, &TaskPanic{Value: recover(), Stack: debug.Stack()})
		p.finish()
	}()
	for {
		item, ok := p.claim()
		if !ok {
			return false
		}
		holding = true
		p.task.Do(worker, item)
		holding = false
		p.finish()
	}
}

// finish counts an item; the last one wakes the caller if it parked.
func (p *Pool) finish() {
	// items is read before the count: after it a new run may begin.
	n := int64(p.items)
	if p.done.Add(1) == n {
		p.caller.wake()
	}
}

// await returns when n items are done.
func (p *Pool) await(n int) {
	for p.done.Load() < int64(n) {
		if spin(func() bool { return p.done.Load() >= int64(n) }) {
			return
		}
		p.caller.park(func() bool { return p.done.Load() >= int64(n) })
	}
}

// work is the life of one worker.
func (p *Pool) work(worker int) {
	defer p.exited.Done()
	ready := func() bool { return uint32(p.claims.Load()) != 0 || p.closed.Load() }
	for {
		if !spin(ready) {
			p.workers[worker-1].park(ready)
		}
		p.drain(worker)
		if p.closed.Load() {
			return
		}
	}
}

// spinRounds bounds how long an idle worker keeps its core: about 30 µs, a few
// times what waking a parked goroutine costs.
const spinRounds = 1000

// spin waits a little for ready to hold, and reports whether it does.
func spin(ready func() bool) bool {
	for round := range spinRounds {
		if ready() {
			return true
		}
		pause()
		if round%64 == 63 {
			runtime.Gosched()
		}
	}
	return ready()
}

// parker lets one goroutine sleep until another wakes it.
type parker struct {
	asleep atomic.Bool
	token  chan struct{}
	_      [48]byte
}

func (k *parker) init() { k.token = make(chan struct{}, 1) }

// park sleeps until wake, unless ready already holds. It may return early.
func (k *parker) park(ready func() bool) {
	k.asleep.Store(true)
	if ready() && k.asleep.CompareAndSwap(true, false) {
		return
	}
	<-k.token
}

// wake ends the sleep of a parked goroutine and costs one load otherwise. The
// state that ready reads is written before.
func (k *parker) wake() {
	if k.asleep.Load() && k.asleep.CompareAndSwap(true, false) {
		k.token <- struct{}{}
	}
}
