package optim

import (
	"slices"

	"carve/nn"
	"carve/tensor"
)

// gathered is the memory for a unit's values where they are sharded: it is there while the unit runs.
type gathered struct {
	memory *tensor.Tensor // nil when there is none
	users  int            // phases that have entered and not left
	kept   int            // forwards whose backward needs it as well
	ahead  []*home        // the units that run next in a forward, the nearest first
	onward []*home        // the same in a forward that a backward follows
	behind []*home        // the same in a backward
}

// planPrefetch finds the units that run after each. The last chunk of a model goes on to its backward.
func (s *State) planPrefetch() {
	for _, c := range s.m.Chunks {
		var line, back []*home
		for _, u := range c.Units {
			if len(u.Layers) > 0 {
				line = append(line, s.homes[u.Index])
			}
		}
		for i, h := range line {
			h.gather.behind = slices.Clone(back)
			back = append([]*home{h}, back...)
			h.gather.ahead = slices.Clone(line[i+1:])
		}
		for _, h := range line {
			h.gather.onward = h.gather.ahead
			if c.Last {
				h.gather.onward = slices.Concat(h.gather.ahead, back[1:]) // the head is still there
			}
		}
	}
}

// fetch starts to gather a unit, if it is not there.
func (s *State) fetch(h *home) {
	g := &h.gather
	if g.memory != nil {
		return
	}
	g.memory = s.r.Arena.New(tensor.Parameter, s.r.DType, h.unit.Hi-h.unit.Lo)
	for _, b := range h.blocks {
		for _, k := range b.kept {
			s.move(k, h, s.values, g.memory)
		}
	}
	h.publish.start(g.memory, h.unit.Lo)
}

// move copies what this rank keeps between its own memory and that of the whole unit.
func (s *State) move(k holding, h *home, own, whole *tensor.Tensor) {
	src, dst := own.Slice(k.at, k.at+k.len()), whole.Slice(k.lo-h.unit.Lo, k.hi-h.unit.Lo)
	s.r.Dev.Copy(dst, src)
	src.Free()
	dst.Free()
}

// borrow returns when a unit's values are there.
func (s *State) borrow(h *home, p nn.Phase) {
	g := &h.gather
	g.users++
	if p == nn.Fill {
		if g.memory == nil {
			g.memory = s.r.Arena.New(tensor.Parameter, s.r.DType, h.unit.Hi-h.unit.Lo)
		}
	} else {
		s.fetch(h)
		h.publish.finish()
	}
	h.unit.AimValue(g.memory, 0)
}

// prefetch starts to gather the units that run next.
func (s *State) prefetch(h *home, p nn.Phase) {
	var next []*home
	switch p {
	case nn.Run:
		next = h.gather.ahead
	case nn.Forward, nn.ForwardBackward:
		next = h.gather.onward
	case nn.Backward, nn.BackwardInput:
		next = h.gather.behind
	case nn.BackwardWeight, nn.Fill:
	}
	for _, n := range next[:min(len(next), s.o.Prefetch)] {
		for _, used := range n.unit.Uses {
			s.fetch(s.homes[used.Index])
		}
		s.fetch(n)
	}
}

// giveBack ends a loan of values; the last user's frees them, unless a backward needs them again and is not to gather
// them again.
func (s *State) giveBack(h *home, p nn.Phase) {
	g := &h.gather
	if p == nn.Fill {
		for _, b := range h.blocks {
			for _, k := range b.kept {
				s.store(k, h)
			}
		}
	}
	if s.o.Reshard == AfterBackward {
		switch p {
		case nn.Forward:
			g.kept++
		case nn.Backward, nn.BackwardInput:
			g.kept = max(0, g.kept-1)
		case nn.Run, nn.ForwardBackward, nn.BackwardWeight, nn.Fill:
		}
	}
	if g.users--; g.users == 0 && g.kept == 0 {
		s.drop(h)
	}
}

// store keeps this rank's part of the values of a whole unit.
func (s *State) store(k holding, h *home) {
	src, dst := h.gather.memory.Slice(k.lo-h.unit.Lo, k.hi-h.unit.Lo), s.values.Slice(k.at, k.at+k.len())
	s.r.Dev.Copy(dst, src)
	src.Free()
	dst.Free()
}

// drop frees a unit's values.
func (s *State) drop(h *home) {
	if h.gather.memory == nil {
		return
	}
	h.publish.finish()
	h.unit.AimValue(nil, 0)
	h.gather.memory.Free()
	h.gather.memory = nil
}

// release frees all that was gathered: the values are about to change.
func (s *State) release() {
	for _, h := range s.homes {
		h.gather.kept = 0
		s.drop(h)
	}
}
