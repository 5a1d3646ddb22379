package nn

import (
	"carve/mesh"
	"carve/tensor"
)

// Linear is a matrix [out in] with an optional bias [out], and how the tensor axis splits it.
//
//	        split     forward                  backward
//	column  out       none                     dx summed over the axis
//	row     in        y summed over the axis   none
//
// A column-parallel layer feeds a row-parallel one: heads and feed-forward features between them stay on their rank.
// Under sequence parallelism the rows of the inputs of a column-parallel layer are gathered, and of the gradients of a
// row-parallel one's outputs; the sums are left where their rows are:
//
//	        forward                     backward
//	column  all-gather of x             reduce-scatter of dx; all-gather of x once more, for the weight's gradient
//	row     reduce-scatter of y         all-gather of dy
//
// Under [TensorGathered] every layer gathers its features: a column-parallel one y and the gradient that it gets is cut, a
// row-parallel one dx and its x is cut.
//
// The gathered x of a column-parallel layer is not kept: keeping it would cost T·in numbers per layer and micro-batch, and
// gathering it again costs one all-gather of as many.
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

// out and in are this rank's numbers of features.
func (l *Linear) out() int { return l.weight.value.Dim(0) }
func (l *Linear) in() int  { return l.weight.value.Dim(1) }

// Column is a Linear whose output features are split over the tensor axis.
type Column struct{ Linear }

// Forward is y = x·Wᵀ + b, this rank's features of all T rows, [T out/TP]. x has this rank's rows and stays the caller's.
func (l *Column) Forward(r *Rank, x *tensor.Tensor, rows int) *tensor.Tensor {
	y := r.activation(rows, l.out())
	all := r.fromAll(tensor.MatMul{C: y, B: l.weight.value, TransB: true, Bias: l.bias.optional()}, x)
	drop(all, x)
	return r.joinFeatures(&l.Linear, 0, y)
}

// Input is the gradient of the input, dy·W summed over the tensor axis, for this rank's rows. dy stays the caller's.
func (l *Column) Input(r *Rank, dy *tensor.Tensor) *tensor.Tensor {
	own := r.ownFeatures(&l.Linear, 0, dy)
	defer drop(own, dy)
	dx := r.activation(dy.Rows(), l.in())
	return r.sum(tensor.MatMul{C: dx, A: own, B: l.weight.value}, epilogue{})
}

// Grad adds to the gradients of the weight and the bias. It takes over dy [T out/TP] and x, this rank's rows.
func (l *Column) Grad(r *Rank, dy, x *tensor.Tensor) {
	all, own := r.gather(x, dy.Rows()), r.ownFeatures(&l.Linear, 0, dy)
	drop(x, all)
	drop(dy, own)
	r.WeightGrad(&l.Linear, own, all)
}

// Row is a Linear whose input features are split over the tensor axis; its bias is not. It ends a branch of the residual
// stream, with dropout.
type Row struct {
	Linear
	drop dropout
}

// Forward is y = residual + dropout(x·Wᵀ + b), summed over the tensor axis, for this rank's rows. x [T in/TP] and residual,
// which has this rank's rows, stay the caller's.
func (l *Row) Forward(r *Rank, b *Batch, x, residual *tensor.Tensor) *tensor.Tensor {
	own := r.ownFeatures(&l.Linear, 1, x)
	defer drop(own, x)
	y := r.activation(x.Rows(), l.out())
	op, e := tensor.MatMul{C: y, A: own, B: l.weight.value, TransB: true}, epilogue{l.bias.optional(), residual}
	if !l.drop.on(b) {
		return r.sum(op, e)
	}
	e.residual = nil
	y = r.sum(op, e)
	l.drop.apply(r, b, y, y, residual)
	return y
}

// Input is the gradient of this rank's input features, dropout(dy)·W, [T in/TP], given this rank's rows of dy, which stay
// the caller's. all is all rows of dropout(dy), for Grad.
func (l *Row) Input(r *Rank, b *Batch, dy *tensor.Tensor) (dx, all *tensor.Tensor) {
	own := l.drop.backward(r, b, dy)
	dx = r.activation(b.rows(), l.in())
	all = r.fromAll(tensor.MatMul{C: dx, B: l.weight.value}, own)
	if own != dy && own != all {
		own.Free()
	}
	return r.joinFeatures(&l.Linear, 1, dx), all
}

// Grad adds to the gradients of the weight and the bias. all is what Input made of dy, which stays the caller's and may
// change after the call. It takes over all, unless that is dy, and x [T in/TP].
func (l *Row) Grad(r *Rank, all, dy, x *tensor.Tensor) {
	own := r.ownFeatures(&l.Linear, 1, x)
	drop(x, own)
	if all == dy {
		r.WeightGradKeep(&l.Linear, dy, own)
		return
	}
	r.WeightGrad(&l.Linear, all, own)
}

// epilogue is what is added to a sum over the tensor axis, by one rank for each row: bias [out] and this rank's rows of a
// residual; nil for none.
type epilogue struct{ bias, residual *tensor.Tensor }

// sum computes the product op, this rank's term of a sum over the tensor axis, and returns the sum with the epilogue: of
// this rank's rows where rows are scattered, else of all. The sum of a chunk of rows is under way while the next chunk
// is computed; every element is the sum of the same terms in the same order.
func (r *Rank) sum(op tensor.MatMul, e epilogue) *tensor.Tensor {
	if r.scattered() {
		return r.sumScattered(op, e)
	}
	if leads(r.Groups.Tensor) {
		op.Bias, op.Residual = e.bias, e.residual
	}
	if r.chunks() == 1 {
		r.Dev.MatMul(op)
		reduce(r.Groups.Tensor, op.C, tensor.Sum)
		return op.C
	}
	f := r.takeFlight()
	for i := range r.chunks() {
		rows := mesh.Split(op.C.Rows(), r.chunks(), i)
		part := op
		if op.Residual != nil {
			part.Residual = op.Residual.RowRange(rows.Start, rows.Stop)
		}
		r.multiplyRows(part, rows)
		part.Residual.Free()
		view := op.C.RowRange(rows.Start, rows.Stop)
		f.add(r.Groups.Tensor.AllReduceStart(view, tensor.Sum), view)
		r.yield()
	}
	f.land(r)
	return op.C
}

// sumScattered computes the term block by block, because the owner of a block adds the epilogue of its rows. With
// chunks, the sum of a block is under way while the next is computed.
func (r *Rank) sumScattered(op tensor.MatMul, e epilogue) *tensor.Tensor {
	g, f := r.Groups.Tensor, r.takeFlight()
	for i := range g.Size() {
		part := op
		if i == g.Rank() {
			part.Bias, part.Residual = e.bias, e.residual
		}
		r.multiplyRows(part, r.block(op.C.Rows(), i))
		if r.chunks() > 1 {
			r.leave(f, op.C, i)
			r.yield()
		}
	}
	f.land(r)
	if r.chunks() > 1 {
		return r.keep(op.C)
	}
	return r.scatterSum(op.C)
}

// fromAll computes the product op of all rows, given this rank's rows x of op.A. It returns all rows of A: x itself where
// rows are not scattered. With chunks, blocks are multiplied as they come, this rank's own first.
func (r *Rank) fromAll(op tensor.MatMul, x *tensor.Tensor) (all *tensor.Tensor) {
	n := op.C.Rows()
	if !r.scattered() || r.chunks() == 1 {
		op.A = r.gather(x, n)
		r.Dev.MatMul(op)
		return op.A
	}
	op.A = r.Arena.New(tensor.Communication, x.DType(), n, x.Cols())
	g, f := r.Groups.Tensor, r.exchange(op.A, x)
	r.multiplyRows(op, r.block(n, g.Rank()))
	for i := range g.Size() {
		if i != g.Rank() {
			Must(f.works[i].Wait())
			r.multiplyRows(op, r.block(n, i))
		}
	}
	f.land(r)
	return op.A
}

// multiplyRows computes some rows of a product whose A is not transposed. Its residual has those rows.
func (r *Rank) multiplyRows(op tensor.MatMul, rows mesh.Range) {
	op.C, op.A = op.C.RowRange(rows.Start, rows.Stop), op.A.RowRange(rows.Start, rows.Stop)
	r.Dev.MatMul(op)
	op.C.Free()
	op.A.Free()
}

// chunks is the number of parts in which rows are computed and sent; 1 means all at once.
func (r *Rank) chunks() int {
	if degree(r.Groups.Tensor) == 1 {
		return 1
	}
	return max(r.Chunks, 1)
}
