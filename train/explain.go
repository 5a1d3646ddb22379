package train

import (
	"errors"
	"fmt"
	"math"

	"carve/nn"
	"carve/tensor"
)

// NonFiniteError is the end of a run whose numbers ran away. Nothing was saved at this step.
type NonFiniteError struct {
	Step  int
	What  string // "the loss is NaN"
	First error  // a *nn.NonFiniteError that names the first place, or nil when it did not show again
}

func (e *NonFiniteError) Error() string {
	where := "it did not show again when the step was repeated; is the memory sound?"
	if first, ok := errors.AsType[*nn.NonFiniteError](e.First); ok {
		where = fmt.Sprintf("the first non-finite number is in the %s of %s; use a lower learning rate, a longer warm-up or clipping",
			first.What, first.Layer)
	}
	return fmt.Sprintf("train: %s at step %d: %s", e.What, e.Step, where)
}

func (e *NonFiniteError) Unwrap() error { return e.First }

// explain looks for the first non-finite number, by the forward and backward of the step once more. Every rank calls it;
// the one that found the earliest returns the error, and the others are cancelled by it.
func (w *worker) explain(what string) error {
	w.enter(searching)
	found, err := w.engine.Inspect()
	if err != nil {
		return err
	}
	finder, err := w.earliest(found)
	if err != nil {
		return err
	}
	switch {
	case finder == w.end.Rank():
		return &NonFiniteError{w.at.step, what, found}
	case finder < 0 && w.leads():
		return &NonFiniteError{w.at.step, what, nil}
	}
	return w.world.Barrier() // ends with the finder's error
}

// earliest is the rank whose finding is the earliest in the order of a step, or -1 when no rank found anything.
func (w *worker) earliest(found *nn.NonFiniteError) (int, error) {
	world := w.world.Size()
	none := int32(math.MaxInt32)
	mine := w.rank.Arena.New(tensor.Communication, tensor.Int32, 1)
	defer mine.Free()
	mine.I32()[0] = none
	if found != nil {
		mine.I32()[0] = int32(found.Order()*world + w.end.Rank())
	}
	if world > 1 {
		if err := w.world.AllReduce(mine, tensor.Min); err != nil {
			return 0, err
		}
	}
	if first := mine.I32()[0]; first < none {
		return int(first) % world, nil
	}
	return -1, nil
}

// everywhere tells whether a condition holds on every rank.
func (w *worker) everywhere(holds bool) (bool, error) { //nolint:revive // a number that is sent, not a way to behave
	if w.world.Size() == 1 {
		return holds, nil
	}
	mine := w.rank.Arena.New(tensor.Communication, tensor.Int32, 1)
	defer mine.Free()
	mine.I32()[0] = 0
	if holds {
		mine.I32()[0] = 1
	}
	err := w.world.AllReduce(mine, tensor.Min)
	return mine.I32()[0] == 1, err
}
