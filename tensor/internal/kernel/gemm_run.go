package kernel

import "sync/atomic"

// gemmJob is one product while the workers do it. It walks over blocks of C
// and of K. For each block the workers pack A together, if it needs that, and
// then multiply: a worker opens a group of columns, packs their panels of B
// into its own memory, and goes through the rows; workers that find no group
// left to open help with the rows of an open one.
type gemmJob struct {
	g      Gemm
	e      *engine
	a, b   source
	units  int // of K
	alpha  float64
	shared sharedSpace
	local  []localSpace // of each worker

	directA bool // A is read in place
	directB bool // B is read in place, but for a last panel that is not full

	rows, cols, deep int // size of a block: rows of A, columns of B, units
	step             int // units between two visits of C

	// The current block: rows i0..i1, columns j0..j1, units u0..u1.
	i0, i1, j0, j1, u0, u1 int

	lda    int // stride of packed rows of A in bytes
	groupA int // rows that are claimed together
	groupB int // panels in a group of columns

	groups  int                     // of columns in the block
	parts   int                     // of rows in the block
	opened  atomic.Int32            // groups
	claimed [maxGroups]atomic.Int32 // parts of each group
}

// maxGroups bounds the groups of columns of a block.
const maxGroups = 1024

// Gemm computes g with all workers.
func (c *Context) Gemm(g *Gemm) {
	if c.pool == nil {
		return
	}
	g.check()
	if g.M == 0 || g.N == 0 {
		return
	}
	j := &c.job
	j.begin(g, &c.engines, c.Threads())
	for j.j0 = 0; j.j0 < g.N; j.j0 = j.j1 {
		j.j1 = min(j.j0+j.cols, g.N)
		for j.i0 = 0; j.i0 < g.M; j.i0 = j.i1 {
			j.i1 = min(j.i0+j.rows, g.M)
			c.block(j)
		}
	}
	j.g = Gemm{}
	j.a, j.b = source{}, source{}
}

// block computes the rows i0..i1 and columns j0..j1 of C.
func (c *Context) block(j *gemmJob) {
	for j.u0, j.u1 = 0, 0; j.u0 == 0 || j.u0 < j.units; j.u0 = j.u1 {
		j.u1 = min(j.u0+j.deep, j.units)
		if !j.directA && (j.j0 == 0 || j.rows < j.g.M || j.units > j.deep) {
			c.Run(j.packTasks(), (*packTask)(j))
		}
		c.Run(j.tileTasks(c.Threads()), (*tileTask)(j))
		if j.u1 == j.units {
			return
		}
	}
}

func ceil(a, b int) int { return (a + b - 1) / b }
