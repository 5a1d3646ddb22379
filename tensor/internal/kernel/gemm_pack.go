package kernel

import "unsafe"

// source is an operand as packing sees it: units along K of a matrix with k
// elements along K.
type source struct {
	p      unsafe.Pointer
	ld     int // bytes between stored rows
	size   int // bytes of an element
	k      int
	form   form
	kMajor bool // stored rows run across K: row p holds elements (p, ·)
}

// source describes m, the operand A or B of a product over k.
func (e *engine) source(m *Mat, k int, kMajor bool) source {
	s := source{k: k, form: e.form(m), kMajor: kMajor}
	switch {
	case m.F32 != nil:
		s.p, s.size = unsafe.Pointer(unsafe.SliceData(m.F32)), 4
	case m.BF16 != nil:
		s.p, s.size = unsafe.Pointer(unsafe.SliceData(m.BF16)), 2
	default:
		s.p, s.size = unsafe.Pointer(unsafe.SliceData(m.F64)), 8
	}
	s.ld = m.LD * s.size
	return s
}

// at points to the element (k, x), where x is the row of A or the column of B.
func (s *source) at(k, x int) unsafe.Pointer {
	if s.kMajor {
		return unsafe.Add(s.p, k*s.ld+x*s.size)
	}
	return unsafe.Add(s.p, x*s.ld+k*s.size)
}

// put stores the unit (u, x) at dst.
func (s *source) put(dst unsafe.Pointer, u, x int) {
	switch {
	case s.size == 8:
		*(*float64)(dst) = *(*float64)(s.at(u, x))
	case s.form == formKeep:
		*(*uint32)(dst) = *(*uint32)(s.at(u, x))
	case s.form == formExpand:
		*(*uint32)(dst) = uint32(*(*uint16)(s.at(u, x))) << 16
	default:
		v := uint32(*(*uint16)(s.at(2*u, x)))
		if 2*u+1 < s.k {
			v |= uint32(*(*uint16)(s.at(2*u+1, x))) << 16
		}
		*(*uint32)(dst) = v
	}
}

// whole is how many of the units before end need no care for an odd K.
func (s *source) whole(end int) int {
	if s.form == formPairs {
		return min(end, s.k/2)
	}
	return end
}

// packB writes units u0..u1 of the columns j0..j1 of B as panels at dst, stride
// bytes apart, filling the last panel up with zeros.
func (e *engine) packB(dst unsafe.Pointer, stride int, s *source, u0, u1, j0, j1 int) {
	full := (j1 - j0) / e.width
	done := 0
	switch {
	case s.kMajor && e.panels[s.form] != nil:
		done = full
		e.packRows(dst, stride, s, u0, u1, j0, full)
	case !s.kMajor && e.turn(s.form) != nil:
		done = full
		for j := range full {
			e.packColumns(unsafe.Add(dst, j*stride), s, u0, u1, j0+j*e.width)
		}
	}
	for j := j0 + done*e.width; j < j1; j += e.width {
		panel := unsafe.Add(dst, (j-j0)/e.width*stride)
		e.packPanel(panel, s, u0, u1, j, min(j+e.width, j1))
	}
}

// turn is the transposition for operands whose stored rows run along K: pairs
// are stored as units already.
func (e *engine) turn(f form) transposeFunc {
	if f == formPairs {
		f = formKeep
	}
	return e.transpose[f]
}

// packPanel packs one panel unit by unit.
func (e *engine) packPanel(panel unsafe.Pointer, s *source, u0, u1, j0, j1 int) {
	for u := u0; u < u1; u++ {
		row := unsafe.Slice((*byte)(unsafe.Add(panel, (u-u0)*e.width*e.unit)), e.width*e.unit)
		clear(row[(j1-j0)*e.unit:])
		for j := j0; j < j1; j++ {
			s.put(unsafe.Pointer(&row[(j-j0)*e.unit]), u, j)
		}
	}
}

// packRows packs n whole panels of a B that is stored by rows.
func (e *engine) packRows(dst unsafe.Pointer, stride int, s *source, u0, u1, j0, n int) {
	end := s.whole(u1)
	if n > 0 && end > u0 {
		e.panels[s.form]((*byte)(dst), stride, (*byte)(s.at(u0*e.per, j0)), s.ld, end-u0, n)
	}
	if end < u1 {
		for j := range n {
			x := j0 + j*e.width
			e.packPanel(unsafe.Add(dst, j*stride+(end-u0)*e.width*e.unit), s, end, u1, x, x+e.width)
		}
	}
}

// packColumns packs one whole panel of a B that is stored by columns.
func (e *engine) packColumns(panel unsafe.Pointer, s *source, u0, u1, j0 int) {
	row := e.width * e.unit
	n := (s.whole(u1) - u0) / e.lanes
	if n > 0 {
		for j := 0; j < e.width; j += e.lanes {
			e.turn(s.form)((*byte)(unsafe.Add(panel, j*e.unit)), row, (*byte)(s.at(u0*e.per, j0+j)), s.ld, n)
		}
	}
	if done := n * e.lanes; u0+done < u1 {
		e.packPanel(unsafe.Add(panel, done*row), s, u0+done, u1, j0, j0+e.width)
	}
}

// packA writes units u0..u1 of rows i0..i1 of A to dst, row by row with a
// stride of ld bytes.
func (e *engine) packA(dst unsafe.Pointer, ld int, s *source, u0, u1, i0, i1 int) {
	if !s.kMajor {
		for i := i0; i < i1; i++ {
			e.packRow(unsafe.Add(dst, (i-i0)*ld), s, u0, u1, i)
		}
		return
	}
	rows, end := 0, u0
	if e.transpose[s.form] != nil {
		rows = (i1 - i0) / e.lanes * e.lanes
		end += (s.whole(u1) - u0) / e.lanes * e.lanes
		e.turnA(dst, ld, s, u0, end, i0, i0+rows)
	}
	e.packUnits(dst, ld, s, u0, end, u1, i0, i0+rows)
	if rows < i1-i0 {
		e.packUnits(unsafe.Add(dst, rows*ld), ld, s, u0, u0, u1, i0+rows, i1)
	}
}

// turnA packs whole vectors of an A that is stored across K, by blocks whose
// lines and pages of dst stay in reach.
func (e *engine) turnA(dst unsafe.Pointer, ld int, s *source, u0, u1, i0, i1 int) {
	const block = 64
	for i := i0; i < i1; i += block {
		n := min(block, i1-i) / e.lanes
		for u := u0; u < u1; u += e.lanes {
			at := unsafe.Add(dst, (i-i0)*ld+(u-u0)*e.unit)
			e.transpose[s.form]((*byte)(at), ld, (*byte)(s.at(u*e.per, i)), s.ld, n)
		}
	}
}

// packUnits packs units from..u1 of rows i0..i1 one by one.
func (e *engine) packUnits(dst unsafe.Pointer, ld int, s *source, u0, from, u1, i0, i1 int) {
	for i := i0; i < i1; i++ {
		row := unsafe.Add(dst, (i-i0)*ld)
		for u := from; u < u1; u++ {
			s.put(unsafe.Add(row, (u-u0)*e.unit), u, i)
		}
	}
}

// packRow packs a row of A that is stored as a row.
func (e *engine) packRow(dst unsafe.Pointer, s *source, u0, u1, i int) {
	done := u0
	switch f := e.panels[s.form]; {
	case s.form != formExpand:
		done = s.whole(u1)
		n := (done - u0) * e.unit
		copy(unsafe.Slice((*byte)(dst), n), unsafe.Slice((*byte)(s.at(u0*e.per, i)), n))
	case f != nil && u1-u0 >= e.width:
		n := (u1 - u0) / e.width
		f((*byte)(dst), e.width*e.unit, (*byte)(s.at(u0, i)), 0, 1, n)
		done += n * e.width
	}
	for u := done; u < u1; u++ {
		s.put(unsafe.Add(dst, (u-u0)*e.unit), u, i)
	}
}
