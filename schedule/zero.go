package schedule

// zeroBubbleH1 is the first handcrafted schedule of Qi et al. 2023 (arXiv 2401.10241, section 2.1, figure 3 top): 1F1B in which the
// gradients of the weights come later. The gradients of the input reach the ranks before sooner, and the weights' fill
// the end. Rank r puts them off by r micro-batches, so that every rank keeps p of them: the peak of 1F1B's first rank.
func (c *composer) zeroBubbleH1(p, rank int) {
	for range min(p-1-rank, c.micros) {
		c.run(Forward, 0)
	}
	for i := range c.micros {
		c.run(Forward, 0)
		c.run(Input, 0)
		if i >= rank {
			c.weight()
		}
	}
	c.rest()
}

// zeroBubbleV is the schedule of two chunks per rank in V shape of the same paper (section 6): a rank's second
// chunk follows the first one where the model turns, so the last rank meets the loss at once and every rank keeps 2p half-sized
// passes, the peak of 1F1B. With equal times for F, I and W no rank is idle between its first and last action.
func (c *composer) zeroBubbleV(p, rank int) {
	after := p - rank
	for range 2*after - 1 {
		c.run(Forward, 0)
	}
	for range rank {
		c.run(Forward, 1)
		c.run(Forward, 0)
	}
	for range after {
		c.run(Forward, 1)
		c.run(Input, 1)
		c.weight()
	}
	for range max(c.micros, 2*p-1) - p { // fewer micro-batches than warm it up leave gaps
		c.run(Forward, 0)
		c.run(Input, 0)
		c.weight()
		c.run(Forward, 1)
		c.run(Input, 1)
		c.weight()
	}
	for range rank {
		c.run(Input, 0)
		c.run(Input, 1)
	}
	for range after {
		c.run(Input, 0)
		c.weight()
	}
	c.rest()
}

// rest writes the deferred weight gradients that are left.
func (c *composer) rest() {
	for len(c.deferred) > 0 {
		c.weight()
	}
}
