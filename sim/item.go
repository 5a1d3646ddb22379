package sim

import (
	"fmt"

	"carve/mesh"
	"carve/schedule"
	"carve/unit"
)

// Kind is what an item does.
type Kind uint8

// The kinds.
const (
	Compute  Kind = iota
	Blocking      // a collective that the rank stands still for
	Start         // a collective that goes on beside the rank
	Wait          // for the oldest of its group that was started and not waited for
)

// Axis is what exposed time is counted by: the axes of the mesh, and all ranks together.
type Axis uint8

// World is the axis of what all ranks take part in; the others are those of [mesh.Axis].
const World = Axis(mesh.AxisCount)

// AxisCount is the number of axes.
const AxisCount = mesh.AxisCount + 1

// String is the axis's name; "world" for all ranks together.
func (a Axis) String() string {
	switch {
	case a < World:
		return mesh.Axis(a).String()
	case a == World:
		return "world"
	}
	return fmt.Sprintf("axis(%d)", uint8(a))
}

// Item is a stretch of what a rank does.
type Item struct {
	Kind    Kind
	Name    string // of the operation
	Seconds unit.Seconds
	FLOPs   unit.FLOPs // of products and attention, when computing
	Level   int        // of links, of a collective; noPort for what comes in beside what goes out
	Axis    Axis
	Group   int // whose order counts; numbers of the Work
	Stages  int // that take part; 1 for the rank's own
}

// noPort is the level of what uses no port of the rank.
const noPort = -1

// key is a kind of action: all of a kind consist of the same.
type key struct {
	op     schedule.Op
	chunk  int
	with   schedule.Op
	second int
}

func keyOf(a schedule.Action) key { return key{a.Op, a.Chunk, a.With.Op, a.With.Chunk} }

// Work is what the actions of one stage's rank consist of.
type Work struct {
	Rank   int
	Groups []string // names, by Item.Group
	// Message is the time of sending to each neighbour, by pipeline coordinate, and the level that it crosses.
	Message map[int]Message
	actions map[key]*variants
	tail    []Item // after the schedule's list
}

// Message is what sending to a neighbour costs.
type Message struct {
	Seconds unit.Seconds
	Level   int
}

// variants are the first, the last and another action of a kind.
type variants struct{ first, middle, last []Item }

// Only makes the work of a rank that computes for so long in an action and does nothing else; messages take no time.
func Only(rank int, seconds func(schedule.Op) unit.Seconds) *Work {
	w := &Work{Rank: rank, Message: map[int]Message{}, actions: map[key]*variants{}}
	compute := func(op schedule.Op) []Item { return []Item{{Kind: Compute, Seconds: seconds(op)}} }
	for chunk := range maxChunks {
		for _, op := range []schedule.Op{schedule.Forward, schedule.Backward, schedule.Input, schedule.Weight} {
			items := compute(op)
			w.actions[key{op: op, chunk: chunk}] = &variants{items, items, items}
		}
	}
	return w
}

// maxChunks is the most chunks of a rank that Only makes work for.
const maxChunks = 8

// of is what the i-th of n actions of a kind consists of.
func (w *Work) of(a schedule.Action, i, n int) ([]Item, error) {
	v := w.actions[keyOf(a)]
	switch {
	case v == nil && a.Op == schedule.Pair: // not recorded: one half after the other
		f, err := w.of(schedule.Action{Op: schedule.Forward, Chunk: a.Chunk}, i, n)
		if err != nil {
			return nil, err
		}
		b, err := w.of(schedule.Action{Op: a.With.Op, Chunk: a.With.Chunk}, i, n)
		return append(append([]Item(nil), f...), b...), err
	case v == nil:
		return nil, fmt.Errorf("sim: no record has %v on rank %d", a, w.Rank)
	case i == n-1:
		return v.last, nil
	case i == 0:
		return v.first, nil
	}
	return v.middle, nil
}
