package schedule

import "fmt"

// dumb executes a program with real values in real queues, rank after rank, until nothing moves: the slow twin of Check.
// It shares no code with it. A value is a word that says what it is; a computation that gets another word fails.
type dumb struct {
	p      *Program
	depth  int
	holder map[Stage]Place
	queues map[string][]string // by "from>to kind"
	slots  map[string]string   // by "rank x micro.chunk" and so on
	counts map[string]int      // of computations by stage and micro-batch
}

// execute returns nil if every rank reaches its end with everything done once.
func execute(p *Program) error {
	d := &dumb{
		p: p, holder: map[Stage]Place{}, queues: map[string][]string{},
		slots: map[string]string{}, counts: map[string]int{},
	}
	pipes := map[int]int{}
	for rank, chunks := range p.Stages {
		for chunk, s := range chunks {
			if _, twice := d.holder[s]; twice {
				return fmt.Errorf("stage %v twice", s)
			}
			d.holder[s] = Place{rank, chunk}
			pipes[s.Pipe]++
		}
	}
	for pipe := range len(pipes) {
		if d.depth == 0 {
			d.depth = pipes[pipe]
		}
		if pipes[pipe] != d.depth {
			return fmt.Errorf("pipe %d has %d stages", pipe, pipes[pipe])
		}
		for i := range d.depth {
			if _, ok := d.holder[Stage{pipe, i}]; !ok {
				return fmt.Errorf("no stage %d", i)
			}
		}
	}
	next := make([]int, len(p.Ranks))
	for moved := true; moved; {
		moved = false
		for rank := range p.Ranks {
			if next[rank] == len(p.Ranks[rank]) {
				continue
			}
			blocked, err := d.do(rank, p.Ranks[rank][next[rank]])
			if err != nil {
				return err
			}
			if !blocked {
				next[rank]++
				moved = true
			}
		}
	}
	return d.finished(next)
}

// finished checks the end.
func (d *dumb) finished(next []int) error {
	for rank := range next {
		if next[rank] != len(d.p.Ranks[rank]) {
			return fmt.Errorf("rank %d hangs", rank)
		}
	}
	for key, left := range d.queues {
		if len(left) > 0 {
			return fmt.Errorf("%s: %d messages left", key, len(left))
		}
	}
	for key := range d.slots {
		return fmt.Errorf("%s is left", key)
	}
	for micro, pipe := range d.p.Pipes {
		for i := range d.depth {
			for _, what := range []string{"F", "B", "W"} {
				if n := d.counts[fmt.Sprint(what, Stage{pipe, i}, micro)]; n != 1 {
					return fmt.Errorf("%s of stage %d, micro-batch %d ran %d times", what, i, micro, n)
				}
			}
		}
	}
	return nil
}

func slot(rank int, what string, micro, chunk int) string {
	return fmt.Sprintf("%d %s %d.%d", rank, what, micro, chunk)
}

// put fills an empty slot.
func (d *dumb) put(key, value string) error {
	if _, full := d.slots[key]; full {
		return fmt.Errorf("%s is full", key)
	}
	d.slots[key] = value
	return nil
}

// take empties a slot that must hold a value.
func (d *dumb) take(key, value string) error {
	got, full := d.slots[key]
	if !full || got != value {
		return fmt.Errorf("%s holds %q, want %q", key, got, value)
	}
	delete(d.slots, key)
	return nil
}

// do executes one action, or says that it blocks.
func (d *dumb) do(rank int, a Action) (blocked bool, err error) {
	if a.Micro < 0 || a.Micro >= len(d.p.Pipes) || a.Chunk < 0 || a.Chunk >= len(d.p.Stages[rank]) ||
		d.p.Pipes[a.Micro] != d.p.Stages[rank][a.Chunk].Pipe {
		return false, fmt.Errorf("%v: no such thing", a)
	}
	switch a.Op {
	case Forward, Backward, Input, Weight:
		return false, d.compute(rank, a.Op, a.Micro, a.Chunk)
	case Pair:
		return false, d.pair(rank, a)
	case SendActivation, SendGradient:
		s := d.p.Stages[rank][a.Chunk]
		what, value := "y", fmt.Sprint("a", s.Index, " ", a.Micro)
		if a.Op == SendGradient {
			what, value = "dx", fmt.Sprint("g", s.Index, " ", a.Micro)
		}
		if err := d.take(slot(rank, what, a.Micro, a.Chunk), value); err != nil {
			return false, err
		}
		key := fmt.Sprint(rank, ">", a.Peer, what)
		d.queues[key] = append(d.queues[key], value)
		return false, nil
	case RecvActivation, RecvGradient:
		sent, what := "y", "x"
		if a.Op == RecvGradient {
			sent, what = "dx", "dy"
		}
		key := fmt.Sprint(a.Peer, ">", rank, sent)
		if len(d.queues[key]) == 0 {
			return true, nil
		}
		value := d.queues[key][0]
		d.queues[key] = d.queues[key][1:]
		return false, d.put(slot(rank, what, a.Micro, a.Chunk), value)
	}
	return false, fmt.Errorf("%v: no such operation", a)
}

// pair runs the halves in both orders, as if at once: the second may not need what the first makes.
func (d *dumb) pair(rank int, a Action) error {
	w := a.With
	if w.Op != Backward && w.Op != Input {
		return fmt.Errorf("%v: no such pair", a)
	}
	if w.Micro == a.Micro {
		return fmt.Errorf("%v: a micro-batch cannot run forward and backward at once", a)
	}
	if w.Micro < 0 || w.Micro >= len(d.p.Pipes) || w.Chunk < 0 || w.Chunk >= len(d.p.Stages[rank]) ||
		d.p.Pipes[w.Micro] != d.p.Stages[rank][w.Chunk].Pipe {
		return fmt.Errorf("%v: no such thing", a)
	}
	if err := d.compute(rank, Forward, a.Micro, a.Chunk); err != nil {
		return err
	}
	return d.compute(rank, w.Op, w.Micro, w.Chunk)
}

// compute takes what an operation needs and puts what it makes.
func (d *dumb) compute(rank int, op Op, micro, chunk int) error {
	s := d.p.Stages[rank][chunk]
	count := func(what string) int {
		d.counts[fmt.Sprint(what, s, micro)]++
		return d.counts[fmt.Sprint(what, s, micro)]
	}
	switch op {
	case Forward:
		if s.Index > 0 {
			if err := d.take(slot(rank, "x", micro, chunk), fmt.Sprint("a", s.Index-1, " ", micro)); err != nil {
				return err
			}
		}
		if count("F") > 1 {
			return fmt.Errorf("F twice")
		}
		return d.hand(rank, micro, chunk, 1, "y", "x", fmt.Sprint("a", s.Index, " ", micro))
	case Backward, Input:
		if d.counts[fmt.Sprint("F", s, micro)] != 1 {
			return fmt.Errorf("B before F")
		}
		if s.Index < d.depth-1 {
			if err := d.take(slot(rank, "dy", micro, chunk), fmt.Sprint("g", s.Index+1, " ", micro)); err != nil {
				return err
			}
		}
		if count("B") > 1 || op == Backward && count("W") > 1 {
			return fmt.Errorf("B twice")
		}
		return d.hand(rank, micro, chunk, -1, "dx", "dy", fmt.Sprint("g", s.Index, " ", micro))
	case Weight:
		if d.counts[fmt.Sprint("B", s, micro)] != 1 || count("W") > 1 {
			return fmt.Errorf("W before I or twice")
		}
		return nil
	default:
		return fmt.Errorf("no computation")
	}
}

// hand puts a result where the neighbour finds it, or where it waits to be sent.
func (d *dumb) hand(rank, micro, chunk, step int, wait, arrive, value string) error {
	s := d.p.Stages[rank][chunk]
	to, ok := d.holder[Stage{s.Pipe, s.Index + step}]
	if !ok {
		return nil
	}
	if to.Rank == rank {
		return d.put(slot(rank, arrive, micro, to.Chunk), value)
	}
	return d.put(slot(rank, wait, micro, chunk), value)
}
