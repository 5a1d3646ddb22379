package nn

import "fmt"

// Keeper has the parameters and gradients that a model has no memory for, and lends them to a unit while it runs: the
// seam of state sharding. It aims the unit's views with [Unit.AimValue] and [Unit.AimGrad].
//
// Every chunk tells it before and after it runs a unit, in the same order on all ranks that hold the unit.
type Keeper interface {
	// Enter returns when the unit has what the phase needs, and so have the units that it uses; but Fill is of the unit
	// alone.
	Enter(u *Unit, p Phase)
	// Leave ends what Enter began.
	Leave(u *Unit, p Phase)
}

// Phase is what a unit is run for.
type Phase uint8

// The phases of a micro-batch are Forward, then Backward, or BackwardInput and later BackwardWeight. A unit whose forward
// makes the gradients as well (a fused head) has only ForwardBackward.
const (
	Run             Phase = iota // values are read; nothing follows
	Forward                      // values are read; a backward follows
	ForwardBackward              // values are read, gradients added to
	Backward                     // values are read, gradients added to
	BackwardInput                // values are read, some gradients added to; BackwardWeight follows
	BackwardWeight               // the rest of the gradients is added to
	Fill                         // values are written
	nothing                      // the unit has nothing to do
)

// String is the name in tables.
func (p Phase) String() string {
	names := [...]string{
		"run", "forward", "forward and backward", "backward", "backward of the input", "backward of the weights", "fill", "nothing",
	}
	if int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("phase(%d)", uint8(p))
}

// Values tells whether the phase reads values.
func (p Phase) Values() bool { return p <= BackwardInput }

// Gradients tells whether the phase adds to gradients.
func (p Phase) Gradients() bool { return p >= ForwardBackward && p <= BackwardWeight }

// run is the phase of a forward that nothing follows.
func (u *Unit) run() Phase {
	if len(u.Layers) == 0 {
		return nothing
	}
	return Run
}

// forward is the phase of the unit's forward in training.
func (u *Unit) forward() Phase {
	switch {
	case len(u.Layers) == 0:
		return nothing
	case u.fused():
		return ForwardBackward
	}
	return Forward
}

// backward is the phase of the unit's backward, or of one of its halves.
func (u *Unit) backward(p Phase) Phase {
	if len(u.Layers) == 0 || u.fused() {
		return nothing
	}
	return p
}

// fused tells whether the unit makes its gradients in its forward.
func (u *Unit) fused() bool {
	head, ok := u.Layers[len(u.Layers)-1].(*Head)
	return ok && head.work == Fused
}

// enter makes ready what a phase needs.
func (u *Unit) enter(r *Rank, p Phase) {
	if r.Keeper != nil && p != nothing {
		r.Keeper.Enter(u, p)
	}
}

// leave ends enter.
func (u *Unit) leave(r *Rank, p Phase) {
	if r.Keeper != nil && p != nothing {
		r.Keeper.Leave(u, p)
	}
}
