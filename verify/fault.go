package verify

import (
	"fmt"
	"slices"
	"strings"

	"carve/mesh"
	"carve/plan"
)

// Fault is a mistake that systems of this kind have made. One can be planted into a proof, to see it caught; and the
// diagnosis of a proof names the one that its evidence points at.
type Fault uint8

// The faults.
const (
	NoFault          Fault = iota
	DroppedReduction       // a rank's term is missing in the sum of a gradient
	DoubledReduction       // a rank's term is there twice
	WrongGroup             // gradients are summed over other ranks than they should
	SwappedRingStep        // keys and values of another position than attention thinks
	LostMicroBatch         // the gradient of a micro-batch is not added
	StaleParameter         // a rank goes on with the value before the update
)

func faultNames() []string {
	return []string{
		"none", "dropped-reduction", "doubled-reduction", "wrong-group", "swapped-ring-step", "lost-micro-batch", "stale-parameter",
	}
}

// Faults lists what can be planted.
func Faults() []Fault {
	return []Fault{DroppedReduction, DoubledReduction, WrongGroup, SwappedRingStep, LostMicroBatch, StaleParameter}
}

// String is the name on the command line.
func (f Fault) String() string {
	if names := faultNames(); int(f) < len(names) {
		return names[f]
	}
	return fmt.Sprintf("fault(%d)", uint8(f))
}

// What says what is planted.
func (f Fault) What() string {
	switch f {
	case NoFault:
		return "nothing"
	case DroppedReduction:
		return "a data-parallel rank's term is missing in the first sum of gradients"
	case DoubledReduction:
		return "a data-parallel rank's term is in the first sum of gradients twice"
	case WrongGroup:
		return "gradients are summed over each half of the data-parallel ranks alone"
	case SwappedRingStep:
		return "attention takes keys and values of one context rank for those of another"
	case LostMicroBatch:
		return "the last micro-batch of a data-parallel rank counts for nothing"
	case StaleParameter:
		return "a rank keeps a parameter as it was before the update"
	}
	return f.String()
}

// ParseFault is the fault of a name.
func ParseFault(name string) (Fault, error) {
	names := faultNames()
	if i := slices.Index(names, name); i > 0 {
		return Fault(i), nil
	}
	return NoFault, fmt.Errorf("verify: no fault %q; use %s", name, strings.Join(names[1:], ", "))
}

// Place tells why a fault cannot happen under a plan; nil where it can.
func (f Fault) Place(p plan.Plan) error {
	d := p.Layout.Degrees
	switch f {
	case DroppedReduction, DoubledReduction, WrongGroup:
		if d.Over(mesh.DenseData) == 1 {
			return fmt.Errorf("verify: %s has no place in a layout of %v: no ranks sum gradients over data; use dp, cp or ep of 2 or more", f, d)
		}
	case SwappedRingStep:
		switch {
		case d[mesh.CP] == 1:
			return fmt.Errorf("verify: %s has no place in a layout of %v; use cp of 3 or more", f, d)
		case d[mesh.CP] == 2 && p.Layout.Context.Kind == plan.Ring:
			return fmt.Errorf("verify: %s has no place in a ring of 2 ranks, which has one step; use cp of 3 or more", f)
		}
	case NoFault, LostMicroBatch, StaleParameter:
	}
	return nil
}
