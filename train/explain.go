package train

import (
	"errors"
	"fmt"

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

// explain looks for the first non-finite number, by a second pass through the micro-batch that showed one, or the
// last. Every rank calls it; the first that finds one returns the error, and the others are cancelled by it.
func (w *worker) explain(what string) error {
	w.enter(searching)
	b := w.micro(w.suspect)
	found := w.model.Check(w.rank, &b.Batch)
	b.free()
	finder, err := w.lowest(found != nil)
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

// lowest is the lowest rank for which a condition holds, or -1.
func (w *worker) lowest(holds bool) (int, error) { //nolint:revive // a number that is sent, not a way to behave
	mine := w.rank.Arena.New(tensor.Communication, tensor.Int32, 1)
	defer mine.Free()
	none := int32(w.world.Size())
	mine.I32()[0] = none
	if holds {
		mine.I32()[0] = int32(w.end.Rank())
	}
	if w.world.Size() > 1 {
		if err := w.world.AllReduce(mine, tensor.Min); err != nil {
			return 0, err
		}
	}
	if lowest := mine.I32()[0]; lowest < none {
		return int(lowest), nil
	}
	return -1, nil
}
