package kernel

import "unsafe"

// Sizes of the memory of a context, in bytes. A block of B stays in the last
// level cache, what one task uses of A and B in the second level.
const (
	sharedB   = 2<<20 + 64<<10
	sharedA   = 2<<20 + 64<<10
	sharedAcc = 1 << 20
	localB    = 512 << 10
	localAcc  = 120 << 10
	localTile = 8 << 10
)

type sharedSpace struct{ b, a, acc unsafe.Pointer }

type localSpace struct{ b, acc, tile unsafe.Pointer }

// begin plans the product.
func (j *gemmJob) begin(g *Gemm, s *engines, threads int) {
	e := s.of(&g.A, &g.B)
	j.g, j.e, j.alpha = *g, e, scale(g.Alpha)
	j.units = ceil(g.K, e.per)
	j.a = e.source(&g.A, g.K, g.A.Trans)
	j.b = e.source(&g.B, g.K, !g.B.Trans)
	j.deep = even(max(j.units, 1), e.depth, 1)
	j.step = j.deep
	j.private = g.M <= 4*e.rows
	j.directA = j.inPlaceA()
	j.directB = j.inPlaceB()
	if (j.private || j.directB) && j.directA {
		j.deep = max(j.units, 1) // nothing is packed into shared memory
	}
	j.lda = oddLines(j.deep * e.unit)
	j.ldb = oddLines(j.deep * e.width * e.unit)
	j.size()
	j.group(threads)
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
	return j.b.kMajor && j.b.form == formKeep && (j.b.ld%2048 != 0 || j.g.M <= 2*j.e.rows)
}

// oddLines rounds a stride up to an odd number of cache lines, so that rows
// spread over the sets of a cache.
func oddLines(bytes int) int { return (ceil(bytes, cacheLine) | 1) * cacheLine }

// size chooses the block so that it fits the shared memory.
func (j *gemmJob) size() {
	e := j.e
	j.cols = max(sharedB/j.ldb, 1) * e.width
	if j.private || j.directB {
		j.cols = j.g.N
	}
	j.rows = j.g.M
	if !j.directA {
		j.rows = min(j.rows, max(sharedA/j.lda/e.rows, 1)*e.rows)
	}
	if j.sharedSums() {
		j.cols = min(j.cols, 1024)
		j.rows = min(j.rows, sharedAcc/(j.cols*e.unit)/e.rows*e.rows)
	}
	j.cols = even(j.g.N, j.cols, e.width)
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

// group chooses how much of a block one task does: small enough that the
// workers end at about the same time.
func (j *gemmJob) group(threads int) {
	e := j.e
	j.groupA, j.groupB = 4*e.rows, 4
	if j.private {
		j.groupA = j.rows
		j.groupB = max(min(4, localB/(j.step*e.width*e.unit)), 1)
	}
	if threads == 1 {
		j.groupA = max(j.groupA, 8*e.rows)
	}
}
