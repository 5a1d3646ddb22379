package tensor

import "fmt"

// DType is the type of a tensor's elements.
type DType uint8

// The dtypes. BF16 is a storage format: arithmetic on it is done in fp32.
const (
	FP32 DType = iota
	BF16
	FP64
	Int32
)

// Size is the number of bytes of one element.
func (d DType) Size() int {
	switch d {
	case FP32, Int32:
		return 4
	case BF16:
		return 2
	case FP64:
		return 8
	}
	panic(fmt.Sprintf("tensor: dtype %d is not known", uint8(d)))
}

// String is the name used in plans, tables and files.
func (d DType) String() string {
	switch d {
	case FP32:
		return "fp32"
	case BF16:
		return "bf16"
	case FP64:
		return "fp64"
	case Int32:
		return "int32"
	}
	return fmt.Sprintf("dtype(%d)", uint8(d))
}

// Category says what a tensor's memory is for; the arena counts by it.
type Category uint8

// The categories of the memory ledger.
const (
	Parameter Category = iota
	Gradient
	Optimizer
	Activation
	Communication
	Workspace
	KVCache
	numCategories
)

// Categories lists every category in the order of the ledger.
func Categories() []Category {
	return []Category{Parameter, Gradient, Optimizer, Activation, Communication, Workspace, KVCache}
}

// String is the name used in ledgers and metrics.
func (c Category) String() string {
	switch c {
	case Parameter:
		return "parameter"
	case Gradient:
		return "gradient"
	case Optimizer:
		return "optimizer"
	case Activation:
		return "activation"
	case Communication:
		return "communication"
	case Workspace:
		return "workspace"
	case KVCache:
		return "kv-cache"
	case numCategories:
	}
	return fmt.Sprintf("category(%d)", uint8(c))
}
