package schedule

// composer writes the computations of one rank. It counts the micro-batches of each operation and chunk, so that
// generators say only which operation comes next on which chunk: micro-batches pass a chunk in their order.
type composer struct {
	micros   int      // m; what would be of a later micro-batch is left out
	starts   []int    // [chunk]: its first micro-batch
	counts   [3][]int // [Forward, Backward or Input, Weight][chunk]: how many were written
	deferred []Half   // weight gradients not yet written, oldest first
	list     []Action
}

func newComposer(s Spec) *composer {
	chunks := s.chunks()
	c := &composer{micros: s.Micro, starts: make([]int, chunks), list: make([]Action, 0, 3*chunks*s.Micro)}
	if s.Kind == DualPipe {
		c.starts[1] = s.Micro / 2
	}
	for i := range c.counts {
		c.counts[i] = make([]int, chunks)
	}
	return c
}

// take returns the next micro-batch of an operation on a chunk.
func (c *composer) take(op Op, chunk int) int {
	row := c.counts[0]
	switch op {
	case Backward, Input:
		row = c.counts[1]
	case Weight:
		row = c.counts[2]
	case Forward, Pair, SendActivation, RecvActivation, SendGradient, RecvGradient:
	}
	row[chunk]++
	return c.starts[chunk] + row[chunk] - 1
}

// run writes the next micro-batch of an operation on a chunk.
func (c *composer) run(op Op, chunk int) {
	micro := c.take(op, chunk)
	if micro >= c.micros {
		return
	}
	c.list = append(c.list, Action{Op: op, Micro: micro, Chunk: chunk})
	if op == Input {
		c.deferred = append(c.deferred, Half{Weight, micro, chunk})
	}
}

// pair writes the next forward of one chunk together with the next backward of another.
func (c *composer) pair(forward, backward int) {
	c.list = append(c.list, Action{
		Op: Pair, Micro: c.take(Forward, forward), Chunk: forward,
		With: Half{Backward, c.take(Backward, backward), backward},
	})
}

// weight writes the oldest deferred weight gradient, if any.
func (c *composer) weight() {
	if len(c.deferred) == 0 {
		return
	}
	w := c.deferred[0]
	c.deferred = c.deferred[1:]
	c.list = append(c.list, Action{Op: Weight, Micro: w.Micro, Chunk: w.Chunk})
}
