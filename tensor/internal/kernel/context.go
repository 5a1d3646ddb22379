package kernel

import (
	"fmt"
	"unsafe"
)

// Context is what a rank's kernels share: its workers, the choice of kernels
// for this CPU, and memory for packed operands. One goroutine uses it at a
// time, except for the methods that take a worker number, which are for the
// inside of a Task.
type Context struct {
	pool      *Pool // nil for a context without memory
	threads   int
	features  Features
	workspace []byte

	engines engines
	job     gemmJob
}

// WorkspaceBytes is the size of the workspace of a context with that many
// threads.
func WorkspaceBytes(threads int) int {
	return cacheLine + sharedA + sharedAcc +
		max(threads, 1)*(localB+localAcc+localTile)
}

const cacheLine = 64

// NewContext starts a pool of threads workers. The workspace has
// WorkspaceBytes(threads) bytes, is the context's until Close, and is written
// before it is read. Features come from Detect, with fields cleared to forbid
// kernels.
func NewContext(threads int, workspace []byte, f Features) *Context {
	if need := WorkspaceBytes(threads); len(workspace) < need {
		panic(fmt.Sprintf("kernel: workspace of %d bytes; %d threads need %d", len(workspace), threads, need))
	}
	c := &Context{pool: NewPool(threads), threads: max(threads, 1), features: f, workspace: workspace, engines: newEngines(f)}
	c.divide(workspace)
	return c
}

// NewDryContext makes a context that computes nothing: it knows what size buffers of a context with that many threads
// have. Its tasks are not run.
func NewDryContext(threads int, f Features) *Context {
	return &Context{threads: max(threads, 1), features: f, engines: newEngines(f)}
}

// divide gives each use its part of the workspace.
func (c *Context) divide(workspace []byte) {
	p := unsafe.Pointer(unsafe.SliceData(workspace))
	p = unsafe.Add(p, -uintptr(p)&(cacheLine-1))
	take := func(n int) unsafe.Pointer {
		at := p
		p = unsafe.Add(p, n)
		return at
	}
	c.job.shared = sharedSpace{a: take(sharedA), acc: take(sharedAcc)}
	c.job.local = make([]localSpace, c.Threads())
	for i := range c.job.local {
		c.job.local[i] = localSpace{b: take(localB), acc: take(localAcc), tile: take(localTile)}
	}
}

// Close ends the workers.
func (c *Context) Close() {
	if c.pool != nil {
		c.pool.Close()
	}
}

// Threads is the number of workers.
func (c *Context) Threads() int { return c.threads }

// Features are those the context was made with.
func (c *Context) Features() Features { return c.features }

// Run divides the items of t among the workers: see Pool.Run.
func (c *Context) Run(n int, t Task) {
	if c.pool != nil {
		c.pool.Run(n, t)
	}
}
