package tensor

// RMSNorm implements [PointwiseDevice].
func (m *Meta) RMSNorm(op Norm) {
	m.cpu.RMSNorm(op)
	m.norm(OpRMSNorm, op)
}

// LayerNorm implements [PointwiseDevice].
func (m *Meta) LayerNorm(op Norm) {
	m.cpu.LayerNorm(op)
	m.norm(OpLayerNorm, op)
}

func (m *Meta) norm(kind OpKind, op Norm) {
	m.pointwise(kind, op.X.T.dtype, op.X.T.Rows(), op.X.Heads*op.X.Width,
		op.X.size()+size(op.W, op.B), op.Y.size()+size(op.Mean, op.RStd))
}

// RMSNormBackward implements [PointwiseDevice].
func (m *Meta) RMSNormBackward(op NormBackward) {
	m.cpu.RMSNormBackward(op)
	m.normBackward(OpRMSNormBackward, op)
}

// LayerNormBackward implements [PointwiseDevice].
func (m *Meta) LayerNormBackward(op NormBackward) {
	m.cpu.LayerNormBackward(op)
	m.normBackward(OpLayerNormBackward, op)
}

func (m *Meta) normBackward(kind OpKind, op NormBackward) {
	read := op.DY.size() + op.X.size() + size(op.W, op.B, op.Mean, op.RStd, op.DW, op.DB)
	if op.Accumulate {
		read += op.DX.size()
	}
	m.pointwise(kind, op.X.T.dtype, op.X.T.Rows(), op.X.Heads*op.X.Width, read, op.DX.size()+op.Y.size()+size(op.DW, op.DB))
}

// SwiGLU implements [PointwiseDevice].
func (m *Meta) SwiGLU(y, x *Tensor) {
	m.cpu.SwiGLU(y, x)
	m.pointwise(OpSwiGLU, x.dtype, y.Rows(), y.Cols(), size(x), size(y))
}

// SwiGLUBackward implements [PointwiseDevice].
func (m *Meta) SwiGLUBackward(dx, y, dy, x *Tensor) {
	m.cpu.SwiGLUBackward(dx, y, dy, x)
	m.pointwise(OpSwiGLUBackward, x.dtype, dy.Rows(), dy.Cols(), size(dy, x), size(dx, y))
}

// GELU implements [PointwiseDevice].
func (m *Meta) GELU(y, x *Tensor) {
	m.cpu.GELU(y, x)
	m.pointwise(OpGELU, x.dtype, y.Rows(), y.Cols(), size(x), size(y))
}

// GELUBackward implements [PointwiseDevice].
func (m *Meta) GELUBackward(dx, y, dy, x *Tensor) {
	m.cpu.GELUBackward(dx, y, dy, x)
	m.pointwise(OpGELUBackward, x.dtype, dy.Rows(), dy.Cols(), size(dy, x), size(dx, y))
}

// Embed implements [PointwiseDevice]. Only the rows that are looked up move.
func (m *Meta) Embed(y, table, ids *Tensor, start int) {
	m.cpu.Embed(y, table, ids, start)
	m.pointwise(OpEmbed, y.dtype, y.Rows(), y.Cols(), size(y, ids), size(y))
}

// EmbedBackward implements [PointwiseDevice].
func (m *Meta) EmbedBackward(dtable, dy, ids *Tensor, start int) {
	m.cpu.EmbedBackward(dtable, dy, ids, start)
	m.pointwise(OpEmbedBackward, dy.dtype, dy.Rows(), dy.Cols(), 2*size(dy)+size(ids), size(dy))
}

// Fill implements [PointwiseDevice].
func (m *Meta) Fill(t *Tensor, v float64) {
	m.cpu.Fill(t, v)
	m.pointwise(OpFill, t.dtype, t.Rows(), t.Cols(), 0, size(t))
}

// Copy implements [PointwiseDevice].
func (m *Meta) Copy(dst, src *Tensor) {
	m.cpu.Copy(dst, src)
	m.pointwise(OpCopy, dst.dtype, src.Rows(), src.Cols(), size(src), size(dst))
}

// CopyColumns implements [PointwiseDevice].
func (m *Meta) CopyColumns(dst, src Columns) {
	m.cpu.CopyColumns(dst, src)
	m.pointwise(OpCopy, dst.T.dtype, src.T.Rows(), src.Heads*src.Width, src.size(), dst.size())
}

// Add implements [PointwiseDevice].
func (m *Meta) Add(dst, src *Tensor) {
	m.cpu.Add(dst, src)
	m.pointwise(OpAdd, dst.dtype, dst.Rows(), dst.Cols(), size(dst, src), size(dst))
}

// Scale implements [PointwiseDevice].
func (m *Meta) Scale(t *Tensor, v float64) {
	m.cpu.Scale(t, v)
	m.pointwise(OpScale, t.dtype, t.Rows(), t.Cols(), size(t), size(t))
}

// Dropout implements [PointwiseDevice]. The random numbers are not counted.
func (m *Meta) Dropout(op Dropout) {
	m.cpu.Dropout(op)
	m.pointwise(OpDropout, op.X.dtype, op.X.Rows(), op.X.Cols(), size(op.X, op.Residual), size(op.Y))
}

// Normal implements [PointwiseDevice].
func (m *Meta) Normal(op Normal) {
	m.cpu.Normal(op)
	m.pointwise(OpNormal, op.T.dtype, op.T.Rows(), op.T.Cols(), 0, size(op.T))
}
