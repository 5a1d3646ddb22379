package kernel

// gemmJob is one product while the workers do it. It walks over blocks of C
// (rows, columns) and of K; for each block the workers pack what of A and B
// belongs to it and multiply.
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
	private bool // each worker packs the panels of B that it uses

	rows, cols, deep int // size of a block: rows of A, columns of B, units
	step             int // units between two visits of C

	// The current block: rows i0..i1, columns j0..j1, units u0..u1.
	i0, i1, j0, j1, u0, u1 int

	lda, ldb int // strides of packed rows of A and panels of B, in bytes
	groupA   int // rows per task
	groupB   int // panels per task
	rowTasks int // row groups of the block
	packsB   int // tasks that pack B
	packsA   int // tasks that pack A
}

// Gemm computes g with all workers.
func (c *Context) Gemm(g *Gemm) {
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
		if n := j.packTasks(); n > 0 {
			c.Run(n, (*packTask)(j))
		}
		c.Run(j.tileTasks(), (*tileTask)(j))
		if j.u1 == j.units {
			return
		}
	}
}

func ceil(a, b int) int { return (a + b - 1) / b }
