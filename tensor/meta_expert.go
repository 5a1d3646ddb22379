package tensor

// Route implements [ExpertDevice]. A choice is one pass over the experts.
func (m *Meta) Route(op Route) {
	m.cpu.Route(op)
	n, e := op.Scores.Rows(), op.Scores.Cols()
	flops := float64(n) * float64(e) * (OpRoute.perElement() + float64(op.PerToken))
	m.note(OpRoute, op.Scores.dtype, [4]int{n, e, op.PerToken}, flops,
		size(op.Scores, op.Bias), size(op.Scores, op.Choice, op.Gate))
}

// RouteBackward implements [ExpertDevice].
func (m *Meta) RouteBackward(op RouteBackward) {
	m.cpu.RouteBackward(op)
	n, e := op.Scores.Rows(), op.Scores.Cols()
	m.note(OpRouteBackward, op.Scores.dtype, [4]int{n, e, op.PerToken}, float64(n)*float64(e)*OpRouteBackward.perElement(),
		size(op.Scores, op.Choice, op.Gate, op.At, op.Pull, op.Push), size(op.Scores))
}

// Admit implements [ExpertDevice].
func (m *Meta) Admit(op Admit) {
	m.cpu.Admit(op)
	m.pointwise(OpAdmit, op.Before.dtype, op.Choice.Rows(), op.Choice.Cols(), size(op.Choice, op.Before), size(op.At, op.Before))
}

// Deal implements [ExpertDevice].
func (m *Meta) Deal(op Deal) {
	m.cpu.Deal(op)
	m.pointwise(OpDeal, op.Gate.dtype, op.Choice.Rows(), op.Choice.Cols(),
		size(op.Choice, op.Gate, op.At), size(op.At, op.From, op.Sorted, op.Counts, op.Chosen))
}

// Tally implements [ExpertDevice].
func (m *Meta) Tally(op Tally) {
	m.cpu.Tally(op)
	m.pointwise(OpTally, op.Scores.dtype, op.Scores.Rows(), op.Scores.Cols(), size(op.Choice, op.Scores), size(op.Chosen, op.Mass))
}

// ScaleRows implements [ExpertDevice].
func (m *Meta) ScaleRows(y, x, g *Tensor) {
	m.cpu.ScaleRows(y, x, g)
	m.pointwise(OpScaleRows, x.dtype, x.Rows(), x.Cols(), size(x, g), size(y))
}

// DotRows implements [ExpertDevice].
func (m *Meta) DotRows(dst, a, b *Tensor) {
	m.cpu.DotRows(dst, a, b)
	m.pointwise(OpDotRows, a.dtype, a.Rows(), a.Cols(), size(a, b), size(dst))
}
