package verify

import (
	"context"
	"sync"

	"carve/mesh"
	"carve/parallel"
	"carve/plan"
)

// term is what one context rank adds to the gradient for one micro-batch: what a sum over data ranks consists of.
type term struct {
	data, micro int // of the layout: data rank, and which of its micro-batches
	context     int
	grads       map[string]*whole
	loss        float64
}

// findTerms computes the terms of a step, without the layout: from the reference's parameters before the step, on one rank,
// or on the context axis alone, where parts of sequences have gradients of their own.
func findTerms(ctx context.Context, p plan.Plan, s *samples, ref *reference, step int) ([]term, error) {
	alone := Alone(p)
	cp := p.Layout.Degrees[mesh.CP]
	alone.Layout.Degrees[mesh.CP], alone.Layout.Context = cp, p.Layout.Context
	alone.Workload.GlobalBatch = alone.MicroBatch
	alone.Optimizer.Name = plan.AdamW // every rank keeps every gradient
	perRank := p.MicroBatches()
	var all []term
	for micro := range perRank * p.Layout.DataParallel() {
		terms := make([]term, cp)
		for i := range terms {
			terms[i] = term{data: micro / perRank, micro: micro % perRank, context: i}
		}
		w := world{
			plan: alone, samples: s.alone(step, micro), first: step, steps: step + 1,
			visitor: &collector{from: ref.before(step), terms: terms}, plant: &planter{skip: everybody, step: step},
		}
		if err := w.run(ctx); err != nil {
			return nil, err
		}
		all = append(all, terms...)
	}
	return all, nil
}

// collector runs one step from given parameters and keeps the gradients and the loss of every rank.
type collector struct {
	from  map[string]*whole
	mu    sync.Mutex // guards terms
	terms []term     // by rank
}

func (c *collector) began(e *parallel.Engine) {
	for _, p := range parameters(e) {
		copy(p.tensor.F64(), c.from[p.param.Name].part(p.region))
	}
}

func (c *collector) reduced(e *parallel.Engine, _ int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.terms[e.World().Rank()].grads = keep(gradients(e))
}

func (c *collector) updated(e *parallel.Engine, _ int, r parallel.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.terms[e.World().Rank()].loss = r.Loss
}

// member is the rank of the world whose term it is, among those that sum the gradients of a parameter with the given rank.
func (q *inquiry) member(t term, rank int, name string, axes mesh.Axes) int {
	m := q.mesh
	at := m.Coordinates(rank)
	for _, other := range m.Group(rank, mesh.DenseData) {
		if m.Index(other, mesh.Samples) == t.data && m.Coordinate(other, mesh.CP) == t.context {
			for _, a := range mesh.All {
				if axes.Has(a) {
					at[a] = m.Coordinate(other, a)
				}
			}
		}
	}
	if len(q.holders[name]) > 1 { // two pipes
		at[mesh.PP] = q.holders[name][q.program.Pipes[t.micro]]
	}
	return m.Rank(at)
}
