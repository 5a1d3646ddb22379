package verify

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"carve/mesh"
	"carve/parallel"
	"carve/plan"
	"carve/schedule"
)

// Names of what is compared beside parameters.
const (
	lossName = "loss"
	normName = "global norm"
)

// comparison holds every rank of a layout to the reference. It is the visitor of the layout's run.
type comparison struct {
	plan    plan.Plan
	ref     *reference
	bound   float64
	program *schedule.Program
	ranks   []rankComparison

	mu     sync.Mutex      // guards what follows
	held   map[key][]bool  // elements that some rank holds
	shared map[string]bool // parameters whose gradients have terms on the tensor axis
	// holders are the pipeline coordinates that hold a parameter, by pipe.
	holders map[string]map[int]int
}

// rankComparison is what one rank found; its goroutine alone uses it.
type rankComparison struct {
	worst map[key]Row
	bad   []Row           // of the first step that has any, in order
	got   map[key][]block // what the bad rows were judged by
	loss  []float64       // by step: this rank's term
}

// block is what a rank has of a tensor.
type block struct {
	region mesh.Region
	data   []float64
}

// key names a row.
type key struct {
	kind Kind
	name string
}

func newComparison(p plan.Plan, program *schedule.Program, ref *reference, o Options) *comparison {
	c := &comparison{plan: p, program: program, ref: ref, bound: o.Tolerance, ranks: make([]rankComparison, p.Layout.World()), held: map[key][]bool{}, shared: map[string]bool{}, holders: map[string]map[int]int{}}
	for i := range c.ranks {
		c.ranks[i] = rankComparison{worst: map[key]Row{}, got: map[key][]block{}, loss: make([]float64, o.Steps)}
	}
	return c
}

func (c *comparison) began(e *parallel.Engine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := e.Rank().At[mesh.PP]
	for i, chunk := range e.Model().Chunks {
		for _, u := range chunk.Units {
			for _, p := range u.Params {
				c.shared[p.Name] = p.Terms.Has(mesh.TP)
				if c.holders[p.Name] == nil {
					c.holders[p.Name] = map[int]int{}
				}
				c.holders[p.Name][c.program.Stages[at][i].Pipe] = at
			}
		}
	}
}

func (c *comparison) reduced(e *parallel.Engine, step int) {
	c.compare(e, step, Gradient, gradients(e), c.ref.moments[step].grads)
}

func (c *comparison) updated(e *parallel.Engine, step int, r parallel.Result) {
	rank := e.World().Rank()
	c.ranks[rank].loss[step] = r.Loss
	norm := c.ref.moments[step].norm
	c.judge(Row{normName, Gradient, finite(math.Abs(r.Norm-norm) / norm), step + 1, rank})
	c.compare(e, step, Parameter, parameters(e), c.ref.moments[step].params)
}

// compare holds a rank's pieces to the regions of the global tensors. The pieces of a tensor follow each other.
func (c *comparison) compare(e *parallel.Engine, step int, kind Kind, pieces []piece, all map[string]*whole) {
	for len(pieces) > 0 {
		n := 1
		for n < len(pieces) && pieces[n].param == pieces[0].param {
			n++
		}
		c.tensor(e.World().Rank(), step, kind, pieces[:n], all[pieces[0].param.Name])
		pieces = pieces[n:]
	}
}

// tensor compares the pieces of one tensor.
func (c *comparison) tensor(rank, step int, kind Kind, pieces []piece, w *whole) {
	k := key{kind, pieces[0].param.Name}
	worst, blocks := 0.0, make([]block, len(pieces))
	for i, p := range pieces {
		blocks[i] = block{p.region, floats(p.tensor)}
		want := w.part(p.region)
		for j, v := range blocks[i].data {
			worst = max(worst, finite(math.Abs(v-want[j])))
		}
		if step == 0 {
			c.hold(k, w, p)
		}
	}
	if c.judge(Row{k.name, kind, worst / w.scale, step + 1, rank}) {
		c.ranks[rank].got[k] = blocks
	}
}

// hold marks the elements of a piece as held.
func (c *comparison) hold(k key, w *whole, p piece) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held[k] == nil {
		c.held[k] = make([]bool, len(w.data))
	}
	w.each(0, 0, p.region, func(i, n int) {
		for j := range n {
			c.held[k][i+j] = true
		}
	})
}

// missing lists the tensors of which some element is on no rank: their error is the largest there is.
func (c *comparison) missing() (rows []Row) {
	check := func(name string, kinds ...Kind) {
		for _, kind := range kinds {
			if held := c.held[key{kind, name}]; held == nil || slices.Contains(held, false) {
				rows = append(rows, Row{name, kind, math.Inf(1), 1, -1})
			}
		}
	}
	for _, name := range c.ref.names {
		check(name, Gradient, Parameter)
	}
	for _, name := range c.ref.states {
		check(name, Parameter)
	}
	return rows
}

// judge notes a rank's row, and remembers it when it is bad and no step before was; it tells whether it did.
func (c *comparison) judge(row Row) bool {
	r := &c.ranks[row.Rank]
	r.note(row)
	if row.Error > c.bound && (len(r.bad) == 0 || r.bad[0].Step == row.Step) {
		r.bad = append(r.bad, row)
		return true
	}
	return false
}

// bad lists what is bad in the first step that has any, in the order of a step: the loss, gradients, parameters; of
// a kind in the model's order, and of a tensor by rank.
func (c *comparison) bad() []Row {
	rows := c.missing()
	for step := range c.ref.moments {
		if row := c.lossRow(step); row.Error > c.bound {
			rows = append(rows, row)
		}
	}
	for _, r := range c.ranks {
		rows = append(rows, r.bad...)
	}
	order := c.order()
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Kind, b.Kind), cmp.Compare(order[a.Name], order[b.Name]), cmp.Compare(a.Rank, b.Rank))
	})
	return slices.DeleteFunc(rows, func(r Row) bool { return r.Step > rows[0].Step })
}

// order is the place of every name in the model; the norm, which is taken last, comes after the others.
func (c *comparison) order() map[string]int {
	order := map[string]int{normName: math.MaxInt}
	for i, name := range slices.Concat(c.ref.names, c.ref.states) {
		order[name] = i
	}
	return order
}

// note keeps the worst of every tensor, the first of equals.
func (r *rankComparison) note(row Row) {
	k := key{row.Kind, row.Name}
	if before, ok := r.worst[k]; !ok || row.Error > before.Error {
		r.worst[k] = row
	}
}

// rows are the worst of every tensor over all ranks.
func (c *comparison) rows() []Row {
	all := rankComparison{worst: map[key]Row{}}
	for step := range c.ref.moments {
		all.note(c.lossRow(step))
	}
	for _, row := range c.missing() {
		all.note(row)
	}
	for _, r := range c.ranks {
		for _, row := range r.sorted() {
			all.note(row)
		}
	}
	rows := all.sorted()
	order := c.order()
	slices.SortStableFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(order[a.Name], order[b.Name]))
	})
	return rows
}

// lossRow compares the sum of the ranks' terms of a step's loss.
func (c *comparison) lossRow(step int) Row {
	sum, want := 0.0, c.ref.moments[step].loss
	for _, r := range c.ranks {
		sum += r.loss[step]
	}
	return Row{lossName, Loss, finite(math.Abs(sum-want) / math.Abs(want)), step + 1, -1}
}

// sorted lists the rows by kind and name.
func (r *rankComparison) sorted() []Row {
	rows := make([]Row, 0, len(r.worst))
	for _, row := range r.worst {
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Row) int { return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name)) })
	return rows
}
