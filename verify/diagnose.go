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
	if bad[0].Kind == Loss {
		if d, ok := q.lost(); ok {
			return d, nil
		}
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

// fit is what a rank's gradient consists of: the factor of every term.
type fit struct {
	rank    int
	name    string
	axes    mesh.Axes // that the terms are summed over
	factors []float64
}

// enough is how many of a rank's gradients are looked at before it is left out.
const enough = 4

// fits explains, on every rank with bad gradients, one of them as a sum of terms with factors. Ranks whose gradient is no such
// sum are left out.
func (q *inquiry) fits(bad []Row) (fits []fit) {
	tried := map[int]int{}
	for _, r := range bad {
		if r.Kind != Gradient || r.Name == normName || tried[r.Rank] == enough {
			continue
		}
		tried[r.Rank]++
		blocks := q.ranks[r.Rank].got[key{Gradient, r.Name}]
		if factors, ok := q.factors(r.Rank, r.Name, blocks); ok {
			tried[r.Rank] = enough
			fits = append(fits, fit{r.Rank, r.Name, q.ref.axes[r.Name], factors})
		}
	}
	return fits
}

// explained is how much of a tensor's scale a sum of terms may leave, and how near to a whole number a factor is.
const explained = 1e-7

// factors finds the factors of the terms in a rank's blocks of a gradient; false where they do not explain it. Where there
// are too few numbers to tell micro-batches apart, all of a rank have one factor.
func (q *inquiry) factors(rank int, name string, blocks []block) ([]float64, bool) {
	var got []float64
	for _, b := range blocks {
		got = append(got, b.data...)
	}
	columns := make([][]float64, len(q.terms))
	of := make([]int, len(q.terms)) // column of a term
	for i, t := range q.terms {
		of[i] = i
		for _, b := range blocks {
			columns[i] = append(columns[i], t.grads[name].part(b.region)...)
		}
	}
	if len(got) < 2*len(columns) {
		columns, of = q.joined(rank, name, columns)
	}
	if len(got) < 2*len(columns) {
		return nil, false
	}
	c, rest, ok := leastSquares(columns, got)
	if !ok || rest > explained*q.ref.moments[q.step].grads[name].scale {
		return nil, false
	}
	factors := make([]float64, len(of))
	for i, column := range of {
		factors[i] = c[column]
	}
	return factors, true
}

// joined adds up the columns of terms of one rank.
func (q *inquiry) joined(rank int, name string, columns [][]float64) (sums [][]float64, of []int) {
	place := map[int]int{}
	for i, t := range q.terms {
		member := q.member(t, rank, name, q.ref.axes[name])
		at, ok := place[member]
		if !ok {
			at = len(sums)
			place[member], sums = at, append(sums, make([]float64, len(columns[i])))
		}
		for j, v := range columns[i] {
			sums[at][j] += v
		}
		of = append(of, at)
	}
	return sums, of
}

// factor tells whether a factor is, as far as one can see, the given number.
func factor(c, n float64) bool { return math.IsNaN(c) || math.Abs(c-n) <= math.Sqrt(explained) }

// sums explains factors of terms that are not all 1.
func (q *inquiry) sums(fits []fit) (Diagnosis, bool) {
	fits = slices.DeleteFunc(fits, func(f fit) bool { return len(f.other(1)) == 0 })
	if len(fits) == 0 {
		return Diagnosis{}, false
	}
	first := fits[0]
	wrong := first.other(1)
	k := first.factors[wrong[0]]
	for _, i := range wrong {
		if !factor(first.factors[i], k) {
			return Diagnosis{NoFault, first.rank, fmt.Sprintf("the gradient of %s on rank %d is a sum of the right terms with wrong factors: %s", first.name, first.rank, q.list(first))}, true
		}
	}
	if !factor(k, 0) {
		return q.repeated(first, wrong, k), true
	}
	return q.lacking(fits), true
}

// other lists the terms whose factor is not n.
func (f fit) other(n float64) (list []int) {
	for i, c := range f.factors {
		if !factor(c, n) {
			list = append(list, i)
		}
	}
	return list
}

// members are the ranks whose terms the listed ones are, in the group that sums the gradient of the fit.
func (q *inquiry) members(f fit, terms []int) (ranks []int) {
	for _, i := range terms {
		ranks = append(ranks, q.member(q.terms[i], f.rank, f.name, f.axes))
	}
	slices.Sort(ranks)
	return slices.Compact(ranks)
}

// group names the sum of a fit that a rank takes part in.
func (q *inquiry) group(f fit, rank int) string {
	name := "data"
	if f.axes == mesh.ExpertData {
		name = "expert-data"
	}
	return fmt.Sprintf("the sum of gradients over group %s %v", name, q.mesh.Group(rank, f.axes))
}

// repeated explains terms that are there k times.
func (q *inquiry) repeated(f fit, wrong []int, k float64) Diagnosis {
	if len(f.other(k)) == 0 {
		return Diagnosis{DoubledReduction, f.rank, fmt.Sprintf("doubled reduction: the gradient of %s on rank %d is %.6g times what it should be: %s ran more than once, or its scale is wrong",
			f.name, f.rank, k, q.group(f, f.rank))}
	}
	ranks := q.members(f, wrong)
	return Diagnosis{DoubledReduction, ranks[0], fmt.Sprintf("doubled reduction: the term of rank %s is %.6g times in %s", numbers(ranks), k, q.group(f, ranks[0]))}
}

// lost explains a wrong loss by a micro-batch whose loss is missing in that of its data rank, to the digits that sums leave.
func (q *inquiry) lost() (Diagnosis, bool) {
	for data := range q.plan.Layout.DataParallel() {
		short := q.expected(data, -1) - q.lossOf(data)
		if math.Abs(short) <= explained*q.expected(data, -1) {
			continue
		}
		for micro := range q.plan.MicroBatches() {
			one := q.expected(data, micro)
			if math.Abs(short-one) > explained*one {
				continue
			}
			rank := q.rankOf(data)
			return Diagnosis{LostMicroBatch, rank, fmt.Sprintf("lost micro-batch: the loss of micro-batch %d of data rank %d (rank %d), and what it adds to gradients, is missing",
				micro, data, rank)}, true
		}
	}
	return Diagnosis{}, false
}

// rankOf is the first rank of a data rank.
func (q *inquiry) rankOf(data int) int {
	for rank := range q.mesh.World() {
		if q.mesh.Index(rank, mesh.Samples) == data {
			return rank
		}
	}
	return -1
}

// lossOf is the loss that the ranks of a data rank counted.
func (q *inquiry) lossOf(data int) (sum float64) {
	for rank, r := range q.ranks {
		if q.mesh.Index(rank, mesh.Samples) == data {
			sum += r.loss[q.step]
		}
	}
	return sum
}

// expected is the loss of a micro-batch of a data rank, or of all (-1).
func (q *inquiry) expected(data, micro int) (sum float64) {
	for _, t := range q.terms {
		if t.data == data && (micro < 0 || t.micro == micro) {
			sum += t.loss
		}
	}
	return sum
}

// lacking explains terms that are missing in sums.
func (q *inquiry) lacking(fits []fit) Diagnosis {
	f := fits[0]
	if q.otherPipe(f) {
		return Diagnosis{NoFault, f.rank, fmt.Sprintf("the gradient of %s on rank %d has the terms of one direction of the pipeline only: the sum among the stages that hold it over group pipeline %v is wrong or missing",
			f.name, f.rank, q.mesh.Group(f.rank, mesh.Of(mesh.PP)))}
	}
	for _, one := range fits { // a rank that lacks its own term: the term was lost on its way into the sum
		if missing := q.members(one, one.other(1)); slices.Contains(missing, one.rank) {
			return q.dropped(one, missing)
		}
	}
	missing := q.members(f, f.other(1))
	same := true // every rank lacks the term of the same one, and has the others'
	for _, one := range fits {
		same = same && slices.Equal(missing, q.members(one, one.other(1)))
	}
	if same && len(missing) == 1 {
		return q.dropped(f, missing)
	}
	group := q.mesh.Group(missing[0], f.axes)
	return Diagnosis{WrongGroup, group[0], fmt.Sprintf("wrong group: the gradient of %s on rank %d has the terms of rank %s only, not those of rank %s: it was not summed over group %v",
		f.name, f.rank, numbers(q.members(f, f.other(0))), numbers(missing), group)}
}

// otherPipe tells whether the missing terms are those of the micro-batches of one direction of a pipeline that has two.
func (q *inquiry) otherPipe(f fit) bool {
	missing, all := map[int]int{}, map[int]int{} // terms by pipe
	for _, i := range f.other(1) {
		missing[q.program.Pipes[q.terms[i].micro]]++
	}
	for _, t := range q.terms {
		all[q.program.Pipes[t.micro]]++
	}
	for pipe, n := range missing {
		return len(all) > 1 && len(missing) == 1 && n == all[pipe]
	}
	return false
}

func (q *inquiry) dropped(f fit, missing []int) Diagnosis {
	return Diagnosis{DroppedReduction, missing[0], fmt.Sprintf("dropped reduction: the term of rank %s is missing in %s (gradient of %s on rank %d)",
		numbers(missing), q.group(f, missing[0]), f.name, f.rank)}
}

// list writes the factors of terms that are not 1.
func (q *inquiry) list(f fit) string {
	var parts []string
	for _, i := range f.other(1) {
		t := q.terms[i]
		parts = append(parts, fmt.Sprintf("%.4g of micro-batch %d of data rank %d", f.factors[i], t.micro, t.data))
	}
	return strings.Join(parts[:min(len(parts), 4)], ", ")
}

// numbers writes ranks: "3", or "1, 3".
func numbers(ranks []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(ranks), " ", ", "), "[]")
}
