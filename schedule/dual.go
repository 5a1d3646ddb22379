package schedule

// dual is one rank of DualPipe or DualPipeV.
//
// In DualPipe (DeepSeek-AI 2024, arXiv 2412.19437, section 3.2.1, figure 5) two copies of the model face each other, and
// micro-batches enter at both ends. Seen from a rank, the near direction is the one whose first stage is nearer. In the main
// part the forward of one direction runs together with the backward of the other. DualPipeV cuts that in half: the two chunks of
// a rank, in V shape, are the directions.
type dual struct {
	*composer
	near, far int // chunks: of the direction that comes from the nearer end, and of the other
	outer     int // ranks between this one and the nearer end
	inner     int // ranks between this one and the middle
	each      int // micro-batches per direction
}

func newDual(c *composer, s Spec, rank int) *dual {
	if s.Kind == DualPipeV {
		return &dual{composer: c, far: 1, outer: rank, inner: s.Ranks - 1 - rank, each: s.Micro}
	}
	d := &dual{composer: c, far: 1, outer: rank, each: s.Micro / 2}
	if mirrored := s.Ranks - 1 - rank; mirrored < rank {
		d.near, d.far, d.outer = 1, 0, mirrored
	}
	d.inner = s.Ranks/2 - 1 - d.outer
	return d
}

// write writes the eight phases, by the numbers of DeepSeek's published implementation.
func (d *dual) write() {
	for range 2 * d.inner { // 1: fill from the near end
		d.run(Forward, d.near)
	}
	for range d.outer + 1 { // 2: the far direction arrives
		d.run(Forward, d.near)
		d.run(Forward, d.far)
	}
	for range d.inner { // 3: its first backwards, weight gradients at once but after the send
		d.run(Input, d.far)
		d.weight()
		d.run(Forward, d.far)
	}
	d.main()            // 4
	for range d.inner { // 5: the near direction has no forwards left
		d.run(Backward, d.far)
		d.pair(d.far, d.near)
	}
	d.drain()           // 6
	for range d.inner { // 7: deferred weight gradients fill the waits
		d.weight()
		d.run(Input, d.near)
	}
	d.rest() // 8
}

// main writes the part in which everything is overlapped. The middle ranks run the first pair in turn: they have
// nothing to wait for.
func (d *dual) main() {
	for i := range d.each - 2*(d.inner+d.outer+1) + d.outer + 1 {
		if i == 0 && d.inner == 0 {
			d.run(Forward, d.near)
			d.run(Backward, d.far)
		} else {
			d.pair(d.near, d.far)
		}
		d.pair(d.far, d.near)
	}
}

// drain writes the backwards of both directions; of the 2·(outer+1), the later half defers its weight gradients.
func (d *dual) drain() {
	for i := range 2 * (d.outer + 1) {
		chunk, op := d.far, Backward
		if i%2 == 1 {
			chunk = d.near
		}
		if i > d.outer {
			op = Input
		}
		d.run(op, chunk)
	}
}
