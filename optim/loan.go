package optim

import (
	"carve/nn"
	"carve/tensor"
)

// loan is the memory for a unit's gradients where they are sharded: it is there while the unit's backward runs, goes on to
// the owners, and is added to their sums.
type loan struct {
	memory   *tensor.Tensor // lent to the unit; nil when there is none
	away     *tensor.Tensor // on its way to the owners
	journey  convoy
	copies   convoy // then sums over groups that shard the same
	stale    bool   // the sums are those of the step before
	complete bool   // nothing more is added in this step
}

// lend gives a unit memory for gradients.
func (s *State) lend(h *home) {
	if h.loan.memory == nil {
		h.loan.memory = s.r.Arena.New(tensor.Gradient, s.r.DType, h.unit.Hi-h.unit.Lo)
		h.unit.AimGrad(h.loan.memory, 0)
	}
}

// collect takes a unit's gradients back and starts to bring them to their owners. Those of the units before go a step
// further, so that a rank holds the gradients of no more units than a reduction has steps.
func (s *State) collect(h *home) {
	l := &h.loan
	added := h.unit.Settle(s.r)
	h.unit.AimGrad(nil, 0)
	memory := l.memory
	l.memory = nil
	if !added {
		memory.Free()
		return
	}
	kept := s.sending[:0]
	for _, other := range s.sending {
		if other.loan.journey.more() && other != h {
			other.loan.journey.advance()
			kept = append(kept, other)
		} else {
			s.arrive(other)
		}
	}
	s.sending = append(kept, h)
	l.away = memory
	l.journey.start(memory, h.unit.Lo)
	if s.o.Mode == Naive {
		s.collectAll()
	}
}

// arrive adds what has come to the sums of this rank, once it is all there.
func (s *State) arrive(h *home) {
	l := &h.loan
	l.journey.finish()
	for _, b := range h.blocks {
		for _, k := range b.kept {
			sum, term := s.gradients.Slice(k.at, k.at+k.len()), l.away.Slice(k.lo-h.unit.Lo, k.hi-h.unit.Lo)
			if l.stale {
				s.r.Dev.Copy(sum, term)
			} else {
				s.r.Dev.Add(sum, term)
			}
			sum.Free()
			term.Free()
		}
	}
	l.stale = false
	l.away.Free()
	l.away = nil
	s.copies(h)
}

// copies starts the sums over groups that shard the same, when a unit's gradients are all there.
func (s *State) copies(h *home) {
	if l := &h.loan; l.complete && l.away == nil {
		s.clear(h)
		l.copies.start(s.gradients, 0)
	}
}

// clear forgets sums of the step before that nothing was added to.
func (s *State) clear(h *home) {
	if !h.loan.stale {
		return
	}
	h.loan.stale = false
	for _, b := range h.blocks {
		for _, k := range b.kept {
			sum := s.gradients.Slice(k.at, k.at+k.len())
			s.r.Dev.Fill(sum, 0)
			sum.Free()
		}
	}
}

// collectAll waits until all gradients are where they are kept.
func (s *State) collectAll() {
	for _, h := range s.sending {
		s.arrive(h)
	}
	s.sending = s.sending[:0]
	for _, h := range s.homes {
		h.loan.copies.finish()
	}
}

// Enter implements [nn.Keeper].
func (s *State) Enter(u *nn.Unit, p nn.Phase) {
	h := s.homes[u.Index]
	if p != nn.Fill {
		for _, used := range u.Uses {
			s.enter(s.homes[used.Index], p)
		}
	}
	s.enter(h, p)
	if s.values != nil && s.o.Mode != Naive {
		s.prefetch(h, p)
	}
}

func (s *State) enter(h *home, p nn.Phase) {
	if s.values != nil && (p.Values() || p == nn.Fill) {
		s.borrow(h, p)
	}
	if s.gradients != nil && p.Gradients() {
		s.lend(h)
	}
}

// Leave implements [nn.Keeper].
func (s *State) Leave(u *nn.Unit, p nn.Phase) {
	s.leave(s.homes[u.Index], p)
	if p != nn.Fill {
		for _, used := range u.Uses {
			s.leave(s.homes[used.Index], p)
		}
	}
}

func (s *State) leave(h *home, p nn.Phase) {
	if s.values != nil && (p.Values() || p == nn.Fill) {
		s.giveBack(h, p)
	}
	// What BackwardInput has added waits for BackwardWeight, so that it is sent once.
	if s.gradients != nil && p.Gradients() && p != nn.BackwardInput {
		s.collect(h)
	}
}
