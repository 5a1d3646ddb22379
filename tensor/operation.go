package tensor

import (
	"fmt"

	"carve/unit"
)

// Operation is one call of a device's method as a [Meta] device records it: what a price is made of.
type Operation struct {
	Kind  OpKind
	DType DType  // of the operands that the arithmetic is about
	Dims  [4]int // see the kinds
	FLOPs unit.FLOPs
	// Read and Written are the bytes that pass between memory and kernel if every operand passes once.
	Read, Written unit.Bytes
	Owner         string // what the rank was doing, as told to [Arena.At]
}

func newOperation(k OpKind, d DType, dims [4]int, flops float64, read, written int, owner string) Operation {
	return Operation{k, d, dims, unit.FLOPs(flops), unit.Bytes(read), unit.Bytes(written), owner}
}

// Moved is the bytes that pass between memory and kernel.
func (o Operation) Moved() unit.Bytes { return o.Read + o.Written }

// OpKind is a device's method.
type OpKind uint8

// The kinds, and what Dims holds; what is not named is [rows cols].
const (
	OpMatMul            OpKind = iota // [M N K]
	OpSumRows                         //
	OpAttention                       // [B·S, B·SK, A, D]: query rows, key rows, query heads, head size
	OpAttentionBackward               // the same
	OpRotate                          // rows, A·D
	OpRMSNorm
	OpRMSNormBackward
	OpLayerNorm
	OpLayerNormBackward
	OpSwiGLU // rows, F
	OpSwiGLUBackward
	OpGELU
	OpGELUBackward
	OpEmbed
	OpEmbedBackward
	OpFill
	OpCopy // also of columns
	OpAdd
	OpScale
	OpDropout
	OpNormal
	OpLossStats // rows, V
	OpLossMerge // rows
	OpLoss      // rows
	OpLossBackward
	OpRoute         // [N E k]
	OpRouteBackward // [N E k]
	OpAdmit         // N, k
	OpDeal          // N, k
	OpTally         // N, E
	OpScaleRows
	OpDotRows
	OpAdamW // elements
	OpSGD   // elements
	OpSquaredNorm
	OpFinite
	numOpKinds
)

// OpKinds lists every kind.
func OpKinds() []OpKind {
	kinds := make([]OpKind, numOpKinds)
	for i := range kinds {
		kinds[i] = OpKind(i)
	}
	return kinds
}

// opNames are the names of the kinds in tables.
var opNames = [numOpKinds]string{
	OpMatMul: "matmul", OpSumRows: "sum-rows", OpAttention: "attention", OpAttentionBackward: "attention-backward",
	OpRotate: "rotate", OpRMSNorm: "rms-norm", OpRMSNormBackward: "rms-norm-backward", OpLayerNorm: "layer-norm",
	OpLayerNormBackward: "layer-norm-backward", OpSwiGLU: "swiglu", OpSwiGLUBackward: "swiglu-backward", OpGELU: "gelu",
	OpGELUBackward: "gelu-backward", OpEmbed: "embed", OpEmbedBackward: "embed-backward", OpFill: "fill", OpCopy: "copy",
	OpAdd: "add", OpScale: "scale", OpDropout: "dropout", OpNormal: "normal", OpLossStats: "loss-stats", OpLossMerge: "loss-merge", OpLoss: "loss",
	OpLossBackward: "loss-backward", OpRoute: "route", OpRouteBackward: "route-backward", OpAdmit: "admit", OpDeal: "deal", OpTally: "tally",
	OpScaleRows: "scale-rows", OpDotRows: "dot-rows", OpAdamW: "adamw", OpSGD: "sgd", OpSquaredNorm: "squared-norm", OpFinite: "finite",
}

// String is the name in tables: "rms-norm".
func (k OpKind) String() string {
	if k < numOpKinds {
		return opNames[k]
	}
	return fmt.Sprintf("opkind(%d)", uint8(k))
}

// perElement is the FLOPs of one element of a pointwise operation: additions, multiplications and comparisons count 1,
// and so do exponentials, roots and divisions. They matter to nobody's sum: such operations wait for memory.
func (k OpKind) perElement() float64 {
	switch k {
	case OpSumRows, OpEmbedBackward, OpAdd, OpScale, OpAdmit, OpDeal, OpTally, OpScaleRows:
		return 1
	case OpLossMerge, OpLoss, OpSquaredNorm, OpDotRows:
		return 2
	case OpRotate, OpLossStats, OpLossBackward, OpDropout:
		return 3
	case OpRMSNorm, OpSwiGLU, OpRoute, OpRouteBackward:
		return 5
	case OpLayerNorm, OpSGD:
		return 7
	case OpGELU, OpSwiGLUBackward:
		return 10
	case OpRMSNormBackward:
		return 11
	case OpLayerNormBackward, OpAdamW:
		return 15
	case OpGELUBackward:
		return 20
	case OpMatMul, OpAttention, OpAttentionBackward, OpEmbed, OpFill, OpCopy, OpNormal, OpFinite, numOpKinds:
	}
	return 0
}

// OpTotal is the sum over operations.
type OpTotal struct {
	Calls         int
	FLOPs         unit.FLOPs
	Read, Written unit.Bytes
}

// OpTotals sums operations by kind.
type OpTotals [numOpKinds]OpTotal

// Record adds an operation: a [MetaOptions].Record.
func (t *OpTotals) Record(o Operation) { t[o.Kind].Record(o) }

// Record adds an operation.
func (t *OpTotal) Record(o Operation) {
	t.Calls++
	t.FLOPs += o.FLOPs
	t.Read += o.Read
	t.Written += o.Written
}

// OpLog keeps every operation in order.
type OpLog []Operation

// Record appends an operation: a [MetaOptions].Record.
func (l *OpLog) Record(o Operation) { *l = append(*l, o) }
