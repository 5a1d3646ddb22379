package commtest

import (
	"carve/comm"

	"pgregory.net/rapid"
)

// planned is a step of a random program: of the world, of one of two parts of it, or a message.
type planned struct {
	step
	part  bool // in the parts instead of the world
	delay int  // wait for it before the step that many later
	late  uint64
}

// checkPrograms runs random programs in which several operations of several groups are under way, with ranks
// that are late at random.
func checkPrograms(t rapid.TB, s Suite) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.SampledFrom(s.sizes()).Draw(rt, "ranks")
		cut := rapid.IntRange(0, n).Draw(rt, "cut")
		program := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) planned { return drawStep(rt) }), 1, 25).Draw(rt, "program")
		s.must(rt, n, func(r *rank) error { return r.program(program, cut) })
	})
}

func drawStep(t *rapid.T) planned {
	return planned{
		step: step{
			op:     rapid.SampledFrom(comm.Ops()[:comm.AllToAllV]).Draw(t, "op"),
			reduce: rapid.SampledFrom(reductions()).Draw(t, "reduction"),
			dtype:  rapid.SampledFrom(dtypes()).Draw(t, "dtype"),
			count:  rapid.OneOf(rapid.IntRange(0, 70), rapid.IntRange(0, 9000)).Draw(t, "count"),
			root:   rapid.IntRange(0, 7).Draw(t, "root"),
			place:  place(rapid.IntRange(0, 1).Draw(t, "place")),
			how:    how(rapid.IntRange(0, 1).Draw(t, "how")),
			seed:   rapid.Uint64().Draw(t, "seed"),
			value:  rough,
		},
		part:  rapid.Bool().Draw(t, "part"),
		delay: rapid.IntRange(0, 6).Draw(t, "delay"),
		late:  rapid.Uint64Range(1, 30).Draw(t, "late"),
	}
}

// program runs the steps on one rank. The parts of the world are the ranks below cut and the others.
func (r *rank) program(steps []planned, cut int) error {
	ranks := upTo(r.Size())[:cut]
	if r.Rank() >= cut {
		ranks = upTo(r.Size())[cut:]
	}
	part, err := r.Group("part", ranks)
	if err != nil {
		return err
	}
	due := map[int][]*running{}
	for i, p := range steps {
		if err := finishAll(due[i]); err != nil {
			return err
		}
		g := r.all
		if p.part {
			g = part
		}
		p.root %= g.Size()
		if p.op == comm.AllToAll {
			p.place = apart
		}
		r.dawdle(p.seed, p.late)
		run, err := r.begin(p.step, g)
		if err != nil {
			return err
		}
		at := min(i+1+p.delay, len(steps))
		due[at] = append(due[at], run)
		r.Token().Yield()
	}
	return first(finishAll(due[len(steps)]), r.exchange(steps))
}

// exchange sends a message for every step to a rank that follows from the seed, all at once, in the same order on both
// sides.
func (r *rank) exchange(steps []planned) error {
	var works []comm.Work
	type received struct {
		operand
		from int
		planned
	}
	var in []received
	for _, p := range steps {
		from, to := int(p.seed%uint64(r.Size())), int(p.seed>>8%uint64(r.Size()))
		switch {
		case from == to:
		case r.Rank() == from:
			works = append(works, r.all.SendStart(r.filled(p.dtype, p.message(from)).t, to))
		case r.Rank() == to:
			o := r.operand(p.dtype, len(p.message(from)))
			works = append(works, r.all.RecvStart(o.t, from))
			in = append(in, received{o, from, p})
		}
	}
	for _, w := range works {
		if err := w.Wait(); err != nil {
			return err
		}
	}
	for _, m := range in {
		if err := m.check("message", m.message(m.from)); err != nil {
			return err
		}
	}
	return nil
}

func (p planned) message(from int) (xs []float64) {
	for k := range p.count % 100 {
		xs = append(xs, whole(p.seed, from, k))
	}
	return xs
}
