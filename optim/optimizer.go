package optim

import (
	"carve/nn"
	"carve/tensor"
)

// Optimizer updates a model's parameters from its reduced gradients.
type Optimizer interface {
	// Step makes one update with the given learning rate. Gradients are multiplied by scale first (clipping). The
	// gradients are used up: they may hold anything afterwards.
	Step(rate, scale float64)
	// Steps is the number of updates made.
	Steps() int
	// States lists what the optimizer remembers, in the order of the parameters.
	States() []Entry
	// Restore continues from another optimizer's state: the caller has written the tensors of States, and gives the
	// number of updates that led to them.
	Restore(steps int)
}

// Entry is what an optimizer remembers of one parameter: a view of its memory, shaped as the parameter's part. What
// States of other ranks have and this one's has not, this rank does not keep.
type Entry struct {
	Param  *nn.Param
	Kind   StateKind
	Tensor *tensor.Tensor
}

// memorySlot is a piece of the model and the optimizer's memory of it.
type memorySlot struct {
	span
	value, grad *tensor.Tensor   // of the model
	master      *tensor.Tensor   // value itself unless that is bf16
	moments     []*tensor.Tensor // one per kind
}

// memory is an optimizer's state of the chosen parameters, without gaps.
type memory struct {
	r     *nn.Rank
	kinds []StateKind
	slots []memorySlot
	state []Entry
}

// newMemory makes zero moments of the given kinds and, under bf16, masters equal to the parameters.
func newMemory(r *nn.Rank, m *nn.Model, kinds []StateKind, spans []span) *memory {
	total := 0
	for _, s := range spans {
		total += s.hi - s.lo
	}
	y := &memory{r: r, kinds: kinds}
	buffers := make([]*tensor.Tensor, len(kinds))
	for i := range kinds {
		buffers[i] = r.Arena.New(tensor.Optimizer, wide(r.DType), total)
		r.Dev.Fill(buffers[i], 0)
	}
	var masters *tensor.Tensor
	if r.DType == tensor.BF16 {
		masters = r.Arena.New(tensor.Optimizer, tensor.FP32, total)
	}
	at := 0
	for _, s := range spans {
		n := s.hi - s.lo
		memorySlot := memorySlot{span: s, value: m.Value.Slice(s.lo, s.hi), grad: m.Grad.Slice(s.lo, s.hi)}
		for _, b := range buffers {
			memorySlot.moments = append(memorySlot.moments, b.Slice(at, at+n))
		}
		memorySlot.master = memorySlot.value
		if masters != nil {
			memorySlot.master = masters.Slice(at, at+n)
			r.Dev.Copy(memorySlot.master, memorySlot.value)
		}
		y.slots = append(y.slots, memorySlot)
		at += n
	}
	y.list(m)
	return y
}

// list names the state of every parameter.
func (y *memory) list(m *nn.Model) {
	i := 0
	for _, p := range m.Params() {
		for i < len(y.slots) && y.slots[i].hi <= p.Offset {
			i++
		}
		if i == len(y.slots) || p.Offset < y.slots[i].lo {
			continue
		}
		s := y.slots[i]
		view := func(kind StateKind, t *tensor.Tensor) {
			at := p.Offset - s.lo
			y.state = append(y.state, Entry{p, kind, t.Slice(at, at+p.Len(), p.Region.Shape()...)})
		}
		if s.master != s.value {
			view(Master, s.master)
		}
		for k, t := range s.moments {
			view(y.kinds[k], t)
		}
	}
}

// copyOut is the parameter that receives the rounded master, or nil when the master is the parameter.
func (s *memorySlot) copyOut() *tensor.Tensor {
	if s.master == s.value {
		return nil
	}
	return s.value
}

// publish rounds every master into its parameter.
func (y *memory) publish() {
	for i := range y.slots {
		if s := &y.slots[i]; s.master != s.value {
			y.r.Dev.Copy(s.value, s.master)
		}
	}
}
