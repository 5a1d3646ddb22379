package tensor

// LossStats implements [LossDevice].
func (m *Meta) LossStats(top, sum, target, logits, targets *Tensor, start int) {
	m.cpu.LossStats(top, sum, target, logits, targets, start)
	m.pointwise(OpLossStats, logits.dtype, logits.Rows(), logits.Cols(), size(logits, targets), size(top, sum, target))
}

// LossMerge implements [LossDevice].
func (m *Meta) LossMerge(sum, top, all *Tensor) {
	m.cpu.LossMerge(sum, top, all)
	m.pointwise(OpLossMerge, sum.dtype, sum.Len(), 1, size(sum, top, all), size(sum))
}

// Loss implements [LossDevice]. It returns 0.
func (m *Meta) Loss(top, sum, target, targets *Tensor) float64 {
	m.cpu.Loss(top, sum, target, targets)
	m.pointwise(OpLoss, sum.dtype, sum.Len(), 1, size(top, sum, target, targets), 0)
	return 0
}

// LossBackward implements [LossDevice].
func (m *Meta) LossBackward(logits, top, sum, targets *Tensor, start int, scale float64) {
	m.cpu.LossBackward(logits, top, sum, targets, start, scale)
	m.pointwise(OpLossBackward, logits.dtype, logits.Rows(), logits.Cols(), size(logits, top, sum, targets), size(logits))
}

// AdamW implements [OptimizerDevice].
func (m *Meta) AdamW(op AdamW) {
	m.cpu.AdamW(op)
	state := size(op.Master, op.M, op.V)
	m.pointwise(OpAdamW, op.Master.dtype, op.Master.Len(), 1, state+size(op.Grad), state+size(op.Param))
}

// SGD implements [OptimizerDevice].
func (m *Meta) SGD(op SGD) {
	m.cpu.SGD(op)
	state := size(op.Master, op.M)
	m.pointwise(OpSGD, op.Master.dtype, op.Master.Len(), 1, state+size(op.Grad), state+size(op.Param))
}

// SquaredNorm implements [OptimizerDevice]. It returns 0.
func (m *Meta) SquaredNorm(t *Tensor) float64 {
	m.cpu.SquaredNorm(t)
	m.pointwise(OpSquaredNorm, t.dtype, t.Len(), 1, size(t), 0)
	return 0
}

// Finite implements [OptimizerDevice]. It returns true.
func (m *Meta) Finite(t *Tensor) bool {
	m.cpu.Finite(t)
	m.pointwise(OpFinite, t.dtype, t.Len(), 1, size(t), 0)
	return true
}
