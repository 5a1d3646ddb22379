package schedule

// allForwardAllBackward is GPipe (Huang et al. 2019, arXiv 1811.06965, figure 2c): every forward, then every backward,
// both in the order of micro-batches. A rank holds all m of them at its peak.
func (c *composer) allForwardAllBackward() {
	for range c.micros {
		c.run(Forward, 0)
	}
	for range c.micros {
		c.run(Backward, 0)
	}
}

// oneForwardOneBackward is PipeDream-flush (Narayanan et al. 2021, arXiv 2104.04473, figure 4 top): as many forwards as
// there are ranks after this one, then a forward and a backward in turn, then the backwards that are left.
func (c *composer) oneForwardOneBackward(after int) {
	for range min(after, c.micros) {
		c.run(Forward, 0)
	}
	for range c.micros {
		c.run(Forward, 0)
		c.run(Backward, 0)
	}
}

// pairedOneForwardOneBackward is 1F1B whose forwards run beside backwards of earlier micro-batches, so that each hides the other's
// communication inside the stage, such as the dispatch of experts. A pair sends when both are done: for the pairs of all
// ranks to follow each other without a gap, a rank must be two forwards ahead of the next one, and the last one ahead.
// So it holds 2·(p-rank) micro-batches at its peak where 1F1B holds p-rank.
func (c *composer) pairedOneForwardOneBackward(after int) {
	warmup := min(2*after+1, c.micros)
	for range warmup {
		c.run(Forward, 0)
	}
	for range c.micros - warmup {
		c.pair(0, 0)
	}
	for range warmup {
		c.run(Backward, 0)
	}
}

// interleaved is 1F1B over v chunks per rank (Narayanan et al. 2021, figure 4 bottom). Micro-batches go in rounds of p: a
// round passes every chunk before the next one starts. A rank begins 2 forwards earlier for every rank after it, so that
// the first backward finds it ready, and (v-1)·p earlier for the chunks that a round passes before its last.
func (c *composer) interleaved(p, v, after int) {
	passes := c.micros * v
	warmup := min(2*after+(v-1)*p, passes)
	turn := func(k int) int { return k / p % v } // the chunk of pass k
	for k := range warmup {
		c.run(Forward, turn(k))
	}
	for k := range passes {
		if warmup+k < passes {
			c.run(Forward, turn(warmup+k))
		}
		c.run(Backward, v-1-turn(k))
	}
}
