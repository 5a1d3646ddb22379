package nn

import (
	"fmt"

	"carve/tensor"
)

// Recompute is what of a block is computed again in the backward instead of being kept.
type Recompute uint8

// The kinds. What they leave of a micro-batch in a block of a dense model, per token:
//
//	KeepAll     2·H + (2A+2K)·D + 2·F
//	Selective   2·H + (A+2K)·D + 2·F   attention once more
//	FullBlock   H                      the forward once more, with its communication
//
// Norms and activations are computed again in any case.
const (
	KeepAll   Recompute = iota
	Selective           // attention's result and statistics
	FullBlock           // everything but the block's input
)

// String is the name in plans.
func (k Recompute) String() string {
	switch k {
	case KeepAll:
		return "none"
	case Selective:
		return "selective"
	case FullBlock:
		return "full"
	}
	return fmt.Sprintf("recompute(%d)", uint8(k))
}

// discarded is what a block leaves whose forward will be run again: its input.
type discarded struct {
	chunk *Chunk
	batch *Batch
	x     *tensor.Tensor // [T H]
}

// Free gives the memory back.
func (s *discarded) Free() {
	s.x.Free()
	s.chunk.inputs.put(s)
}

// Each implements [Saved].
func (s *discarded) Each(visit func(**tensor.Tensor)) { visit(&s.x) }

// discard runs a unit's forward, of which the pass keeps a copy of the input.
func (c *Chunk) discard(r *Rank, u *Unit, b *Batch, x *tensor.Tensor, p *Pass) *tensor.Tensor {
	s := c.inputs.get()
	s.chunk, s.batch, s.x = c, b, r.activation(x.Rows(), x.Cols())
	r.Dev.Copy(s.x, x)
	b.Mode = Discard
	for _, l := range u.Layers {
		x, _ = l.Forward(r, b, x)
		r.look(b, l.Name(), Output, x)
		r.yield()
	}
	b.Mode = Train
	p.saved = append(p.saved, s)
	return x
}

// again runs the forward of a unit once more, if that was left to the backward.
func (c *Chunk) again(r *Rank, u *Unit, p *Pass) {
	last := len(p.saved) - 1
	if last < 0 {
		return
	}
	s, ok := p.saved[last].(*discarded)
	if !ok {
		return
	}
	p.saved = p.saved[:last]
	b, x := s.batch, s.x
	s.x = nil
	s.Free()
	b.Mode = Again
	for _, l := range u.Layers {
		var kept Saved
		x, kept = l.Forward(r, b, x)
		p.saved = append(p.saved, kept)
		r.yield()
	}
	x.Free()
}

// Host is memory outside of the rank's own, where what blocks keep waits for the backward: on a machine with
// accelerators that of the processor, here another arena.
type Host struct {
	Arena *tensor.Arena
	// Out and In count the bytes that were moved there and back.
	Out, In int64
}

// unload moves what layers have saved to the host, if there is one.
func (h *Host) unload(saved []Saved) {
	if h == nil {
		return
	}
	for _, s := range saved {
		s.Each(func(t **tensor.Tensor) { h.Out += move(h.Arena, t) })
	}
}

// load brings it back.
func (h *Host) load(r *Rank, saved []Saved) {
	if h == nil {
		return
	}
	for _, s := range saved {
		s.Each(func(t **tensor.Tensor) { h.In += move(r.Arena, t) })
	}
}

// move puts a tensor, which may be nil, into another arena and returns its bytes.
func move(to *tensor.Arena, t **tensor.Tensor) int64 {
	if *t == nil {
		return 0
	}
	from := *t
	*t = to.New(from.Category(), from.DType(), from.Shape()...)
	copy((*t).Raw(), from.Raw())
	from.Free()
	return int64((*t).Bytes())
}
