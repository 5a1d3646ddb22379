package ledger

import (
	"cmp"
	"fmt"
	"slices"

	"carve/mesh"
	"carve/plan"
	"carve/record"
	"carve/tensor"
	"carve/unit"
)

// Ledger is the memory of a plan.
type Ledger struct {
	Stages []Stage // by pipeline coordinate
}

// Stage is the memory of the ranks of one pipeline coordinate at their peak.
type Stage struct {
	Pipeline int // coordinate
	Rank     int // the one that was recorded; the others of the stage are alike
	Peak     unit.Bytes
	Usage    tensor.Usage // at the peak, by category
	Moment   Moment
	Steady   unit.Bytes // in use before the first step
	Lines    []Line     // largest first; they sum up to Peak
	Copies   Copies
}

// Moment is when the peak is.
type Moment struct {
	Phase  string // "forward", "backward", …; "building" before the first step
	Action string // of the schedule, "F0", "B3.1"; empty while building
	Module string // what the rank was doing: "model.layers.7.mlp"
}

// Line is tensors of one kind.
type Line struct {
	Category tensor.Category
	DType    tensor.DType
	Shape    []int
	Module   string // with * for numbers; empty for what belongs to no layer
	Lifetime Lifetime
	Tensors  int
	Bytes    unit.Bytes // of all of them
}

// Options say how the plan is run.
type Options struct {
	Threads int            // of a rank; 0 means 1. Each has workspace
	Kernels tensor.Kernels // whose workspace counts
}

// Of records one rank of every stage of a plan and accounts for its memory. The plan must be valid and one that the
// engine runs.
func Of(p plan.Plan, o Options) (*Ledger, error) {
	ranks, err := record.Representatives(p)
	if err != nil {
		return nil, fmt.Errorf("ledger: %w", err)
	}
	l := &Ledger{}
	for at, rank := range ranks {
		s, err := OfRank(p, rank, o)
		if err != nil {
			return nil, fmt.Errorf("ledger: pipeline stage %d: %w", at, err)
		}
		l.Stages = append(l.Stages, s)
	}
	return l, nil
}

// OfRank accounts for the memory of one rank.
func OfRank(p plan.Plan, rank int, o Options) (Stage, error) {
	grid, err := p.Layout.Mesh()
	if err != nil {
		return Stage{}, err
	}
	w := newWatch()
	r, err := record.Run(p, rank, record.Options{Threads: o.Threads, Kernels: o.Kernels, Sink: w})
	if err != nil {
		return Stage{}, err
	}
	s := Stage{
		Pipeline: r.At[mesh.PP], Rank: rank, Peak: r.Peak.Usage.Total(), Usage: r.Peak.Usage, Steady: r.Built.Total(),
		Lines: w.lines(r.Peak.Event), Copies: copiesOf(p, grid, r.Params),
	}
	at := w.moments[w.lives[r.Peak.Event-1].born]
	s.Moment = Moment{Phase: "building", Module: r.Peak.Owner}
	if at.Step != record.Building {
		s.Moment.Phase, s.Moment.Action = at.Phase.String(), at.Action.String()
	}
	return s, nil
}

// lines are the tensors in use right after an allocation, summed by kind and lifetime.
func (w *watch) lines(event int) []Line {
	type key struct {
		kind     kind
		lifetime Lifetime
	}
	index := map[key]int{}
	var lines []Line
	w.alive(event, func(k kind, l Lifetime, bytes unit.Bytes) {
		i, ok := index[key{k, l}]
		if !ok {
			i = len(lines)
			index[key{k, l}] = i
			lines = append(lines, Line{Category: k.category, DType: k.dtype, Shape: shape(k.dims), Module: k.module, Lifetime: l})
		}
		lines[i].Tensors++
		lines[i].Bytes += bytes
	})
	slices.SortStableFunc(lines, func(a, b Line) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Category, b.Category))
	})
	return lines
}

// shape is the sizes of the dimensions that there are.
func shape(dims [tensor.MaxDims]int) []int {
	n := len(dims)
	for n > 0 && dims[n-1] == 0 {
		n--
	}
	return slices.Clone(dims[:n])
}

// Highest returns the stage with the highest peak, the first of several.
func (l *Ledger) Highest() Stage {
	return slices.MaxFunc(l.Stages, func(a, b Stage) int {
		return cmp.Or(cmp.Compare(a.Peak, b.Peak), cmp.Compare(b.Pipeline, a.Pipeline))
	})
}

// Total is the sum of the stage's lines of a category.
func (s Stage) Total(c tensor.Category) (sum unit.Bytes) {
	for _, l := range s.Lines {
		if l.Category == c {
			sum += l.Bytes
		}
	}
	return sum
}
