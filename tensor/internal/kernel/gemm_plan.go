package kernel

import "unsafe"

// Sizes of the memory of a context, in bytes: what all workers share, and what
// each has.
const (
	sharedA   = 4 << 20
	sharedAcc = 1 << 20
	localB    = 1 << 20
	localAcc  = 64 << 10
	localTile = 8 << 10
)

type sharedSpace struct{ a, acc unsafe.Pointer }

type localSpace struct{ b, acc, tile unsafe.Pointer }

// begin plans the product.
func (j *gemmJob) begin(g *Gemm, s *engines, threads int) {
	e := s.of(g)
	j.g, j.e, j.alpha = *g, e, scale(g.Alpha)
	j.units = ceil(g.K, e.per)
	j.a = e.source(&g.A, g.K, g.A.Trans)
	j.b = e.source(&g.B, g.K, !g.B.Trans)
	j.directA, j.directB = j.inPlaceA(), j.inPlaceB()
	j.step = even(max(j.units, 1), e.depth, 1)
	j.deep = min(max(j.units, 1), 2*j.step)
	j.lda = oddLines(j.deep * e.unit)
	j.group(threads)
	j.size()
}

// inPlaceA says whether tiles read A where it lies. Rows at a multiple of a page
// from each other share few sets of the first-level cache and drive each other
// out; across K every row is used up at once, so that does no harm.
func (j *gemmJob) inPlaceA() bool {
	switch {
	case j.a.form == formExpand, j.a.form == formPairs && (j.a.kMajor || j.g.K%2 == 1):
		return false
	default:
		return j.a.kMajor || j.a.ld%4096 != 0 || j.g.N <= 2*j.e.width
	}
}

// inPlaceB says whether tiles read B where it lies: a panel is then read with
// the stride of B, which must spread over the sets of the second-level cache
// unless it is used only once or twice.
func (j *gemmJob) inPlaceB() bool {
	return j.units > 0 && j.b.kMajor && j.b.form == formKeep && (j.b.ld%2048 != 0 || j.g.M <= 2*j.e.rows)
}

// oddLines rounds a stride up to an odd number of cache lines, so that rows
// spread over the sets of a cache.
func oddLines(bytes int) int { return (ceil(bytes, cacheLine) | 1) * cacheLine }

// group chooses how much of a block is claimed at a time: of B what fits the
// memory of a worker, and so that each worker has a group; of A little enough
// that all end at about the same time.
func (j *gemmJob) group(threads int) {
	e := j.e
	panel := j.deep * e.width * e.unit
	j.groupB = min(4, localB/panel, max(ceil(j.g.N, e.width)/threads, 1))
	j.groupA = 4 * e.rows
	if threads == 1 {
		j.groupA = 8 * e.rows
	}
	j.groupA = min(j.groupA, localAcc/(j.groupB*e.width*e.unit)/e.rows*e.rows)
}

// size chooses the block so that packed rows and sums fit the shared memory.
func (j *gemmJob) size() {
	e := j.e
	j.rows, j.cols = j.g.M, maxGroups*j.groupB*e.width
	if !j.directA {
		j.rows = min(j.rows, sharedA/j.lda/e.rows*e.rows)
	}
	if j.sharedSums() {
		j.cols = min(j.cols, 1024)
		j.rows = min(j.rows, sharedAcc/(j.cols*e.unit)/e.rows*e.rows)
	}
	j.cols = even(j.g.N, j.cols, j.groupB*e.width)
	j.rows = even(j.g.M, j.rows, e.rows)
}

// sharedSums says that sums outlive a task: C cannot hold them and K has more
// than one block.
func (j *gemmJob) sharedSums() bool { return j.units > j.deep && !j.g.plain() }

// even makes blocks of total, each at most size, of about the same size: a
// multiple of step.
func even(total, size, step int) int {
	if total <= size {
		return total
	}
	blocks := ceil(total, size)
	return ceil(ceil(total, blocks), step) * step
}
