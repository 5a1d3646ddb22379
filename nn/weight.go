package nn

import "carve/tensor"

// weight is an operand of a layer: one parameter, or adjacent ones of a fused projection seen as one matrix. Its
// views are bound when the model's flat buffers exist.
type weight struct {
	params      []*Param
	value, grad *tensor.Tensor // [out in] or [n]
	// stale means that grad still holds the numbers of the step before: the next gradient overwrites them. This
	// spares a pass that clears all gradients and one read of each.
	stale bool
}

// optional is the value of a weight that may not be there.
func (w *weight) optional() *tensor.Tensor {
	if w == nil {
		return nil
	}
	return w.value
}

// fresh makes the gradient current and reports whether the next product must be added to it.
func (w *weight) fresh() (accumulate bool) {
	accumulate = !w.stale
	w.stale = false
	return accumulate
}

// sum is the gradient, for an operation that only adds: cleared if it is stale.
func (w *weight) sum(r *Rank) *tensor.Tensor {
	if w == nil {
		return nil
	}
	if !w.fresh() {
		r.Dev.Fill(w.grad, 0)
	}
	return w.grad
}

// bind makes the views, given the flat buffers of the model.
func (w *weight) bind(value, grad *tensor.Tensor) {
	first := w.params[0]
	lo, hi, rows := first.Offset, first.Offset, 0
	for _, p := range w.params {
		hi += p.Len()
		rows += p.Region[0].Len()
	}
	if len(first.Shape) == 1 {
		w.value, w.grad = value.Slice(lo, hi), grad.Slice(lo, hi)
		return
	}
	cols := first.Region[1].Len()
	w.value, w.grad = value.Slice(lo, hi, rows, cols), grad.Slice(lo, hi, rows, cols)
}

// collect lists the parameters of weights that are there.
func collect(weights ...*weight) (params []*Param) {
	for _, w := range weights {
		if w != nil {
			params = append(params, w.params...)
		}
	}
	return params
}
