package commtest

import (
	"fmt"

	"carve/comm"
	"carve/tensor"
)

// rank is one rank of a check's program.
type rank struct {
	comm.Endpoint
	arena *tensor.Arena
	all   *comm.Group // of the whole world
	made  []*tensor.Tensor
}

// tensor makes a tensor that the rank gives back at its end.
func (r *rank) tensor(d tensor.DType, n int) *tensor.Tensor {
	t := r.arena.NewZero(tensor.Communication, d, n)
	r.made = append(r.made, t)
	return t
}

func (r *rank) free() {
	for _, t := range r.made {
		t.Free()
	}
}

func (r *rank) run(f func(r *rank) error) error {
	all, err := r.Group("all", upTo(r.Size()))
	if err != nil {
		return err
	}
	r.all = all
	return f(r)
}

// upTo is 0, 1, …, n-1.
func upTo(n int) []int {
	s := make([]int, n)
	for i := range s {
		s[i] = i
	}
	return s
}

// guards is the number of elements around every operand that nobody may touch.
const guards = 9

// guard is their value, which no operand has.
const guard = 99

// operand is a tensor between guards.
type operand struct {
	whole *tensor.Tensor // with the guards
	t     *tensor.Tensor // without
}

// operand makes a tensor of n guards.
func (r *rank) operand(d tensor.DType, n int) operand {
	whole := r.tensor(d, n+2*guards)
	for i := range whole.Len() {
		set(whole, i, guard)
	}
	return operand{whole, whole.Slice(guards, guards+n)}
}

// filled is an operand with the given elements.
func (r *rank) filled(d tensor.DType, xs []float64) operand {
	o := r.operand(d, len(xs))
	for i, x := range xs {
		set(o.t, i, x)
	}
	return o
}

// check compares the elements with want, and the guards.
func (o operand) check(what string, want []float64) error {
	for i := range o.whole.Len() {
		w := float64(guard)
		if k := i - guards; k >= 0 && k < len(want) {
			w = want[k]
		}
		if x := get(o.whole, i); x != w {
			return fmt.Errorf("%s: element %d of %v is %v, want %v", what, i-guards, o.t, x, w)
		}
	}
	return nil
}
