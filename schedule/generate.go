package schedule

import "fmt"

// Spec asks for a schedule.
type Spec struct {
	Kind   Kind
	Ranks  int // p, pipeline ranks
	Chunks int // v, chunks per rank of Interleaved; 0 or 1 elsewhere, where the schedule fixes them
	Micro  int // m, micro-batches per step
	Pairs  Pairs
}

// Pairs says whether a schedule that has none runs forwards and backwards together.
type Pairs uint8

// The choices.
const (
	Apart  Pairs = iota // as the schedule's authors have it
	Paired              // a forward beside every backward but the last ones; for OneForwardOneBackward
)

// maxActions bounds a program: far beyond any run, and it fits memory.
const maxActions = 1 << 24

// Generate makes the program of a spec. Its errors name the rule and a remedy; they agree with those of package plan.
func Generate(s Spec) (*Program, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	p := &Program{Name: s.Kind.String(), Stages: s.stages(), Pipes: s.pipes(), Ranks: make([][]Action, s.Ranks)}
	for rank := range p.Ranks {
		p.Ranks[rank] = s.order(rank)
	}
	route, err := p.Route()
	if err != nil {
		return nil, err
	}
	communicate(p, route)
	return p, nil
}

// Validate returns the first rule that s breaks, or nil.
func (s Spec) Validate() error {
	switch {
	case int(s.Kind) >= len(kindNames()):
		return fmt.Errorf("schedule: unknown %s; use one of Kinds", s.Kind)
	case s.Ranks < 1 || s.Micro < 1 || s.Chunks < 0:
		return fmt.Errorf("schedule: %d ranks, %d chunks and %d micro-batches; use 1 or more of each", s.Ranks, s.Chunks, s.Micro)
	case s.Ranks > maxActions || s.Chunks > maxActions || s.Micro > maxActions ||
		int64(s.Ranks)*int64(s.chunks()) > maxActions/int64(s.Micro)/6:
		return fmt.Errorf("schedule: %d ranks of %d chunks and %d micro-batches make more than %d actions; use fewer micro-batches",
			s.Ranks, s.chunks(), s.Micro, maxActions)
	case s.Pairs == Paired && s.Kind != OneForwardOneBackward:
		return fmt.Errorf("schedule: %s does not pair forwards and backwards; use 1f1b, or dualpipe-v, which does by itself", s.Kind)
	case s.Kind != Interleaved && s.Chunks > 1:
		return fmt.Errorf("schedule: %d chunks per rank, which %s does not have; use 1, or interleaved", s.Chunks, s.Kind)
	}
	return s.micros()
}

// micros checks that the schedule can take the number of micro-batches.
func (s Spec) micros() error {
	p, m := s.Ranks, s.Micro
	switch s.Kind {
	case Interleaved:
		if s.chunks() < 2 && p > 1 {
			return fmt.Errorf("schedule: interleaved has one chunk per rank; use 2 or more, or 1f1b")
		}
		if m%p != 0 {
			return fmt.Errorf("schedule: interleaved takes micro-batches in rounds of %d ranks, and %d is no multiple; use %d", p, m, (m/p+1)*p)
		}
	case DualPipe:
		if p%2 != 0 || m%2 != 0 || m < 2*p {
			return fmt.Errorf("schedule: dualpipe needs an even number of ranks and an even number of micro-batches from %d up, not %d and %d; use %d ranks and %d micro-batches, or 1f1b",
				2*p, p, m, p+p%2, max(m+m%2, 2*(p+p%2)))
		}
	case DualPipeV:
		if m < 2*p {
			return fmt.Errorf("schedule: dualpipe-v needs %d micro-batches or more, not %d; use %d, or 1f1b", 2*p, m, 2*p)
		}
	case AllForwardAllBackward, OneForwardOneBackward, ZeroBubbleH1, ZeroBubbleV:
	}
	return nil
}

// chunks returns the number of chunks of a rank.
func (s Spec) chunks() int {
	switch s.Kind {
	case Interleaved:
		return max(1, s.Chunks)
	case ZeroBubbleV, DualPipe, DualPipeV:
		return 2
	case AllForwardAllBackward, OneForwardOneBackward, ZeroBubbleH1:
	}
	return 1
}

// stages places the model: [rank][chunk].
func (s Spec) stages() [][]Stage {
	p := s.Ranks
	all := make([][]Stage, p)
	for r := range all {
		all[r] = make([]Stage, s.chunks())
		for c := range all[r] {
			all[r][c] = Stage{Index: c*p + r}
		}
		switch s.Kind {
		case ZeroBubbleV, DualPipeV:
			all[r][1] = Stage{Index: 2*p - 1 - r}
		case DualPipe:
			all[r][1] = Stage{Pipe: 1, Index: p - 1 - r}
		case AllForwardAllBackward, OneForwardOneBackward, Interleaved, ZeroBubbleH1:
		}
	}
	return all
}

// pipes sends the second half of the micro-batches the other way, where there is one.
func (s Spec) pipes() []int {
	pipes := make([]int, s.Micro)
	if s.Kind == DualPipe {
		for i := s.Micro / 2; i < s.Micro; i++ {
			pipes[i] = 1
		}
	}
	return pipes
}

// order returns the computations of a rank in order.
func (s Spec) order(rank int) []Action {
	c, p := newComposer(s), s.Ranks
	switch s.Kind {
	case AllForwardAllBackward:
		c.allForwardAllBackward()
	case OneForwardOneBackward:
		if s.Pairs == Paired {
			c.pairedOneForwardOneBackward(p - 1 - rank)
			break
		}
		c.oneForwardOneBackward(p - 1 - rank)
	case Interleaved:
		c.interleaved(p, s.chunks(), p-1-rank)
	case ZeroBubbleH1:
		c.zeroBubbleH1(p, rank)
	case ZeroBubbleV:
		c.zeroBubbleV(p, rank)
	case DualPipe, DualPipeV:
		newDual(c, s, rank).write()
	}
	return c.list
}
