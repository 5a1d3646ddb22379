package tensor

// MatMul implements [LinearDevice].
func (m *Meta) MatMul(op MatMul) {
	m.cpu.MatMul(op)
	k := op.A.Cols()
	if op.TransA {
		k = op.A.Rows()
	}
	rows, cols := op.C.Rows(), op.C.Cols()
	read := size(op.A, op.B, op.Bias, op.Residual)
	if op.Accumulate {
		read += size(op.C)
	}
	m.note(OpMatMul, op.A.dtype, [4]int{rows, cols, k}, 2*float64(rows)*float64(cols)*float64(k), read, size(op.C))
}

// SumRows implements [LinearDevice].
func (m *Meta) SumRows(dst, x *Tensor) {
	m.cpu.SumRows(dst, x)
	m.pointwise(OpSumRows, x.dtype, x.Rows(), x.Cols(), size(x, dst), size(dst))
}

// Attention implements [AttentionDevice].
func (m *Meta) Attention(op Attention) {
	m.cpu.Attention(op)
	read, written := op.Q.size()+op.K.size()+op.V.size(), op.Out.size()+size(op.LSE)
	if op.Merge {
		read += written
	}
	m.note(OpAttention, op.Q.T.dtype, op.dims(), 4*op.pairs(), read, written)
}

// AttentionBackward implements [AttentionDevice].
func (m *Meta) AttentionBackward(op AttentionBackward) {
	m.cpu.AttentionBackward(op)
	f := &op.Forward
	read := f.Q.size() + f.K.size() + f.V.size() + f.Out.size() + op.DOut.size() + size(f.LSE)
	written := op.DQ.size() + op.DK.size() + op.DV.size()
	if op.Accumulate {
		read += written
	}
	m.note(OpAttentionBackward, f.Q.T.dtype, f.dims(), 10*f.pairs(), read, written+size(op.Delta))
}

func (op *Attention) dims() [4]int {
	return [4]int{op.Q.T.Rows(), op.K.T.Rows(), op.Q.Heads, op.Q.Width}
}

// pairs is the visible pairs of query and key of all heads, times the head size. Without positions they are counted.
// With positions, whose values a shape does not tell, half of all pairs are taken: under the zigzag balance that is
// exact but for the diagonal of a rank's own block. Documents are not known either; one per sequence is taken.
func (op *Attention) pairs() float64 {
	batch := max(op.Batch, 1)
	s, keys := float64(op.Q.T.Rows()/batch), float64(op.K.T.Rows()/batch)
	seen := s * keys
	switch {
	case !op.Causal:
	case op.QueryPos != nil || op.KeyPos != nil:
		seen /= 2
	case keys < s: // the first queries see 1, 2, … keys, the rest all
		seen = keys*(keys+1)/2 + (s-keys)*keys
	default:
		seen = s * (s + 1) / 2
	}
	return seen * float64(batch) * float64(op.Q.Heads) * float64(op.Q.Width)
}

// Rotate implements [AttentionDevice]. The tables stay in the cache.
func (m *Meta) Rotate(op Rotate) {
	m.cpu.Rotate(op)
	m.pointwise(OpRotate, op.X.T.dtype, op.X.T.Rows(), op.X.Heads*op.X.Width, op.X.size(), op.X.size())
}
