package nn

import "carve/tensor"

// Linear is a matrix [out in] with an optional bias [out], and how the tensor axis splits it.
//
//	        split     forward                  backward
//	column  out       none                     dx summed over the axis
//	row     in        y summed over the axis   none
//
// A column-parallel layer feeds a row-parallel one: heads and feed-forward features between them stay on their rank.
type Linear struct {
	weight *weight
	bias   *weight // nil for none
}

// weightGrad adds dyᵀ·x to the weight's gradient and the column sums of dy to the bias's.
func (l *Linear) weightGrad(r *Rank, dy, x *tensor.Tensor) {
	r.Dev.MatMul(tensor.MatMul{C: l.weight.grad, A: dy, B: x, TransA: true, Accumulate: l.weight.fresh()})
	if l.bias != nil {
		r.Dev.SumRows(l.bias.sum(r), dy)
	}
}

// product is x·Wᵀ, [T out], with an epilogue.
func (l *Linear) product(r *Rank, x, bias, residual *tensor.Tensor) *tensor.Tensor {
	y := r.activation(x.Rows(), l.weight.value.Dim(0))
	r.Dev.MatMul(tensor.MatMul{C: y, A: x, B: l.weight.value, TransB: true, Bias: bias, Residual: residual})
	return y
}

// input is dy·W, [T in].
func (l *Linear) input(r *Rank, dy *tensor.Tensor) *tensor.Tensor {
	dx := r.activation(dy.Rows(), l.weight.value.Dim(1))
	r.Dev.MatMul(tensor.MatMul{C: dx, A: dy, B: l.weight.value})
	return dx
}

// Column is a Linear whose output features are split over the tensor axis.
type Column struct{ Linear }

// Forward is y = x·Wᵀ + b, this rank's features [T out/TP]. x stays the caller's.
func (l *Column) Forward(r *Rank, x *tensor.Tensor) *tensor.Tensor {
	return l.product(r, x, l.bias.optional(), nil)
}

// Input is the gradient of the input, dy·W summed over the tensor axis, [T in]. dy stays the caller's.
func (l *Column) Input(r *Rank, dy *tensor.Tensor) *tensor.Tensor {
	dx := l.input(r, dy)
	reduce(r.Groups.Tensor, dx, tensor.Sum)
	return dx
}

// Row is a Linear whose input features are split over the tensor axis; its bias is not.
type Row struct{ Linear }

// Forward is y = residual + x·Wᵀ + b, summed over the tensor axis, [T out]: the rank that leads the axis adds residual
// and bias to its term. x and residual stay the caller's.
func (l *Row) Forward(r *Rank, x, residual *tensor.Tensor) *tensor.Tensor {
	bias := l.bias.optional()
	if !leads(r.Groups.Tensor) {
		bias, residual = nil, nil
	}
	y := l.product(r, x, bias, residual)
	reduce(r.Groups.Tensor, y, tensor.Sum)
	return y
}

// Input is the gradient of this rank's input features, dy·W, [T in/TP]. dy stays the caller's.
func (l *Row) Input(r *Rank, dy *tensor.Tensor) *tensor.Tensor { return l.input(r, dy) }
