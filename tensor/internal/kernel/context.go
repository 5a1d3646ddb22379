package kernel

// Context is what a rank's kernels share: its workers, the choice of kernels
// for this CPU, and memory for packed operands. One goroutine uses it at a
// time, except for the methods that take a worker number, which are for the
// inside of a Task.
type Context struct {
	pool      *Pool
	features  Features
	workspace []byte
}

// WorkspaceBytes is the size of the workspace of a context with that many
// threads.
func WorkspaceBytes(threads int) int {
	return 8<<20 + max(threads, 1)*(1<<20)
}

// NewContext starts a pool of threads workers. The workspace has
// WorkspaceBytes(threads) bytes, is the context's until Close, and is written
// before it is read. Features come from Detect, with fields cleared to forbid
// kernels.
func NewContext(threads int, workspace []byte, f Features) *Context {
	if need := WorkspaceBytes(threads); len(workspace) < need {
		panic("kernel: workspace smaller than WorkspaceBytes")
	}
	return &Context{pool: NewPool(threads), features: f, workspace: workspace}
}

// Close ends the workers.
func (c *Context) Close() { c.pool.Close() }

// Threads is the number of workers.
func (c *Context) Threads() int { return c.pool.Threads() }

// Features are those the context was made with.
func (c *Context) Features() Features { return c.features }

// Run divides the items of t among the workers: see Pool.Run.
func (c *Context) Run(n int, t Task) { c.pool.Run(n, t) }
