package price

import (
	"errors"
	"math"

	"carve/collective"
	"carve/cost"
	"carve/unit"
)

// Blocks are the prices of a job's layers on a rank. They do not depend on the pipeline, the data axis and state sharding, so a search makes
// them once for many layouts.
type Blocks struct {
	mean  block   // of all layers
	head  block   // output product and loss
	table float64 // parameters of the embedding on the rank
	count float64 // layers, those that predict further tokens within
	rows  float64 // T
	last  *pricer // of the last price: layouts next to each other mostly share it
	local float64 // of them on the rank between regions of the tensor axis
}

// errJob is the error of a job that cannot be priced.
var errJob = errors.New("price: degrees, micro-batch, sequence and global batch are 1 or more, and the model has layers")

// NewBlocks prices the layers of a job.
func NewBlocks(j *Job, m *cost.Machine, f *Profile) (*Blocks, error) {
	p, err := newPricer(j, m, f)
	if err != nil {
		return nil, err
	}
	return p.blocks(), nil
}

// blocks prices every kind of layer once.
func (p *pricer) blocks() *Blocks {
	c, tp := &p.job.Model, float64(p.job.Layout.TP)
	b := &Blocks{rows: p.rows, local: p.local, count: float64(c.Layers + c.MTP)}
	dense, mixed := 0.0, 0.0
	firstDense, firstMixed := -1, -1
	for i := range c.Layers + c.MTP {
		if c.HasExperts(i) {
			mixed++
			firstMixed = i
		} else {
			dense++
			firstDense = i
		}
	}
	if firstDense >= 0 {
		b.mean.add(p.layer(firstDense), dense/b.count)
	}
	if firstMixed >= 0 {
		b.mean.add(p.layer(firstMixed), mixed/b.count)
	}
	b.table = float64(c.Vocab) * float64(c.Hidden) / tp
	logits := p.rows * float64(c.Vocab) / tp
	p.products(&b.head, p.rows, float64(c.Vocab)/tp, float64(c.Hidden))
	memory := p.machine.Memory(unit.Bytes(logits * p.profile.Logits))
	b.head.forward += memory
	b.head.backward += memory
	heads := unit.Seconds(1 + c.MTP)
	b.head.forward, b.head.backward = heads*b.head.forward, heads*b.head.backward
	b.head.saved = logits * p.profile.Logits
	return b
}

// add adds a share of another block.
func (b *block) add(o block, share float64) {
	s := unit.Seconds(share)
	b.forward += s * o.forward
	b.backward += s * o.backward
	b.tp += s * o.tp
	b.ep += s * o.ep
	b.cp += s * o.cp
	b.parameters += share * o.parameters
	b.experts += share * o.experts
	b.saved += share * o.saved
	b.working = max(b.working, o.working)
}

// pass is a block's time forward and backward, exposed communication within.
func (b *block) pass() unit.Seconds { return b.forward + b.backward + b.tp + b.ep + b.cp }

// Of prices a job on a machine under a framework's profile.
func Of(j *Job, m *cost.Machine, f *Profile) (Time, Memory, error) {
	l := j.Layout
	for _, n := range []int{l.TP, l.PP, l.CP, l.DP, l.EP, l.ExpertTP, l.Virtual, l.MicroBatch, j.Sequence, j.GlobalBatch, j.Model.Layers} {
		if n < 1 {
			return Time{}, Memory{}, errJob
		}
	}
	p, err := newPricer(j, m, f)
	if err != nil {
		return Time{}, Memory{}, err
	}
	b := p.blocks()
	return p.time(b), p.memory(b), nil
}

// time is the step's.
func (p *pricer) time(b *Blocks) (t Time) {
	l := p.job.Layout
	pp, v, micros := float64(l.PP), unit.Seconds(l.Virtual), unit.Seconds(p.job.Micros())
	layers := unit.Seconds(b.count)
	block, head := b.mean.pass(), b.head.forward+b.head.backward
	most, least := unit.Seconds(math.Ceil(b.count/pp)), unit.Seconds(math.Floor(b.count/pp))
	slowest, sum := max(most*block, least*block+head), layers*block+head
	if l.PP == 1 {
		slowest = sum
	}
	share := slowest / block // layers' worth of work on the slowest stage
	t.Compute = micros * (slowest - share*(b.mean.tp+b.mean.ep+b.mean.cp))
	t.TP, t.EP, t.CP = micros*share*b.mean.tp, micros*share*b.mean.ep, micros*share*b.mean.cp
	t.Bubble = fill(l, sum-slowest, v)
	if l.PP > 1 {
		crossings := 2*micros*v*unit.Seconds(1-p.profile.HiddenPP) + 2*unit.Seconds(pp-1)
		hop := p.hop + unit.Seconds(p.profile.Hop)
		if l.TP > 1 {
			hop += unit.Seconds(p.profile.HopTP)
		}
		t.PP = crossings * hop
	}
	p.data(b, &t, most)
	t.Step = t.Compute + t.TP + t.EP + t.CP + t.Bubble + t.PP + t.DP + t.Update
	return t
}

// fill is how long the slowest stage waits for the others, given a pass of those.
func fill(l Layout, others, chunks unit.Seconds) unit.Seconds {
	switch l.Schedule {
	case OneForwardOneBackward, AllForwardAllBackward:
		return others
	case Interleaved:
		return others / chunks
	case ZeroBubble:
		return others * zeroBubbleFill
	case VShape:
		return others * vShapeFill
	case DualPipe:
		return others * dualPipeFill
	}
	return others
}

// The parts of the others' passes that the slowest stage waits in a step, by replay of the schedules (package schedule) with F = 1,
// I = 1.2 and W = 0.8: attention's backward is all in I. A step ends at a barrier, so this is more than the papers count.
const (
	zeroBubbleFill = 1.4 / 3
	vShapeFill     = 0.2
	dualPipeFill   = 0.41
)

// data adds the communication of the data axis and the optimizer.
func (p *pricer) data(b *Blocks, t *Time, layers unit.Seconds) {
	l, f := p.job.Layout, p.profile
	n := float64(layers)
	dense, routed := n*b.mean.parameters+b.table, n*b.mean.experts
	backward, forward := layers*b.mean.backward*unit.Seconds(f.Overlap), layers*b.mean.forward*unit.Seconds(f.Overlap)
	switch {
	case l.Zero == 0:
		t.DP = hidden(p.both(collective.AllReduce, p.dp, p.experts, dense*f.ReduceBytes, routed*f.ReduceBytes), backward)
	case l.Zero < 3:
		t.DP = hidden(p.both(collective.ReduceScatter, p.dp, p.experts, dense*f.ReduceBytes, routed*f.ReduceBytes), backward) +
			hidden(p.both(collective.AllGather, p.dp, p.experts, dense*f.GatherBytes, routed*f.GatherBytes), forward)
	default:
		p.units(b, t, layers)
	}
	state := (dense + routed) / float64(p.owners())
	moved := state * 2 * (f.Optimizer + f.ReduceBytes + f.ShardedParameter)
	t.Update = p.machine.Memory(unit.Bytes(moved)) + p.dp.Collective(collective.AllReduce, 8)
}

// both is a collective of the dense parameters and one of the experts', one after the other.
func (p *pricer) both(op collective.Op, dense, routed cost.Group, bytes, expertBytes float64) unit.Seconds {
	t := dense.Collective(op, bytes)
	if expertBytes > 0 {
		t += routed.Collective(op, expertBytes)
	}
	return t
}

// hidden is what is left of communication that so much computing hides.
func hidden(communication, computing unit.Seconds) unit.Seconds {
	return max(0, communication-computing)
}

// units adds the gathering and reducing of stage 3: of every block in every pass of every micro-batch.
func (p *pricer) units(b *Blocks, t *Time, layers unit.Seconds) {
	f, overlap := p.profile, unit.Seconds(p.profile.Overlap)
	micros := unit.Seconds(p.job.Micros())
	gather := p.both(collective.AllGather, p.shard, p.experts, b.mean.parameters*f.GatherBytes, b.mean.experts*f.GatherBytes)
	reduce := p.both(collective.ReduceScatter, p.shard, p.experts, b.mean.parameters*f.ReduceBytes, b.mean.experts*f.ReduceBytes)
	reductions := unit.Seconds(1)
	if f.EveryMicro {
		reductions = micros
	}
	t.DP += micros * layers * hidden(gather, overlap*b.mean.forward)
	t.DP += reductions * layers * hidden(gather+reduce, overlap*b.mean.backward)
	t.DP += (micros - reductions) * layers * hidden(gather, overlap*b.mean.backward)
	edges := p.shard.Collective(collective.AllGather, b.table*f.GatherBytes) + p.shard.Collective(collective.ReduceScatter, b.table*f.ReduceBytes)
	t.DP += micros*gather + edges
	if p.shard.Size() < p.dp.Size() { // copies of the shards are summed, too
		replicas := p.machine.Cluster.Levels[p.dp.Level()]
		copies := float64(p.dp.Size() / p.shard.Size())
		bytes := (float64(layers)*b.mean.parameters + b.table) * f.ReduceBytes / float64(p.shard.Size())
		t.DP += hidden(unit.Seconds(2*(copies-1)/copies*bytes/float64(replicas.Bandwidth)), overlap*layers*b.mean.backward)
	}
}

// owners is the number of ranks that share out the optimizer's state.
func (p *pricer) owners() int {
	if p.job.Layout.Zero == 0 {
		return 1
	}
	return p.shard.Size()
}

// Price prices a job whose layers have been priced: it may differ from theirs in the pipeline, the data axis and
// state sharding.
func (b *Blocks) Price(j *Job, m *cost.Machine, f *Profile) (Time, Memory, error) {
	if p := b.last; p == nil || !sameGroups(p.job.Layout, j.Layout) {
		p, err := newPricer(j, m, f)
		if err != nil {
			return Time{}, Memory{}, err
		}
		own := *j
		p.job = &own
		b.last = p
	}
	b.last.job.Layout = j.Layout
	return b.last.time(b), b.last.memory(b), nil
}

// sameGroups tells whether two layouts have the same groups of ranks, and messages of the same size.
func sameGroups(a, b Layout) bool {
	a.Zero, a.Schedule, a.Virtual = b.Zero, b.Schedule, b.Virtual
	return a == b
}
