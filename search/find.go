package search

import (
	"cmp"
	"fmt"
	"slices"

	"carve/mesh"
	"carve/plan"
	"carve/price"
	"carve/unit"
)

// kept is how many of the best are looked at closely.
const kept = 64

// Find returns the best layout. The error wraps [ErrNothingFits] when there is none, and says what is nearest.
func Find(q Question) (*Answer, error) {
	if err := q.check(); err != nil {
		return nil, err
	}
	s := finder{question: &q}
	for _, fast := range []int{q.domain(), 2 * q.domain()} { // beyond the fast domain only if nothing fits within
		if err := s.price(fast); err != nil {
			return nil, err
		}
		if len(s.best) > 0 {
			break
		}
	}
	if s.answer.Evaluated == 0 {
		return nil, fmt.Errorf("search: no layout of %d devices divides a global batch of %d and %d heads; use another number of nodes or global batch",
			q.Machine.Cluster.Devices(), q.Plan.Workload.GlobalBatch, q.Plan.Model.Config.Heads)
	}
	slices.SortStableFunc(s.best, func(a, b ranked) int { return cmp.Compare(a.score, b.score) })
	var broken error
	for _, r := range s.best {
		p, err := q.plan(r.Layout)
		if err != nil {
			broken = err
			continue
		}
		s.answer.Best, s.answer.Plan = r.Candidate, p
		s.explain()
		return &s.answer, nil
	}
	if broken != nil {
		return nil, fmt.Errorf("search: the plan of the best layout: %w", broken)
	}
	return nil, s.nothing()
}

// ranked is a candidate with its time, made longer for every step away from the simplest.
type ranked struct {
	Candidate
	score float64
}

// finder is a search under way.
type finder struct {
	question *Question
	answer   Answer
	best     []ranked  // at most 2·kept
	smallest Candidate // that takes the least memory, whether or not it fits
}

// price goes through all layouts with tensor degrees up to a number.
func (s *finder) price(fast int) (err error) {
	q := s.question
	var blocks *price.Blocks
	j := q.job(price.Layout{})
	q.visit(fast, func(l price.Layout, fresh bool) {
		j.Layout = l
		if err != nil {
			return
		}
		if fresh {
			if blocks, err = price.NewBlocks(&j, &q.Machine, &q.Profile); err != nil {
				return
			}
		}
		c := Candidate{Layout: l}
		if c.Time, c.Memory, err = blocks.Price(&j, &q.Machine, &q.Profile); err == nil {
			s.consider(c)
		}
	})
	return err
}

// consider takes a candidate in.
func (s *finder) consider(c Candidate) {
	s.answer.Evaluated++
	if s.answer.Evaluated == 1 || c.Memory.Peak < s.smallest.Memory.Peak {
		s.smallest = c
	}
	if c.Memory.Peak > s.question.room() {
		return
	}
	s.front(c)
	s.best = append(s.best, ranked{c, float64(c.Time.Step) * simplicity(c.Layout)})
	if len(s.best) == 2*kept {
		slices.SortStableFunc(s.best, func(a, b ranked) int { return cmp.Compare(a.score, b.score) })
		s.best = s.best[:kept]
	}
}

// simplicity is the factor by which a layout has to be faster than the simplest one.
func simplicity(l price.Layout) float64 {
	steps := 0
	for _, degree := range []int{l.TP, l.PP, l.CP, l.EP} {
		for ; degree > 1; degree /= 2 {
			steps++
		}
	}
	steps += 2 * (l.Zero + l.Virtual - 1)
	switch l.Schedule {
	case price.OneForwardOneBackward, price.AllForwardAllBackward, price.Interleaved:
	case price.ZeroBubble, price.VShape:
		steps += 4
	case price.DualPipe:
		steps += 8
	}
	return 1 + 0.002*float64(steps)
}

// front keeps the candidates that none beats both in time and in memory.
func (s *finder) front(c Candidate) {
	beats := func(a, b Candidate) bool { return a.Time.Step <= b.Time.Step && a.Memory.Peak <= b.Memory.Peak }
	if slices.ContainsFunc(s.answer.Pareto, func(a Candidate) bool { return beats(a, c) }) {
		return
	}
	s.answer.Pareto = slices.DeleteFunc(s.answer.Pareto, func(a Candidate) bool { return beats(c, a) })
	at, _ := slices.BinarySearchFunc(s.answer.Pareto, c, func(a, b Candidate) int { return cmp.Compare(a.Time.Step, b.Time.Step) })
	s.answer.Pareto = slices.Insert(s.answer.Pareto, at, c)
}

// nothing says what the smallest layout takes, and what of it is in the way.
func (s *finder) nothing() error {
	q, m := s.question, s.smallest.Memory
	line, bytes := m.Largest()
	return fmt.Errorf("%w: the smallest of %d layouts (%s) takes %v of the %v that a device has for it, %v of them %s; use at least %d nodes, or a smaller model or sequence",
		ErrNothingFits, s.answer.Evaluated, Describe(s.smallest.Layout), m.Peak, max(0, q.room()), bytes, line, q.nodes(m))
}

// nodes is about how many nodes share out what the smallest layout takes.
func (q *Question) nodes(m price.Memory) int {
	c := q.Machine.Cluster
	need := float64(m.Peak) / float64(max(q.room(), unit.GiB))
	n := c.Nodes()
	for k := 1.0; k < need && n < 1<<24; k *= 2 {
		n *= 2
	}
	return n
}

// plan is the question's plan with a layout, checked.
func (q *Question) plan(l price.Layout) (plan.Plan, error) {
	p := q.Plan
	p.Layout.Degrees = mesh.Degrees{mesh.DP: l.DP, mesh.TP: l.TP, mesh.PP: l.PP, mesh.CP: l.CP, mesh.EP: l.EP}
	p.Layout.SequenceParallel = l.SequenceParallel
	p.Layout.Zero.Stage = plan.Stage(l.Zero)
	p.Layout.Experts.Tensor = l.ExpertTP
	p.Layout.Pipeline.Virtual = l.Virtual
	p.MicroBatch = l.MicroBatch
	switch l.Schedule {
	case price.OneForwardOneBackward:
		p.Layout.Pipeline.Schedule = plan.OneForwardOneBackward
	case price.AllForwardAllBackward:
		p.Layout.Pipeline.Schedule = plan.AllForwardAllBackward
	case price.Interleaved:
		p.Layout.Pipeline.Schedule = plan.Interleaved
	case price.ZeroBubble:
		p.Layout.Pipeline.Schedule = plan.ZeroBubbleH1
	case price.VShape:
		p.Layout.Pipeline.Schedule = plan.ZeroBubbleV
	case price.DualPipe:
		p.Layout.Pipeline.Schedule = plan.DualPipe
	}
	p.Recompute = plan.Recompute{Kind: plan.KeepAll}
	if l.Recompute == price.FullBlock {
		p.Recompute.Kind = plan.FullBlock
	}
	return p, p.Validate()
}
