package record

import (
	"carve/comm"
	"carve/parallel"
	"carve/schedule"
	"carve/tensor"
)

// Moment is when something happens on a rank.
type Moment struct {
	Step  int // from 0; Building before the first
	Phase parallel.Phase
	// Action is the schedule's, the last one that began; its Micro and Chunk say whose forward or backward it is. Outside of
	// the schedule's list, in reduction and update, it stays the last one.
	Action schedule.Action
	Ops    int    // computing operations before it, from the beginning of the building
	Owner  string // module that runs, as told to [tensor.Arena.At]
}

// Building is the step of what happens while the engine is made: parameters, optimizer states, buffers.
const Building = -1

// Sink hears what one rank does. Its methods are called one at a time.
type Sink interface {
	Compute(Moment, tensor.Operation)
	// Issue and Wait are the beginning and the end of an operation of a group; a transfer is known by its group and number.
	Issue(Moment, comm.Transfer)
	Wait(Moment, comm.Transfer)
	// Took and Gave are the life of a tensor, known by its number.
	Took(Moment, tensor.Allocation)
	Gave(Moment, tensor.Allocation)
}

// Nothing is a sink that hears nothing; embed it for the methods that do not matter.
type Nothing struct{}

// Compute implements [Sink].
func (Nothing) Compute(Moment, tensor.Operation) {}

// Issue implements [Sink].
func (Nothing) Issue(Moment, comm.Transfer) {}

// Wait implements [Sink].
func (Nothing) Wait(Moment, comm.Transfer) {}

// Took implements [Sink].
func (Nothing) Took(Moment, tensor.Allocation) {}

// Gave implements [Sink].
func (Nothing) Gave(Moment, tensor.Allocation) {}

// Log is a sink that keeps everything, in order.
type Log []Event

// Event is one thing that a rank does.
type Event struct {
	Moment
	What       What
	Operation  tensor.Operation  // of Computed
	Transfer   comm.Transfer     // of Issued and Waited
	Allocation tensor.Allocation // of Taken and Given
}

// What says which of an event's fields counts.
type What uint8

// The kinds of events: one for each method of [Sink].
const (
	Computed What = iota
	Issued
	Waited
	Taken
	Given
)

// Compute implements [Sink].
func (l *Log) Compute(m Moment, o tensor.Operation) {
	*l = append(*l, Event{Moment: m, What: Computed, Operation: o})
}

// Issue implements [Sink].
func (l *Log) Issue(m Moment, t comm.Transfer) {
	*l = append(*l, Event{Moment: m, What: Issued, Transfer: t})
}

// Wait implements [Sink].
func (l *Log) Wait(m Moment, t comm.Transfer) {
	*l = append(*l, Event{Moment: m, What: Waited, Transfer: t})
}

// Took implements [Sink].
func (l *Log) Took(m Moment, a tensor.Allocation) {
	*l = append(*l, Event{Moment: m, What: Taken, Allocation: a})
}

// Gave implements [Sink].
func (l *Log) Gave(m Moment, a tensor.Allocation) {
	*l = append(*l, Event{Moment: m, What: Given, Allocation: a})
}
