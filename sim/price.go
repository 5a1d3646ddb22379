package sim

import (
	"fmt"
	"strings"

	"carve/comm"
	"carve/cost"
	"carve/mesh"
	"carve/parallel"
	"carve/plan"
	"carve/record"
	"carve/schedule"
	"carve/tensor"
	"carve/unit"
)

// Price records what the rank of every pipeline stage does and how long it takes there.
func Price(p plan.Plan, m cost.Machine) ([]*Work, error) {
	ranks, err := record.Representatives(p)
	if err != nil {
		return nil, fmt.Errorf("sim: %w", err)
	}
	short := shorten(p)
	var all []*Work
	for _, rank := range ranks {
		w, err := priceRank(short, m, rank)
		if err != nil {
			return nil, fmt.Errorf("sim: %w", err)
		}
		all = append(all, w)
	}
	return all, nil
}

// shorten is p with as few micro-batches as its schedule shows everything with.
func shorten(p plan.Plan) plan.Plan {
	pp := p.Layout.Degrees[mesh.PP]
	micros := 3
	switch p.Layout.Pipeline.Schedule {
	case plan.Interleaved:
		micros = max(3, pp)
		if pp == 2 {
			micros = 4
		}
	case plan.ZeroBubbleH1, plan.ZeroBubbleV, plan.DualPipe, plan.DualPipeV:
		micros = 4 * pp
	case plan.AllForwardAllBackward, plan.OneForwardOneBackward:
	}
	if micros < p.MicroBatches() {
		p.Workload.GlobalBatch = micros * p.MicroBatch * p.Layout.DataParallel()
	}
	return p
}

// priceRank records one rank.
func priceRank(p plan.Plan, m cost.Machine, rank int) (*Work, error) {
	grid, err := p.Layout.Mesh()
	if err != nil {
		return nil, err
	}
	s := &sink{
		machine: m, grid: grid, rank: rank, index: map[*comm.Group]int{}, at: map[schedule.Action]int{},
		work: &Work{Rank: rank, Message: map[int]Message{}, actions: map[key]*variants{}},
	}
	if _, err := record.Run(p, rank, record.Options{Kernels: tensor.PortableKernels, Sink: s}); err != nil {
		return nil, err
	}
	s.settle()
	return s.work, nil
}

// sink turns a record into items.
type sink struct {
	record.Nothing
	machine cost.Machine
	grid    mesh.Mesh
	rank    int
	work    *Work

	index  map[*comm.Group]int
	groups []group
	at     map[schedule.Action]int
	done   []instance // in the order of the first event
}

// group is a group of the rank.
type group struct {
	cost     cost.Group
	axis     Axis
	stages   int
	messages bool // between stages
}

// instance is one action and what it consists of.
type instance struct {
	action schedule.Action
	items  []Item
}

// items is where what happens at a moment belongs.
func (s *sink) items(m record.Moment) *[]Item {
	switch m.Phase {
	case parallel.Reducing, parallel.Norming, parallel.Updating, parallel.Sending:
		return &s.work.tail
	case parallel.Forward, parallel.Backward, parallel.WeightGradient, parallel.Both, parallel.Receiving:
	}
	i, ok := s.at[m.Action]
	if !ok {
		i = len(s.done)
		s.at[m.Action] = i
		s.done = append(s.done, instance{action: m.Action})
	}
	return &s.done[i].items
}

// Compute implements [record.Sink].
func (s *sink) Compute(m record.Moment, o tensor.Operation) {
	if m.Step == record.Building {
		return
	}
	items := s.items(m)
	if n := len(*items); n == 0 || (*items)[n-1].Kind != Compute {
		*items = append(*items, Item{Kind: Compute})
	}
	last := &(*items)[len(*items)-1]
	last.Seconds += s.seconds(o)
	switch o.Kind {
	case tensor.OpMatMul, tensor.OpAttention, tensor.OpAttentionBackward:
		last.FLOPs += o.FLOPs
	default:
	}
}

// seconds is the time of an operation. The head computes its logits in parts of as many rows as suit a processor's caches; on another device
// it would choose larger ones, so its products are priced as parts of a large one.
func (s *sink) seconds(o tensor.Operation) unit.Seconds {
	if o.Kind == tensor.OpMatMul && strings.HasPrefix(o.Owner, "lm_head") {
		return unit.Seconds(float64(o.FLOPs) / (s.machine.Constants.MatMul * float64(s.machine.Peak(o.DType))))
	}
	return s.machine.Operation(o)
}

// Issue implements [record.Sink].
func (s *sink) Issue(m record.Moment, t comm.Transfer) {
	if m.Step == record.Building {
		return
	}
	i := s.group(t.Group)
	g := &s.groups[i]
	if g.messages {
		if t.Op == comm.Send {
			to := t.Group.Ranks()[t.Peer]
			s.work.Message[t.Peer] = Message{s.machine.Message(s.rank, to, float64(t.Bytes)), s.machine.LevelOf(s.rank, to)}
		}
		return
	}
	kind := Start
	if t.Mode == comm.Blocking {
		kind = Blocking
	}
	items := s.items(m)
	item := Item{Kind: kind, Name: t.Op.String(), Level: g.cost.Level(), Axis: g.axis, Group: i, Stages: g.stages}
	op, meets := t.Op.Collective()
	switch {
	case !meets:
		peer := t.Group.Ranks()[t.Peer]
		item.Seconds, item.Level = s.machine.Message(s.rank, peer, float64(t.Bytes)), s.machine.LevelOf(s.rank, peer)
		if t.Op == comm.Recv { // the port in is beside the port out
			item.Level = noPort
		}
	default:
		item.Seconds = g.cost.Collective(op, float64(t.Bytes))
	}
	*items = append(*items, item)
}

// Wait implements [record.Sink].
func (s *sink) Wait(m record.Moment, t comm.Transfer) {
	if m.Step == record.Building || t.Mode != comm.Started {
		return
	}
	if i := s.group(t.Group); !s.groups[i].messages {
		items := s.items(m)
		*items = append(*items, Item{Kind: Wait, Name: t.Op.String(), Axis: s.groups[i].axis, Group: i})
	}
}

// group is the number of a group.
func (s *sink) group(g *comm.Group) int {
	i, ok := s.index[g]
	if ok {
		return i
	}
	ranks := g.Ranks()
	made := group{cost: s.machine.GroupOfRanks(ranks), messages: strings.HasPrefix(g.Name(), "pipeline ")}
	made.axis, made.stages = s.axes(ranks)
	i = len(s.groups)
	s.index[g] = i
	s.groups = append(s.groups, made)
	s.work.Groups = append(s.work.Groups, g.Name())
	return i
}

// axes is which axis a group is of, and how many pipeline stages take part. Gradients are reduced over several axes of data:
// those count as dp.
func (s *sink) axes(ranks []int) (Axis, int) {
	var differ mesh.Axes
	stages := map[int]bool{}
	first := s.grid.Coordinates(ranks[0])
	for _, r := range ranks {
		at := s.grid.Coordinates(r)
		stages[at[mesh.PP]] = true
		for _, a := range mesh.All {
			if at[a] != first[a] {
				differ |= mesh.Of(a)
			}
		}
	}
	for _, a := range mesh.All {
		if differ == mesh.Of(a) {
			return Axis(a), len(stages)
		}
	}
	if differ&^mesh.DenseData == 0 {
		return Axis(mesh.DP), len(stages)
	}
	return World, len(stages)
}

// settle keeps the first, the last and a middle one of the actions of each kind.
func (s *sink) settle() {
	kinds := map[key][]int{}
	for i, d := range s.done {
		kinds[keyOf(d.action)] = append(kinds[keyOf(d.action)], i)
	}
	for k, all := range kinds {
		s.work.actions[k] = &variants{s.done[all[0]].items, s.done[all[(len(all)-1)/2]].items, s.done[all[len(all)-1]].items}
	}
}
