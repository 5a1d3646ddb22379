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

// bind makes the views, which show nothing yet.
func (w *weight) bind(a *tensor.Arena, d tensor.DType) {
	shape := w.params[0].Region.Shape()
	for _, p := range w.params[1:] {
		shape[0] += p.Region[0].Len()
	}
	w.value, w.grad = a.NewView(tensor.Parameter, d, shape...), a.NewView(tensor.Gradient, d, shape...)
}

// offset is the first element in the flat buffers.
func (w *weight) offset() int { return w.params[0].Offset }

// collect lists the parameters of weights that are there.
func collect(weights ...*weight) (params []*Param) {
	for _, w := range weights {
		if w != nil {
			params = append(params, w.params...)
		}
	}
	return params
}
