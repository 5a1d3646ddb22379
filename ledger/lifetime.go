package ledger

import (
	"fmt"

	"carve/parallel"
	"carve/record"
)

// Lifetime is how long a tensor is in use; see the package comment.
type Lifetime uint8

// The lifetimes, from the longest.
const (
	Run Lifetime = iota
	Kept
	Crossing
	Transient
)

// String is the name in tables: "run", "forward to backward", "between actions", "transient".
func (l Lifetime) String() string {
	switch l {
	case Run:
		return "run"
	case Kept:
		return "forward to backward"
	case Crossing:
		return "between actions"
	case Transient:
		return "transient"
	}
	return fmt.Sprintf("lifetime(%d)", uint8(l))
}

// between is the lifetime of what is taken at one moment and given back at another.
func between(born, died record.Moment) Lifetime {
	switch {
	case born.Step == record.Building && died.Step != record.Building:
		return Run
	case born.Step == died.Step && born.Action == died.Action && born.Phase == died.Phase:
		return Transient
	case forwards(born.Phase) && (died.Phase == parallel.Backward || died.Phase == parallel.WeightGradient || died.Phase == parallel.Both):
		return Kept
	}
	return Crossing
}

// forwards tells whether a forward pass runs in a phase.
func forwards(p parallel.Phase) bool { return p == parallel.Forward || p == parallel.Both }
