package verify

import (
	"slices"
	"strings"

	"carve/comm"
	"carve/mesh"
	"carve/parallel"
	"carve/plan"
	"carve/schedule"
	"carve/tensor"
)

// planter spoils one step of a run. Ranks share it and only read it.
type planter struct {
	fault  Fault
	step   int
	victim int // rank of the world: the last, which is in every group, or the last with a block
	reduce string
	skip   skip // whose sums over the data axes do not take place in the step
}

// skip is who leaves out sums over the data axes.
type skip uint8

const (
	nobody      skip = iota
	everybody        // how terms are got at
	victimAlone      // the others wait
)

// newPlanter plants a fault into the second step, where there is one.
func newPlanter(f Fault, p plan.Plan, steps int) *planter {
	pl := &planter{fault: f, step: min(1, steps-1), victim: p.Layout.World() - 1, reduce: "data"}
	if p.Layout.Zero.Stage > plan.Replicated && inner(p.Layout) {
		pl.reduce = "data shards"
	}
	if f == SwappedRingStep {
		pl.victim = lastWithBlock(p)
	}
	return pl
}

// lastWithBlock is the last of the ranks that hold the first block: a stage may have none.
func lastWithBlock(p plan.Plan) int {
	m, err := p.Layout.Mesh()
	if err != nil {
		return 0
	}
	program, err := parallel.Program(p)
	if err != nil {
		return 0
	}
	first := slices.IndexFunc(p.StageLayers(), func(n int) bool { return n > 0 })
	at := m.Coordinates(m.World() - 1)
	for rank, stages := range program.Stages {
		if slices.ContainsFunc(stages, func(s schedule.Stage) bool { return s.Index == first }) {
			at[mesh.PP] = rank
		}
	}
	return m.Rank(at)
}

// spoiled is the endpoint of a rank in a spoiled run.
type spoiled struct {
	comm.Endpoint
	plant *planter
	step  int // that the rank is in
	arena *tensor.Arena
}

func (p *planter) wrap(e comm.Endpoint) *spoiled {
	return &spoiled{Endpoint: e, plant: p, step: -1, arena: tensor.NewArena(tensor.ArenaOptions{})}
}

// Group implements [comm.Endpoint].
func (s *spoiled) Group(name string, ranks []int) (*comm.Group, error) {
	g, err := s.Endpoint.Group(name, ranks)
	if err != nil {
		return nil, err
	}
	c := &spoiledCarrier{Carrier: g.Carrier(), of: s, group: g}
	switch spoil := s.plant.spoils(name, ranks, s.Rank()); spoil {
	case honest:
		return g, nil
	case halved:
		half := g.Size() / 2
		mine := ranks[:half]
		if g.Rank() >= half {
			mine = ranks[half:]
		}
		if c.half, err = s.Endpoint.Group(name+" half", mine); err != nil {
			return nil, err
		}
		c.spoil = spoil
	case silent, scaled, misplaced:
		c.spoil = spoil
	}
	return g.With(c), nil
}

// spoil is what a carrier does wrong.
type spoil uint8

const (
	honest    spoil = iota
	silent          // sums do not take place
	scaled          // this rank's term is dropped or doubled, once
	halved          // sums are over a half of the group
	misplaced       // exchanges bring blocks to the wrong place
)

// spoils is what a rank's carrier of a group does wrong.
func (p *planter) spoils(name string, ranks []int, rank int) spoil {
	with, me := slices.Contains(ranks, p.victim), rank == p.victim
	switch {
	case p.skip == everybody || p.skip == victimAlone && me:
		if strings.HasPrefix(name, "data") || strings.HasPrefix(name, "expert-data") {
			return silent
		}
	case name == p.reduce && me && (p.fault == DroppedReduction || p.fault == DoubledReduction):
		return scaled
	case name == p.reduce && with && p.fault == WrongGroup:
		return halved
	case name == "context" && with && p.fault == SwappedRingStep:
		return misplaced
	}
	return honest
}

// spoiledCarrier spoils a group's calls.
type spoiledCarrier struct {
	comm.Carrier
	of    *spoiled
	group *comm.Group
	half  *comm.Group
	spoil spoil
	done  int // calls that were spoiled
}

// Do implements [comm.Carrier].
func (c *spoiledCarrier) Do(call comm.Call) error { return c.Start(call).Wait() }

// Start implements [comm.Carrier].
func (c *spoiledCarrier) Start(call comm.Call) comm.Work {
	if at := c.of.plant.step; c.of.step != at {
		return c.Carrier.Start(call)
	}
	switch c.spoil {
	case honest:
	case silent:
		if call.Op.Reduces() {
			return comm.Work{}
		}
	case scaled:
		if call.Op.Reduces() && c.done == 0 {
			c.done++
			c.scale(call.Src)
		}
	case halved:
		if call.Op.Reduces() {
			return c.reduceHalf(call)
		}
	case misplaced:
		return c.exchange(call)
	}
	return c.Carrier.Start(call)
}

// scale multiplies this rank's term by 0 or 2.
func (c *spoiledCarrier) scale(t *tensor.Tensor) {
	factor := 0.0
	if c.of.plant.fault == DoubledReduction {
		factor = 2
	}
	for i := range t.F64() {
		t.F64()[i] *= factor
	}
}

// reduceHalf carries out a reduction over a half of the group.
func (c *spoiledCarrier) reduceHalf(call comm.Call) comm.Work {
	sum := c.of.arena.New(tensor.Workspace, call.Src.DType(), call.Src.Len())
	defer sum.Free()
	copy(sum.Raw(), call.Src.Raw())
	if err := c.half.AllReduce(sum, call.Reduce); err != nil {
		return comm.NewWork(failed{err}, 0)
	}
	if call.Dst != nil {
		from := 0
		if call.Op == comm.ReduceScatter {
			from = c.group.Rank() * len(call.Dst.Raw())
		}
		copy(call.Dst.Raw(), sum.Raw()[from:])
	}
	return comm.Work{}
}

// exchange spoils the exchanges of keys and values: a ring by its direction, a collective by two blocks.
func (c *spoiledCarrier) exchange(call comm.Call) comm.Work {
	n, me := c.group.Size(), c.group.Rank()
	switch call.Op {
	case comm.Send, comm.Recv:
		call.Peer = (2*me - call.Peer + n) % n
	case comm.AllGather, comm.AllToAll, comm.AllToAllV:
		if c.of.Rank() == c.of.plant.victim {
			return comm.NewWork(&swap{work: c.Carrier.Start(call), t: call.Dst, n: n, me: me}, 0)
		}
	case comm.Barrier, comm.Broadcast, comm.Reduce, comm.AllReduce, comm.Gather, comm.Scatter, comm.ReduceScatter:
	}
	return c.Carrier.Start(call)
}

// failed is an operation that came to nothing.
type failed struct{ err error }

// Await implements [comm.Awaiter].
func (f failed) Await(uint64) error { return f.err }

// Done implements [comm.Awaiter].
func (failed) Done(uint64) bool { return false }

// swap changes this rank's of n blocks of what an operation has received with the block before. (Two blocks that are visible as a
// whole may change places: attention does not ask for the order of keys.)
type swap struct {
	work comm.Work
	t    *tensor.Tensor
	n    int
	me   int
	done bool
}

// Await implements [comm.Awaiter].
func (s *swap) Await(uint64) error {
	if err := s.work.Wait(); err != nil || s.done {
		return err
	}
	s.done = true
	size := len(s.t.Raw()) / s.n
	before := (s.me + s.n - 1) % s.n
	one, two := s.t.Raw()[s.me*size:(s.me+1)*size], s.t.Raw()[before*size:(before+1)*size]
	kept := slices.Clone(one)
	copy(one, two)
	copy(two, kept)
	return nil
}

// Done implements [comm.Awaiter].
func (*swap) Done(uint64) bool { return false }

// lose takes the last micro-batch of the victim's samples out of account.
func (p *planter) lose(e *parallel.Engine, pl plan.Plan, step int) {
	if p.fault != LostMicroBatch || step != p.step || e.Data() != pl.Layout.DataParallel()-1 {
		return
	}
	targets := e.Targets()
	for i := len(targets) - pl.MicroBatch*pl.Workload.Sequence; i < len(targets); i++ {
		targets[i] = -1
	}
}

// remember returns what puts a parameter of the victim back to what it is now, and nothing for other faults, steps and ranks.
func (p *planter) remember(e *parallel.Engine, step int) (restore func()) {
	if p.fault != StaleParameter || step != p.step || e.World().Rank() != p.victim {
		return func() {}
	}
	first := parameters(e)[0]
	before := floats(first.tensor)
	return func() { copy(first.tensor.F64(), before) }
}
