package kernel

import "unsafe"

// packTask packs operands into shared memory: first B, then A. A task takes
// a part of the operand that lies together in memory.
type packTask gemmJob

// Sizes of the part of an operand that one task packs: panels of a B stored by
// columns, rows of an A stored by rows (both along K whole), and units of
// operands stored across K.
const (
	packPanels = 2
	packRows   = 32
	packUnits  = 64
)

// packTasks prepares packing of the current block and counts its tasks.
func (j *gemmJob) packTasks() int {
	j.packsB, j.packsA = 0, 0
	slices := ceil(j.u1-j.u0, packUnits)
	if !j.private && !j.directB && (j.i0 == 0 || j.units > j.deep) {
		j.packsB = slices
		if !j.b.kMajor {
			j.packsB = ceil(j.j1-j.j0, packPanels*j.e.width)
		}
	}
	if !j.directA && (j.j0 == 0 || j.rows < j.g.M || j.units > j.deep) {
		j.packsA = slices
		if !j.a.kMajor {
			j.packsA = ceil(j.i1-j.i0, packRows)
		}
	}
	return j.packsB + j.packsA
}

func (t *packTask) Do(_, item int) {
	if item < t.packsB {
		(*gemmJob)(t).packB(item)
	} else {
		(*gemmJob)(t).packA(item - t.packsB)
	}
}

func (j *gemmJob) packB(item int) {
	e := j.e
	if j.b.kMajor {
		u, end := part(j.u0, j.u1, packUnits, item)
		at := (u - j.u0) * e.width * e.unit
		e.packB(unsafe.Add(j.shared.b, at), j.ldb, &j.b, u, end, j.j0, j.j1)
		return
	}
	from, to := part(j.j0, j.j1, packPanels*e.width, item)
	at := (from - j.j0) / e.width * j.ldb
	e.packB(unsafe.Add(j.shared.b, at), j.ldb, &j.b, j.u0, j.u1, from, to)
}

func (j *gemmJob) packA(item int) {
	e := j.e
	if j.a.kMajor {
		u, end := part(j.u0, j.u1, packUnits, item)
		e.packA(unsafe.Add(j.shared.a, (u-j.u0)*e.unit), j.lda, &j.a, u, end, j.i0, j.i1)
		return
	}
	from, to := part(j.i0, j.i1, packRows, item)
	e.packA(unsafe.Add(j.shared.a, (from-j.i0)*j.lda), j.lda, &j.a, j.u0, j.u1, from, to)
}

// part is the i-th part of lo..hi with parts of a size.
func part(lo, hi, size, i int) (from, to int) {
	from = lo + i*size
	return from, min(from+size, hi)
}

// tileTask multiplies a group of rows by a group of panels.
type tileTask gemmJob

// tileTasks counts the tasks of the current block.
func (j *gemmJob) tileTasks() int {
	j.rowTasks = ceil(j.i1-j.i0, j.groupA)
	return j.rowTasks * ceil(j.j1-j.j0, j.groupB*j.e.width)
}

// Do takes the rows of a column group one after another: the panels of B are
// the larger part of what a task reads.
func (t *tileTask) Do(worker, item int) {
	j := (*gemmJob)(t)
	w := j.work(worker, item)
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

// work is one tile task.
type work struct {
	j              *gemmJob
	i0, i1, j0, j1 int
	plain          bool
	tile           unsafe.Pointer // sums of a tile at the edge
	private        unsafe.Pointer // the worker's panels
	sums           unsafe.Pointer // of the whole group if C is not plain
	ldSums         int
}

func (j *gemmJob) work(worker, item int) work {
	e, l := j.e, &j.local[worker]
	w := work{j: j, plain: j.g.plain(), tile: l.tile, private: l.b}
	w.i0 = j.i0 + item%j.rowTasks*j.groupA
	w.i1 = min(w.i0+j.groupA, j.i1)
	w.j0 = j.j0 + item/j.rowTasks*j.groupB*e.width
	w.j1 = min(w.j0+j.groupB*e.width, j.j1)
	if j.sharedSums() {
		w.ldSums = ceil(j.cols, e.width) * e.width * e.unit
		w.sums = unsafe.Add(j.shared.acc, (w.i0-j.i0)*w.ldSums+(w.j0-j.j0)*e.unit)
	} else {
		w.ldSums = j.groupB * e.width * e.unit
		w.sums = l.acc
	}
	return w
}

// multiply adds the products over the units u..end.
func (w *work) multiply(u, end int) {
	j, e := w.j, w.j.e
	row := e.width * e.unit
	packed := (end - u) * row
	if j.private && !j.directB {
		e.packB(w.private, packed, &j.b, u, end, w.j0, w.j1)
	}
	for c := w.j0; c < w.j1; c += e.width {
		switch {
		case j.directB && c+e.width <= w.j1:
			w.panel(j.b.at(u, c), j.b.ld, row, c, u, end)
		case j.directB:
			e.packB(w.private, packed, &j.b, u, end, c, w.j1)
			w.panel(w.private, row, packed, c, u, end)
		case j.private:
			w.panel(unsafe.Add(w.private, (c-w.j0)/e.width*packed), row, packed, c, u, end)
		default:
			at := (c-j.j0)/e.width*j.ldb + (u-j.u0)*row
			w.panel(unsafe.Add(j.shared.b, at), row, j.ldb, c, u, end)
		}
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
		if out == w.tile {
			j.g.C.mergeTile(out, ldc, i, c, rows, w.j1-c, j.g.Write.add(u))
		}
	}
}

// rowsOfA is where the first row of the group lies, at unit u, and its strides
// from row to row and from unit to unit.
func (w *work) rowsOfA(u int) (a unsafe.Pointer, lda, ka int) {
	j := w.j
	switch {
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
		return w.tile, e.width * e.unit, 0
	}
	out, ld = j.g.C.pointer(i, c)
	return out, ld, j.g.Write.add(u)
}

// finish ends the group's part of C.
func (w *work) finish() {
	for i := w.i0; i < w.i1; i++ {
		w.j.g.finish(unsafe.Add(w.sums, (i-w.i0)*w.ldSums), i, w.j0, w.j1-w.j0)
	}
}
