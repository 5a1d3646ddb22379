package tensor

import "fmt"

// need panics when a condition on the operands of an operation does not hold: a caller's bug.
func need(ok bool, op, what string) { //nolint:revive // an assertion
	if !ok {
		panic(fmt.Sprintf("tensor: %s: %s", op, what))
	}
}

// sameRuns panics unless two runs of heads have the same rows, heads and width.
func sameRuns(op string, a, b Columns) {
	if a.T.Rows() != b.T.Rows() || a.Heads != b.Heads || a.Width != b.Width {
		panic(fmt.Sprintf("tensor: %s: %d heads of %d in %v against %d heads of %d in %v",
			op, a.Heads, a.Width, a.T, b.Heads, b.Width, b.T))
	}
}

// sameLen panics unless two tensors have equally many elements.
func sameLen(op string, a, b *Tensor) {
	if a.Len() != b.Len() {
		panic(fmt.Sprintf("tensor: %s: %v against %v", op, a, b))
	}
}

// wantLen panics unless t has n elements.
func wantLen(op, name string, t *Tensor, n int) {
	if t.Len() != n {
		panic(fmt.Sprintf("tensor: %s: %s is %v, needs %d elements", op, name, t, n))
	}
}
