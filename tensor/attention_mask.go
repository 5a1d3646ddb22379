package tensor

// mask says which keys a query sees.
type mask struct {
	causal     bool
	qpos, kpos []int32 // [S], [SK]; nil: row numbers
	qdoc, kdoc []int32 // [B S], [B SK]; nil: one document per sequence
	rows, keys int     // S, SK

	qplace, kplace []int32 // as qpos and kpos, also where nothing is masked by them
}

func maskOf(op *Attention) mask {
	m := mask{causal: op.Causal, rows: op.Q.T.Rows() / max(op.Batch, 1), keys: op.K.T.Rows() / max(op.Batch, 1)}
	if op.Causal && op.QueryPos != nil {
		m.qpos = op.QueryPos.I32()
	}
	if op.Causal && op.KeyPos != nil {
		m.kpos = op.KeyPos.I32()
	}
	if op.QueryPos != nil {
		m.qplace = op.QueryPos.I32()
	}
	if op.KeyPos != nil {
		m.kplace = op.KeyPos.I32()
	}
	if op.QueryDoc != nil {
		m.qdoc, m.kdoc = op.QueryDoc.I32(), op.KeyDoc.I32()
	}
	return m
}

// span is a run of rows of one sequence.
type span struct{ lo, hi int }

func (s span) len() int { return s.hi - s.lo }

// view is how much of a block of queries and keys is visible.
type view uint8

const (
	hidden view = iota
	partial
	full
)

// look classifies the block of queries q and keys k of sequence b.
func (m *mask) look(b int, q, k span) view {
	v := full
	if m.causal {
		qmin, qmax := extent(m.qpos, q, 0)
		kmin, kmax := extent(m.kpos, k, 0)
		switch {
		case kmin > qmax:
			return hidden
		case kmax > qmin:
			v = partial
		}
	}
	if m.qdoc == nil {
		return v
	}
	qmin, qmax := extent(m.qdoc, q, b*m.rows)
	kmin, kmax := extent(m.kdoc, k, b*m.keys)
	switch {
	case kmin > qmax || kmax < qmin:
		return hidden
	case qmin == qmax && kmin == kmax:
		return v
	}
	return partial
}

// extent is the least and the largest of the values of a run of rows; without values they are the row numbers.
func extent(values []int32, s span, base int) (lo, hi int32) {
	if values == nil {
		return int32(s.lo), int32(s.hi - 1)
	}
	values = values[base+s.lo : base+s.hi]
	lo, hi = values[0], values[0]
	for _, v := range values {
		lo, hi = min(lo, v), max(hi, v)
	}
	return lo, hi
}

// runs reports whether each row's visible keys are the first so many of a block, and each key's visible queries the last
// so many.
func (m *mask) runs() bool { return m.qpos == nil && m.kpos == nil && m.qdoc == nil }

// sees reports whether query q of sequence b sees key k.
func (m *mask) sees(b, q, k int) bool {
	if m.causal && position(m.kpos, k) > position(m.qpos, q) {
		return false
	}
	return m.qdoc == nil || m.qdoc[b*m.rows+q] == m.kdoc[b*m.keys+k]
}

func position(pos []int32, i int) int {
	if pos == nil {
		return i
	}
	return int(pos[i])
}
