package kernel

import "unsafe"

// packTask packs A into shared memory. A task takes a part of A that lies
// together in memory.
type packTask gemmJob

// How much of A one task packs: rows if it is stored by rows, or units if it is
// stored across K.
const (
	packRows  = 32
	packUnits = 64
)

// packTasks counts the tasks that pack A for the current block.
func (j *gemmJob) packTasks() int {
	if j.a.kMajor {
		return ceil(j.u1-j.u0, packUnits)
	}
	return ceil(j.i1-j.i0, packRows)
}

func (j *packTask) Do(_, item int) {
	e := j.e
	if j.a.kMajor {
		u := j.u0 + item*packUnits
		end := min(u+packUnits, j.u1)
		e.packA(unsafe.Add(j.shared.a, (u-j.u0)*e.unit), j.lda, &j.a, u, end, j.i0, j.i1)
		return
	}
	from := j.i0 + item*packRows
	to := min(from+packRows, j.i1)
	e.packA(unsafe.Add(j.shared.a, (from-j.i0)*j.lda), j.lda, &j.a, j.u0, j.u1, from, to)
}

// tileTask multiplies: each task goes on until the block is done.
type tileTask gemmJob

// tileTasks prepares the current block and counts the tasks that are of use.
func (j *gemmJob) tileTasks(threads int) int {
	j.groups = ceil(j.j1-j.j0, j.groupB*j.e.width)
	j.parts = ceil(j.i1-j.i0, j.groupA)
	j.opened.Store(0)
	for i := range j.groups {
		j.claimed[i].Store(0)
	}
	return min(threads, j.groups*j.parts)
}

func (t *tileTask) Do(worker, _ int) {
	j := (*gemmJob)(t)
	w := work{j: j, plain: j.g.plain(), local: &j.local[worker]}
	for {
		group := j.choose()
		if group < 0 {
			return
		}
		w.open(group)
		for part := j.claim(group); part >= 0; part = j.claim(group) {
			w.part(part)
		}
	}
}

// choose opens a group, or finds the open one with the most parts left, or
// returns -1 if there is none.
func (j *gemmJob) choose() int {
	if g := int(j.opened.Add(1)) - 1; g < j.groups {
		return g
	}
	best, least := -1, int32(j.parts)
	for g := range j.groups {
		if n := j.claimed[g].Load(); n < least {
			best, least = g, n
		}
	}
	return best
}

// claim takes a part of the rows of a group, or returns -1 if all are taken.
func (j *gemmJob) claim(group int) int {
	if part := int(j.claimed[group].Add(1)) - 1; part < j.parts {
		return part
	}
	return -1
}

// work is what one worker is doing.
type work struct {
	j      *gemmJob
	local  *localSpace
	plain  bool
	packed bool // the panels of the group lie in local memory

	j0, j1 int            // columns of the group
	i0, i1 int            // rows of the part
	sums   unsafe.Pointer // of the part if C is not plain
	ldSums int
}

// open turns to a group of columns.
func (w *work) open(group int) {
	j, e := w.j, w.j.e
	w.j0 = j.j0 + group*j.groupB*e.width
	w.j1 = min(w.j0+j.groupB*e.width, j.j1)
	w.packed = false
}

// part computes a part of the rows of the group.
func (w *work) part(part int) {
	j := w.j
	if !w.packed {
		w.pack()
		w.packed = true
	}
	w.i0 = j.i0 + part*j.groupA
	w.i1 = min(w.i0+j.groupA, j.i1)
	w.placeSums()
	for u := j.u0; ; {
		end := min(u+j.step, j.u1)
		w.multiply(u, end)
		if u = end; u >= j.u1 {
			break
		}
	}
	if !w.plain && j.u1 == j.units {
		w.finish()
	}
}

// panelStride is the distance between packed panels.
func (j *gemmJob) panelStride() int { return (j.u1 - j.u0) * j.e.width * j.e.unit }

// pack packs the group's panels of B, if they are not read in place.
func (w *work) pack() {
	j, e := w.j, w.j.e
	from := w.j0
	if j.directB {
		from += (w.j1 - w.j0) / e.width * e.width
	}
	if from < w.j1 {
		at := (from - w.j0) / e.width * j.panelStride()
		e.packB(unsafe.Add(w.local.b, at), j.panelStride(), &j.b, j.u0, j.u1, from, w.j1)
	}
}

// placeSums finds the memory for sums that C cannot hold.
func (w *work) placeSums() {
	j, e := w.j, w.j.e
	if j.sharedSums() {
		w.ldSums = ceil(j.cols, e.width) * e.width * e.unit
		w.sums = unsafe.Add(j.shared.acc, (w.i0-j.i0)*w.ldSums+(w.j0-j.j0)*e.unit)
		return
	}
	w.ldSums = j.groupB * e.width * e.unit
	w.sums = w.local.acc
}

// multiply adds the products over the units u..end.
func (w *work) multiply(u, end int) {
	j, e := w.j, w.j.e
	row := e.width * e.unit
	for c := w.j0; c < w.j1; c += e.width {
		if j.directB && c+e.width <= w.j1 {
			w.panel(j.b.at(u, c), j.b.ld, row, c, u, end)
			continue
		}
		at := (c-w.j0)/e.width*j.panelStride() + (u-j.u0)*row
		w.panel(unsafe.Add(w.local.b, at), row, j.panelStride(), c, u, end)
	}
}

// panel multiplies the rows by the panel b of columns c.
func (w *work) panel(b unsafe.Pointer, ldb, next, c, u, end int) {
	j, e := w.j, w.j.e
	a, lda, ka := w.rowsOfA(u)
	tile := e.tile
	if e.half != nil && w.j1-c <= e.width/2 {
		tile = e.half
	}
	for i := w.i0; i < w.i1; i += e.rows {
		rows := min(e.rows, w.i1-i)
		out, ldc, add := w.target(i, c, u)
		strip := unsafe.Add(a, (i-w.i0)*lda)
		tile(rows, (*byte)(strip), lda, ka, (*byte)(b), ldb, next, end-u, (*byte)(out), ldc, j.alpha, add)
		if out == w.local.tile {
			j.g.C.mergeTile(out, ldc, i, c, rows, w.j1-c, j.g.Write.add(u))
		}
	}
}

// rowsOfA is where the first row of the part lies, at unit u, and its strides
// from row to row and from unit to unit.
func (w *work) rowsOfA(u int) (a unsafe.Pointer, lda, ka int) {
	j := w.j
	switch {
	case j.units == 0: // A has no elements to point to
		return j.shared.a, 0, 0
	case !j.directA:
		return unsafe.Add(j.shared.a, (w.i0-j.i0)*j.lda+(u-j.u0)*j.e.unit), j.lda, j.e.unit
	case j.a.kMajor:
		return j.a.at(u, w.i0), j.a.size, j.a.ld
	default:
		return j.a.at(u*j.e.per, w.i0), j.a.ld, j.e.unit
	}
}

// target is where the tile at row i and column c goes.
func (w *work) target(i, c, u int) (out unsafe.Pointer, ld, add int) {
	j, e := w.j, w.j.e
	switch {
	case !w.plain:
		add = Overwrite.add(u)
		return unsafe.Add(w.sums, (i-w.i0)*w.ldSums+(c-w.j0)*e.unit), w.ldSums, add
	case w.j1-c < e.width:
		return w.local.tile, e.width * e.unit, 0
	}
	out, ld = j.g.C.pointer(i, c)
	return out, ld, j.g.Write.add(u)
}

// finish ends the part of C.
func (w *work) finish() {
	for i := w.i0; i < w.i1; i++ {
		w.j.g.finish(unsafe.Add(w.sums, (i-w.i0)*w.ldSums), i, w.j0, w.j1-w.j0)
	}
}
