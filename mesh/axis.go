package mesh

import (
	"fmt"
	"strings"
)

// Axis is one of the five ways of splitting the work.
type Axis uint8

// The axes. Their values index Degrees, Coordinates and Spec; they say nothing of the rank order.
const (
	DP Axis = iota
	TP
	PP
	CP
	EP
)

// AxisCount is the number of axes.
const AxisCount = 5

// All lists the axes in the order in which a layout names their degrees.
var All = [AxisCount]Axis{DP, TP, PP, CP, EP}

// String returns the lower-case name used in plan files: "dp", "tp", "pp", "cp" or "ep".
func (a Axis) String() string {
	names := [AxisCount]string{"dp", "tp", "pp", "cp", "ep"}
	if int(a) >= len(names) {
		return fmt.Sprintf("axis(%d)", uint8(a))
	}
	return names[a]
}

// Noun returns what the axis splits by, for sentences: "data", "tensor", "pipeline", "context", "expert".
func (a Axis) Noun() string {
	nouns := [AxisCount]string{"data", "tensor", "pipeline", "context", "expert"}
	if int(a) >= len(nouns) {
		return a.String()
	}
	return nouns[a]
}

// Axes is a set of axes.
type Axes uint8

// Sets with a meaning of their own.
const (
	Samples    = Axes(1<<DP | 1<<EP)         // the samples of a batch are split over it
	DenseData  = Axes(1<<DP | 1<<EP | 1<<CP) // dense parameters are replicated over it
	ExpertData = Axes(1<<DP | 1<<CP)         // expert parameters are replicated over it
	Everything = Axes(1<<AxisCount - 1)
)

// Of returns the set of the given axes.
func Of(axes ...Axis) (set Axes) {
	for _, a := range axes {
		set |= 1 << a
	}
	return set
}

// Has tells whether a is in the set.
func (s Axes) Has(a Axis) bool { return s>>a&1 == 1 }

// String joins the names of the set's axes: "dp×cp×ep"; the empty set is "none".
func (s Axes) String() string {
	var names []string
	for _, a := range All {
		if s.Has(a) {
			names = append(names, a.String())
		}
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, "×")
}

// Degrees holds the size of each axis, indexed by Axis: Degrees{DP: 16, TP: 8}. Zero means 1.
type Degrees [AxisCount]int

// World returns the number of ranks, DP·TP·PP·CP·EP, with zero taken as 1.
func (d Degrees) World() int { return d.Over(Everything) }

// Over returns the product of the degrees of a set of axes, with zero taken as 1.
func (d Degrees) Over(set Axes) int {
	product := 1
	for _, a := range All {
		if set.Has(a) {
			product *= max(d[a], 1)
		}
	}
	return product
}

// String writes the degrees above 1, or "1 rank": "dp 16 × tp 8".
func (d Degrees) String() string {
	var parts []string
	for _, a := range All {
		if d[a] > 1 {
			parts = append(parts, fmt.Sprintf("%s %d", a, d[a]))
		}
	}
	if parts == nil {
		return "1 rank"
	}
	return strings.Join(parts, " × ")
}

// Coordinates is the position of a rank on each axis, indexed by Axis.
type Coordinates [AxisCount]int

// Order lists the axes from the fastest-varying rank digit to the slowest.
type Order [AxisCount]Axis

// DefaultOrder keeps the axes that talk most inside the fastest links.
func DefaultOrder() Order { return Order{TP, CP, EP, DP, PP} }

// Validate tells whether every axis appears once.
func (o Order) Validate() error {
	var seen Axes
	for _, a := range o {
		if a >= AxisCount {
			return fmt.Errorf("mesh: order names no axis %d; use each of dp, tp, pp, cp and ep once", a)
		}
		if seen.Has(a) {
			return fmt.Errorf("mesh: order names %s twice; use each of dp, tp, pp, cp and ep once", a)
		}
		seen |= 1 << a
	}
	return nil
}

// String joins the names from fastest to slowest: "tp-cp-ep-dp-pp".
func (o Order) String() string {
	names := make([]string, len(o))
	for i, a := range o {
		names[i] = a.String()
	}
	return strings.Join(names, "-")
}
