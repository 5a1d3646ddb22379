package optim

import (
	"math"

	"carve/comm"
	"carve/mesh"
	"carve/nn"
	"carve/tensor"
)

// State is one rank's share of a model's state: it knows where values, gradients and the algorithm's memory lie, brings
// gradients to their owners while the backward goes on, updates what this rank owns, and brings the values back to
// those who need them. It implements [nn.Ready], and, where gradients or parameters are sharded, [nn.Keeper].
type State struct {
	r         *nn.Rank
	m         *nn.Model
	o         Options
	families  [2]family     // dense and expert
	streams   []*comm.Group // over the ranks of the tensor axis, or parts of it, for gradients alone
	blocks    []*block
	homes     []*home // by unit
	slots     []*slot // in the order of the flat buffers
	steps     int
	values    *tensor.Tensor // this rank's own, where parameters are sharded
	gradients *tensor.Tensor // the same of sums in full precision, where gradients are sharded

	buckets  []*bucket // by unit, at stages 0 and 1
	order    []*bucket // from the last to the first
	underway []*bucket
	sending  []*home // whose gradients are on their way to their owners
	twins    convoy  // sums among the stages that hold the same units
	counted  []*tensor.Tensor
	world    *comm.Group
	sum      *tensor.Tensor // [1], fp64
}

// home is where the state of a unit lies.
type home struct {
	unit    *nn.Unit
	blocks  []*block
	slots   []*slot
	publish convoy // values from their owners to all

	loan   loan
	gather gathered
}

// NewState makes the state of a model that was built with [Options.Storage]. It becomes the rank's keeper where the
// model has not all the memory. [State.Init] or [State.Restore] gives the parameters their values. Every rank of
// the job calls it.
func NewState(r *nn.Rank, m *nn.Model, o Options) (*State, error) {
	if o.Bucket == 0 {
		o.Bucket = DefaultBucket
	}
	if err := o.check(r, m); err != nil {
		return nil, err
	}
	s := &State{r: r, m: m, o: o, sum: r.Arena.New(tensor.Communication, tensor.FP64, 1)}
	if err := s.join(); err != nil {
		return nil, err
	}
	deal(s.blocks, o)
	s.settleDown()
	s.remember()
	s.planReductions()
	s.planPrefetch()
	for _, p := range s.Gradients() {
		if p.Owned {
			s.counted = append(s.counted, p.Tensor)
		}
	}
	if o.Storage() > nn.ValuesAndGradients {
		r.Keeper = s
	}
	return s, nil
}

// join makes the groups and the blocks.
func (s *State) join() (err error) {
	r := s.r
	for i, g := range []*comm.Group{r.Groups.Data, r.Groups.ExpertData} {
		if s.families[i], err = newFamily(r, g, s.o); err != nil {
			return err
		}
	}
	for _, u := range s.m.Units {
		h := &home{unit: u, blocks: blocksOf(u, &s.families[0], &s.families[1])}
		for _, b := range h.blocks {
			if b.twins, b.first, b.set, err = twinsOf(r, s.o, u); err != nil {
				return err
			}
		}
		s.homes = append(s.homes, h)
		s.blocks = append(s.blocks, h.blocks...)
	}
	for _, p := range s.m.Params() {
		if err = s.joinStream(r.Groups.Shared(p)); err != nil {
			return err
		}
	}
	if r.Mesh != (mesh.Mesh{}) {
		s.world, err = r.Groups.Join("gradient norm", r.Mesh.Group(0, mesh.Everything))
	}
	return err
}

// joinStream makes a stream for gradients over the ranks of a group of the tensor axis, which may be nil. Layers use the
// group itself, possibly of two micro-batches at once, and not in the same order on all ranks.
func (s *State) joinStream(g *comm.Group) error {
	if g == nil || s.stream(g) != nil {
		return nil
	}
	own, err := s.r.Groups.Join(g.Name()+" gradients", g.Ranks())
	s.streams = append(s.streams, own)
	return err
}

// stream is the stream for gradients over the ranks of a group.
func (s *State) stream(g *comm.Group) *comm.Group {
	for _, own := range s.streams {
		if g != nil && own.Name() == g.Name()+" gradients" {
			return own
		}
	}
	return nil
}

// sharded tells whether this rank keeps the state of its own parts only.
func (s *State) sharded() bool { return s.o.Stage > Replicated || s.o.Mode == Server }

// keeps tells whether this rank keeps the state of a part.
func (s *State) keeps(b *block, p part) bool {
	return p.owner == b.family.me() || !s.sharded() && !s.o.Algorithm.whole(p.param)
}

// settleDown finds what this rank keeps, and makes room for it.
func (s *State) settleDown() {
	at := 0
	for _, b := range s.blocks {
		for _, p := range b.parts {
			if s.keeps(b, p) {
				owned := p.owner == b.family.me() && position(b.family.replica) == 0 && b.first
				b.kept = append(b.kept, holding{p, at, owned})
				at += p.len()
			}
		}
	}
	if s.o.Stage >= ShardGradients {
		s.gradients = s.r.Arena.New(tensor.Gradient, wide(s.r.DType), at)
	}
	if s.o.Stage >= ShardParameters {
		s.values = s.r.Arena.New(tensor.Parameter, s.r.DType, at)
	}
}

// remember makes the slots and the algorithm's memory.
func (s *State) remember() {
	for _, h := range s.homes {
		for _, b := range h.blocks {
			for _, k := range b.kept {
				h.slots = s.cut(h.slots, b, k)
			}
		}
		for _, slot := range h.slots {
			slot.remember(s.r)
		}
		s.slots = append(s.slots, h.slots...)
	}
}

// cut divides what this rank keeps of a block into runs of parameters that are treated alike.
func (s *State) cut(slots []*slot, b *block, k holding) []*slot {
	a := s.o.Algorithm
	var open *slot
	for _, p := range b.params {
		lo, hi := max(p.Offset, k.lo), min(p.Offset+p.Len(), k.hi)
		if lo >= hi {
			continue
		}
		kinds := a.kinds(p)
		if open == nil || open.whole != nil || a.whole(p) || open.decay != p.Decay || len(open.kinds) != len(kinds) {
			open = &slot{lo: lo, decay: p.Decay, kinds: kinds, owned: k.owned}
			slots = append(slots, open)
		}
		open.hi, open.params = hi, append(open.params, p)
		if a.whole(p) {
			open.whole = p
		}
	}
	for _, slot := range slots {
		if slot.value == nil {
			s.bind(slot, k)
		}
	}
	return slots
}

// bind makes a slot's views of values and gradients.
func (s *State) bind(slot *slot, k holding) {
	shape := []int{slot.hi - slot.lo}
	if slot.whole != nil {
		shape = slot.whole.Region.Shape()
	}
	view := func(own, all *tensor.Tensor) *tensor.Tensor {
		if own != nil {
			at := k.at + slot.lo - k.lo
			return own.Slice(at, at+slot.hi-slot.lo, shape...)
		}
		return all.Slice(slot.lo, slot.hi, shape...)
	}
	slot.value, slot.grad = view(s.values, s.m.Value), view(s.gradients, s.m.Grad)
}

// Init gives the parameters their initial values.
func (s *State) Init() {
	s.m.Init(s.r)
	for _, slot := range s.slots {
		if slot.master != slot.value {
			s.r.Dev.Copy(slot.master, slot.value)
		}
	}
}

// Restore continues from another state: the caller has written the pieces of [State.States] and [State.Parameters], and
// gives the number of updates that led to them. Every rank of the job calls it.
func (s *State) Restore(steps int) {
	s.steps = steps
	for _, h := range s.homes {
		for _, slot := range h.slots {
			if slot.master != slot.value {
				s.r.Dev.Copy(slot.value, slot.master)
			}
		}
		s.send(h)
	}
	s.published()
}

// Steps is the number of updates made.
func (s *State) Steps() int { return s.steps }

// Begin starts a step: the gradients of the step before are forgotten.
func (s *State) Begin() {
	s.m.Begin()
	for _, b := range s.order {
		b.pending = b.units
	}
	for _, h := range s.homes {
		h.loan.stale, h.loan.complete = true, false
	}
	s.release()
}

// Norm is the global norm of the gradient, after [State.Finish]: of the one gradient that the whole job has, every
// parameter counted once, however it is split or copied. Every rank gets the same number; all call it together.
func (s *State) Norm() float64 {
	var sum float64
	for _, t := range s.counted {
		sum += s.r.Dev.SquaredNorm(t)
	}
	if s.world != nil {
		s.r.Dev.Fill(s.sum, sum)
		nn.Must(s.world.AllReduce(s.sum, tensor.Sum))
		if !s.sum.Meta() {
			sum = s.sum.F64()[0]
		}
	}
	return math.Sqrt(sum)
}

// leads tells whether this rank is the first of those on the tensor axis that hold the same part of a parameter. The data
// axes are the family's matter, and the pipeline axis that of twins.
func (s *State) leads(p *nn.Param) bool {
	at := mesh.Coordinates{mesh.TP: s.r.At[mesh.TP]}
	if p.Spec[mesh.EP].Kind != mesh.Replicated {
		at[mesh.EP] = s.r.At[mesh.EP] // an expert is on one coordinate
	}
	return s.r.Mesh == (mesh.Mesh{}) || p.Spec.Owns(s.r.Mesh, at)
}

// Step updates the parameters with a learning rate; gradients are multiplied by scale first (clipping). The gradients are
// used up: they may hold anything afterwards. Values are sent on to those who need them while the next are updated.
func (s *State) Step(rate, scale float64) {
	s.steps++
	s.release()
	c := change{rate: rate, scale: scale, step: s.steps}
	for _, h := range s.homes {
		for _, slot := range h.slots {
			s.o.Algorithm.update(s.r, slot, c)
		}
		s.send(h)
	}
	s.published()
}

// send starts to send the values of a unit from their owners to all.
func (s *State) send(h *home) {
	if s.o.Stage < ShardParameters {
		h.publish.start(s.m.Value, 0)
	}
}

// published waits until all values are where they are needed.
func (s *State) published() {
	for _, h := range s.homes {
		h.publish.finish()
	}
}

// Parameters lists the values that this rank keeps, and those that change without a gradient ([nn.Unit.States]). Together
// with [State.States] they are what a checkpoint holds; both are good between steps.
func (s *State) Parameters() (list []Piece) {
	for _, slot := range s.slots {
		list = s.pieces(list, slot, Value, slot.value)
	}
	for _, h := range s.homes {
		for _, p := range h.unit.States {
			list = append(list, Piece{p, Value, p.Region, p.Value, h.blocks[0].first && s.alone()})
		}
	}
	return list
}

// alone tells whether this rank is the first of those with the same stage.
func (s *State) alone() bool {
	at := s.r.At
	at[mesh.PP] = 0
	return at == mesh.Coordinates{}
}

// Gradients lists the reduced gradients that this rank keeps, after [State.Finish] and before [State.Step].
func (s *State) Gradients() (list []Piece) {
	for _, slot := range s.slots {
		list = s.pieces(list, slot, Gradient, slot.grad)
	}
	return list
}

// States lists what the algorithm remembers of the parameters that this rank keeps the state of.
func (s *State) States() (list []Piece) {
	for _, slot := range s.slots {
		if slot.master != slot.value {
			list = s.pieces(list, slot, Master, slot.master)
		}
		for i, t := range slot.moments {
			list = s.pieces(list, slot, slot.kinds[i], t)
		}
	}
	return list
}
