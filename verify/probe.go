package verify

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	"carve/mesh"
	"carve/nn"
	"carve/parallel"
	"carve/plan"
	"carve/tensor"
)

// probe watches what passes between layers in one step. It is the visitor of a run, and the observer of every rank.
type probe struct {
	plan  plan.Plan
	step  int
	ranks []*rankProbe
}

// rankProbe is what one rank shows.
type rankProbe struct {
	of   *probe
	rank int
	now  int        // step that the rank is in
	mu   sync.Mutex // guards seen: two micro-batches may be under way
	seen []sight
}

// sight is a tensor of the residual stream, a number for each row.
type sight struct {
	sight  sightKey
	prints []float64
}

// sightKey says what was seen: of the micro-batch that begins with a sample of the global batch.
type sightKey struct {
	sample int
	layer  string
	what   nn.Seen
}

func newProbe(p plan.Plan, step int) *probe {
	b := &probe{plan: p, step: step, ranks: make([]*rankProbe, p.Layout.World())}
	for i := range b.ranks {
		b.ranks[i] = &rankProbe{of: b, rank: i}
	}
	return b
}

func (*probe) began(*parallel.Engine)        {}
func (*probe) reduced(*parallel.Engine, int) {}

func (b *probe) updated(e *parallel.Engine, step int, _ parallel.Result) {
	b.ranks[e.World().Rank()].now = step + 1
}

// Observe implements [nn.Observer].
func (r *rankProbe) Observe(sample int, layer string, what nn.Seen, t *tensor.Tensor) {
	if r.now != r.of.step {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, sight{sightKey{sample, layer, what}, prints(t)})
}

// prints is a number for each row of t, made of all its elements with unlike weights, so that rows that differ have
// different ones.
func prints(t *tensor.Tensor) []float64 {
	out, cols := make([]float64, t.Rows()), t.Cols()
	for i, v := range t.F64() {
		out[i/cols] += v * (0.5 + float64(mix(uint64(i%cols))>>11)/(1<<53))
	}
	return out
}

// rows are the rows of a micro-batch, of whole sequences, that a rank's tensor of n rows has.
func (b *probe) rows(m mesh.Mesh, rank, n int) []int {
	cp, s := m.Degree(mesh.CP), b.plan.Workload.Sequence
	balance := mesh.Zigzag
	if b.plan.Layout.Context.Balance == plan.Contiguous {
		balance = mesh.Contiguous
	}
	local := make([]int32, s/cp)
	balance.Positions(local, s, cp, m.Coordinate(rank, mesh.CP))
	var rows []int
	for sequence := range b.plan.MicroBatch {
		for _, at := range local {
			rows = append(rows, sequence*s+int(at))
		}
	}
	if n < len(rows) { // sequence parallelism: a block of them
		mine := mesh.Split(len(rows), m.Degree(mesh.TP), m.Coordinate(rank, mesh.TP))
		rows = rows[mine.Start:mine.Stop]
	}
	return rows
}

// deviation is a place where a rank differs from the one rank.
type deviation struct {
	key   sightKey
	order int // of the place in a micro-batch's way
	rank  int
	bad   []int // rows
}

// passes looks for the first place in forward and backward where the layout differs.
func (q *inquiry) passes(ctx context.Context, bad []Row) (Diagnosis, error) {
	one, many := newProbe(Alone(q.plan), q.step), newProbe(q.plan, q.step)
	for _, b := range []*probe{one, many} {
		w := world{plan: b.plan, samples: q.proof.samples, steps: q.step + 1, visitor: b}
		w.observe = func(rank int) nn.Observer { return b.ranks[rank] }
		if b == many {
			w.plant = q.proof.plant
		}
		if err := w.run(ctx); err != nil {
			return Diagnosis{}, fmt.Errorf("verify: looking for the layer: %w", err)
		}
	}
	found := q.deviations(one.ranks[0].seen, many)
	if len(found) == 0 {
		return q.between(bad), nil
	}
	first := found[0]
	var ranks []int
	for _, d := range found {
		if d.order == first.order && d.key == first.key {
			ranks = append(ranks, d.rank)
		}
	}
	return q.layer(first, ranks), nil
}

// deviations lists where ranks differ, in the order of a micro-batch's way, then by sample and rank.
func (q *inquiry) deviations(want []sight, got *probe) (found []deviation) {
	known, order := map[sightKey][]float64{}, map[sightKey]int{}
	for _, s := range want {
		known[s.sight] = s.prints
		if place := (sightKey{0, s.sight.layer, s.sight.what}); order[place] == 0 {
			order[place] = len(order) + 1
		}
	}
	for _, r := range got.ranks {
		for _, s := range r.seen {
			d := deviation{key: s.sight, order: order[sightKey{0, s.sight.layer, s.sight.what}], rank: r.rank}
			if d.bad = differ(known[s.sight], s.prints, got.rows(q.mesh, r.rank, len(s.prints))); len(d.bad) > 0 {
				found = append(found, d)
			}
		}
	}
	slices.SortStableFunc(found, func(a, b deviation) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(a.key.sample, b.key.sample), cmp.Compare(a.rank, b.rank))
	})
	return found
}

// differ lists the rows whose prints differ by more than round-off.
func differ(want, got []float64, rows []int) (bad []int) {
	const roundOff = 1e-9 // relative to the largest
	largest := 0.0
	for _, v := range want {
		largest = max(largest, math.Abs(v))
	}
	for i, row := range rows {
		if row >= len(want) || finite(math.Abs(want[row]-got[i])) > roundOff*largest {
			bad = append(bad, row)
		}
	}
	return bad
}

// layer explains the first place that differs.
func (q *inquiry) layer(d deviation, ranks []int) Diagnosis {
	where := fmt.Sprintf("the %s of %s on rank %s, for the micro-batch from sample %d on", d.key.what, d.key.layer, numbers(ranks), d.key.sample)
	attention := strings.HasSuffix(d.key.layer, "attn")
	l := q.plan.Layout
	if attention && l.Degrees[mesh.CP] > 1 && (l.Context.Kind == plan.AllToAll || !slices.Contains(d.bad, 0)) {
		return Diagnosis{SwappedRingStep, ranks[0], fmt.Sprintf(
			"context exchange: the first difference is %s; its input is right, and so are positions that see no other rank's keys: keys and values of another position arrived, by a swapped step of the %v over group context %v",
			where, l.Context.Kind, q.mesh.Group(ranks[0], mesh.Of(mesh.CP)))}
	}
	var there []string
	name := func(there2 bool, text string) {
		if there2 {
			there = append(there, text)
		}
	}
	name(l.Degrees[mesh.TP] > 1, fmt.Sprintf("the sums over group tensor %v", q.mesh.Group(ranks[0], mesh.Of(mesh.TP))))
	name(attention && l.Degrees[mesh.CP] > 1, fmt.Sprintf("the %v over group context %v", l.Context.Kind, q.mesh.Group(ranks[0], mesh.Of(mesh.CP))))
	name(!attention && l.Degrees[mesh.EP] > 1, fmt.Sprintf("dispatch and combine over group expert %v", q.mesh.Group(ranks[0], mesh.Of(mesh.EP))))
	name(l.Degrees[mesh.PP] > 1, fmt.Sprintf("the message from the stage before over group pipeline %v", q.mesh.Group(ranks[0], mesh.Of(mesh.PP))))
	if there == nil {
		there = []string{"the layer itself"}
	}
	return Diagnosis{NoFault, ranks[0], fmt.Sprintf("the first difference is %s; its input is right: look at %s", where, strings.Join(there, ", or at "))}
}

// between explains what is wrong though everything that passed between layers is right.
func (q *inquiry) between(bad []Row) Diagnosis {
	if bad[0].Kind == Loss {
		return Diagnosis{NoFault, -1, "every layer's output is right and the loss is not: the head, its sums over group tensor, or the sum of losses over the ranks"}
	}
	if q.shared[bad[0].Name] {
		return Diagnosis{NoFault, bad[0].Rank, fmt.Sprintf("every layer's output and input gradient is right: the sum of the terms of %s over group tensor %v is wrong or missing",
			bad[0].Name, q.mesh.Group(bad[0].Rank, mesh.Of(mesh.TP)))}
	}
	return Diagnosis{NoFault, bad[0].Rank, fmt.Sprintf("every layer's output and input gradient is right, and the gradient of %s is no sum of terms of micro-batches: it is computed, or put into its place, wrongly", bad[0].Name)}
}
