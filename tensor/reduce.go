package tensor

import "fmt"

// ReduceOp is how a reducing collective combines elements.
type ReduceOp uint8

// The reductions of a collective. Avg is the sum divided by the number of operands, once.
const (
	Sum ReduceOp = iota
	Avg
	Min
	Max
)

// String is the name used in tables.
func (o ReduceOp) String() string {
	switch o {
	case Sum:
		return "sum"
	case Avg:
		return "avg"
	case Min:
		return "min"
	case Max:
		return "max"
	}
	return fmt.Sprintf("reduceop(%d)", uint8(o))
}
