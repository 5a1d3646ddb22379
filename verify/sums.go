package verify

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"carve/mesh"
)

// fit is what a rank's gradient consists of: the factor of every term.
type fit struct {
	rank    int
	name    string
	axes    mesh.Axes // that the terms are summed over
	factors []float64
}

// enough is how many of a rank's gradients are looked at before it is left out.
const enough = 40

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

// factors finds the factors of the terms in a rank's blocks of a gradient; false where they do not explain it. One wrong
// factor is looked for first, of what one rank adds for a micro-batch or for all: that takes few numbers.
func (q *inquiry) factors(rank int, name string, blocks []block) ([]float64, bool) {
	w := q.ref.moments[q.step].grads[name]
	var got, off []float64
	columns := make([][]float64, len(q.terms))
	for _, b := range blocks {
		got = append(got, b.data...)
		off = append(off, w.part(b.region)...)
		for i, t := range q.terms {
			columns[i] = append(columns[i], t.grads[name].part(b.region)...)
		}
	}
	for i := range off {
		off[i] = got[i] - off[i]
	}
	for _, some := range q.parts(rank, name) {
		c, rest, ok := leastSquares([][]float64{sumOf(columns, some)}, off)
		if ok && rest <= explained*w.scale && !math.IsNaN(c[0]) {
			return changed(len(columns), some, 1+c[0]), true
		}
	}
	if len(got) < 2*len(columns) {
		return nil, false // too few numbers to tell
	}
	c, rest, ok := leastSquares(columns, got)
	return c, ok && rest <= explained*w.scale
}

// parts are terms that may be lost together: of a rank and every run of neighbouring micro-batches, the shortest first, and of
// every run of neighbouring ranks.
func (q *inquiry) parts(rank int, name string) (parts [][]int) {
	var members []int // in the order of the terms
	of := map[int][][]int{}
	for i, t := range q.terms {
		member := q.member(t, rank, name, q.ref.axes[name])
		if of[member] == nil {
			members = append(members, member)
			of[member] = make([][]int, q.plan.MicroBatches())
		}
		of[member][t.micro] = append(of[member][t.micro], i)
	}
	for length := range q.plan.MicroBatches() {
		for _, member := range members {
			micros := of[member]
			for from := range len(micros) - length {
				parts = append(parts, slices.Concat(micros[from:from+length+1]...))
			}
		}
	}
	slices.Sort(members)
	for length := 2; length < len(members); length++ {
		for from := range len(members) - length + 1 {
			var part []int
			for _, member := range members[from : from+length] {
				part = append(part, slices.Concat(of[member]...)...)
			}
			parts = append(parts, part)
		}
	}
	return parts
}

// sumOf adds up some columns.
func sumOf(columns [][]float64, some []int) []float64 {
	sum := make([]float64, len(columns[0]))
	for _, i := range some {
		for j, v := range columns[i] {
			sum[j] += v
		}
	}
	return sum
}

// changed are n factors of 1, but for some.
func changed(n int, some []int, c float64) []float64 {
	factors := slices.Repeat([]float64{1}, n)
	for _, i := range some {
		factors[i] = c
	}
	return factors
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
