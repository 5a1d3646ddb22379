package verify

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"carve/mesh"
)

// Diagnosis is what the evidence of a failed proof points at.
type Diagnosis struct {
	Fault     Fault // NoFault where it is none of those that have a name
	Rank      int   // of the world; -1 for none in particular
	Operation string
}

// String is the diagnosis in a sentence.
func (d Diagnosis) String() string { return d.Operation }

// inquiry looks for the reason of a difference, by evidence alone: it does not know what was planted.
type inquiry struct {
	*comparison
	proof *proofRun
	mesh  mesh.Mesh
	step  int
	terms []term // of gradients in the step
}

// diagnose explains what is bad. The rows are those of the first bad step, in order.
func (q *inquiry) diagnose(ctx context.Context, bad []Row) (Diagnosis, error) {
	q.step = bad[0].Step - 1
	if bad[0].Kind == Parameter {
		return q.parameter(bad), nil
	}
	if slices.ContainsFunc(bad, func(r Row) bool { return math.IsInf(r.Error, 1) && r.Rank < 0 }) {
		return Diagnosis{NoFault, -1, "no rank holds all of the tensor: the layout lost a part of the model"}, nil
	}
	var err error
	if q.terms, err = findTerms(ctx, q.plan, q.proof.samples, q.ref, q.step); err != nil {
		return Diagnosis{}, fmt.Errorf("verify: looking for the terms of the gradient: %w", err)
	}
	if bad[0].Kind == Loss { // no sum of gradients does that
		if d, ok := q.lost(); ok {
			return d, nil
		}
		return q.passes(ctx, bad)
	}
	fits := q.fits(bad)
	if d, ok := q.sums(fits); ok {
		return d, nil
	}
	if bad[0].Kind == Gradient && bad[0].Name == normName {
		return Diagnosis{NoFault, bad[0].Rank, "every gradient is right and their norm is not: the sum of squares over the ranks counts some part twice or not at all"}, nil
	}
	return q.passes(ctx, bad)
}

// parameter explains a wrong update of right gradients.
func (q *inquiry) parameter(bad []Row) Diagnosis {
	first := bad[0]
	var stale, other []int
	before := q.ref.before(q.step)[first.Name]
	for _, r := range bad {
		if r.Name != first.Name {
			continue
		}
		unchanged := true
		for _, b := range q.ranks[r.Rank].got[key{Parameter, r.Name}] {
			right := differs(b.data, q.ref.moments[q.step].params[r.Name].part(b.region)) <= q.bound*before.scale
			unchanged = unchanged && (right || differs(b.data, before.part(b.region)) <= q.bound*before.scale)
		}
		if unchanged {
			stale = append(stale, r.Rank)
		} else {
			other = append(other, r.Rank)
		}
	}
	if len(stale) > 0 {
		return Diagnosis{StaleParameter, stale[0], fmt.Sprintf(
			"stale parameter: rank %d still has %s as before the update, though its gradient is right; its update, or the all-gather or broadcast of the updated values, passed it by",
			stale[0], first.Name)}
	}
	if slices.Contains(q.ref.states, first.Name) {
		return Diagnosis{NoFault, other[0], fmt.Sprintf("%s on rank %d moved otherwise: the loads of the experts were not summed over every rank that holds the layer or has other rows", first.Name, other[0])}
	}
	return Diagnosis{NoFault, other[0], fmt.Sprintf("the gradient of %s is right and its update on rank %d is not: the optimizer's state, rate, clipping or decay differs", first.Name, other[0])}
}

// differs is the largest difference of two lists.
func differs(a, b []float64) (worst float64) {
	for i, v := range a {
		worst = max(worst, finite(math.Abs(v-b[i])))
	}
	return worst
}

// numbers writes ranks: "3", or "1, 3".
func numbers(ranks []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ranks), " ", ", "), "[]")
}
