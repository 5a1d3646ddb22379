package schedule

import "fmt"

// Cost is the time of each operation on a chunk, in any unit. With whole numbers, times are exact.
type Cost struct {
	Forward  float64 // F
	Input    float64 // I
	Weight   float64 // W
	Backward float64 // B; 0 means I + W
	Pair     float64 // F with B, run together; 0 means F + B. With I instead of B it takes W less
	Comm     float64 // from the end of a send to the moment when the message can be received
}

// UnitCost is F = I = W = 1, B = 2 and pairs of 3: the cost of the papers' figures.
func UnitCost() Cost { return Cost{Forward: 1, Input: 1, Weight: 1} }

// backward returns B.
func (c Cost) backward() float64 {
	if c.Backward == 0 {
		return c.Input + c.Weight
	}
	return c.Backward
}

// pair returns F&B.
func (c Cost) pair() float64 {
	if c.Pair == 0 {
		return c.Forward + c.backward()
	}
	return c.Pair
}

// of returns the time that an action takes on its rank. Messages cost the rank nothing.
func (c Cost) of(a Action) float64 {
	switch a.Op {
	case Forward:
		return c.Forward
	case Backward:
		return c.backward()
	case Input:
		return c.Input
	case Weight:
		return c.Weight
	case Pair:
		if a.With.Op == Input {
			return c.pair() - c.Weight
		}
		return c.pair()
	case SendActivation, RecvActivation, SendGradient, RecvGradient:
	}
	return 0
}

// Span is when an action runs.
type Span struct{ Start, End float64 }

// Timeline is when everything runs if every action starts as soon as it can.
type Timeline struct {
	Spans    [][]Span  // [rank][index], as in Program.Ranks
	Busy     []float64 // [rank]: time spent in actions
	Makespan float64   // end of the last action of all ranks
}

// Time replays p: a rank runs its actions in order, each as soon as the one before has ended and, for a receive, its
// message has come. It takes time linear in the number of actions. A program that gets stuck is an error.
func Time(p *Program, cost Cost) (*Timeline, error) {
	t := &Timeline{Spans: make([][]Span, len(p.Ranks)), Busy: make([]float64, len(p.Ranks))}
	for rank, list := range p.Ranks {
		t.Spans[rank] = make([]Span, len(list))
	}
	w := newWalker(p)
	w.walk(func(at, sender spot) {
		var start float64
		if at.index > 0 {
			start = t.Spans[at.rank][at.index-1].End
		}
		if sender != at {
			start = max(start, t.Spans[sender.rank][sender.index].End+cost.Comm)
		}
		length := cost.of(p.Ranks[at.rank][at.index])
		t.Spans[at.rank][at.index] = Span{start, start + length}
		t.Busy[at.rank] += length
		t.Makespan = max(t.Makespan, start+length)
	})
	if stuck := w.stuck(); len(stuck) > 0 {
		rank := stuck[0]
		return nil, fmt.Errorf("schedule: rank %d waits for ever at action %d, %s; Check tells why", rank, w.next[rank], p.Ranks[rank][w.next[rank]])
	}
	return t, nil
}

// Bubble returns how long a rank is idle while any rank works.
func (t *Timeline) Bubble(rank int) float64 { return t.Makespan - t.Busy[rank] }

// Idle returns how long a rank is idle between the start of its first computation and the end of its last one. Steps that follow
// each other without a barrier (Qi et al. 2023, section 4) lose only that.
func (t *Timeline) Idle(rank int) float64 {
	spans := t.Spans[rank]
	first, last := 0, len(spans)-1
	for first <= last && spans[first].Start == spans[first].End {
		first++
	}
	for last >= first && spans[last].Start == spans[last].End {
		last--
	}
	if first > last {
		return 0
	}
	return spans[last].End - spans[first].Start - t.Busy[rank]
}

// BubbleRatio returns the part of all ranks' time that is bubble, 0 to 1.
func (t *Timeline) BubbleRatio() float64 {
	if t.Makespan == 0 {
		return 0
	}
	var idle float64
	for rank := range t.Busy {
		idle += t.Bubble(rank)
	}
	return idle / (t.Makespan * float64(len(t.Busy)))
}
