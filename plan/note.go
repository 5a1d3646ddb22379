package plan

import (
	"slices"

	"carve/cluster"
	"carve/mesh"
	"carve/model"
)

// thisMachineName is the preset whose ranks share the cores that there are.
const thisMachineName = cluster.ThisMachine

// Notes returns what is legal in a valid plan but worth knowing: uneven stages, key-value heads held more
// than once, uneven rows, a chatty axis on a slow link, idle devices, positions beyond those the model was made for.
func (p Plan) Notes() []*Violation {
	c := &checker{}
	m, tp := p.Model.Config, p.Layout.Degrees[mesh.TP]
	if list := p.StageLayers(); slices.Min(list) != slices.Max(list) {
		c.add(RuleUneven, stageKeys, "%d layers do not lie evenly on %d chunks: %s", m.Layers, len(list), counted(list))
	}
	if tp > m.KVHeads {
		c.add(RuleReplicated, "layout.tp", "%d key-value heads over tensor degree %d: each is held by %d ranks; tensor degree %d or less would hold it once",
			m.KVHeads, tp, tp/m.KVHeads, m.KVHeads)
	}
	if rows := p.MicroBatch * p.Workload.Sequence / p.Layout.Degrees[mesh.CP]; p.Layout.SequenceParallel && p.Layout.Tensor.Kind == Megatron && rows%tp != 0 {
		c.add(RuleSequence, "workload.sequence layout.sequence_parallel", "%d rows do not lie evenly on tensor degree %d: their blocks travel one by one, and other engines refuse them", rows, tp)
	}
	if m.Position == model.Rotary && p.Workload.Sequence > m.Context {
		c.add(RuleSequence, "workload.sequence", "sequence %d is longer than the %d positions that the model was made for", p.Workload.Sequence, m.Context)
	}
	if steps := p.Steps(); p.Optimizer.Warmup > steps {
		c.add(RuleOptimizer, "optimizer.warmup", "warm-up of %d steps is longer than the run's %d: the learning rate is never reached", p.Optimizer.Warmup, steps)
	}
	c.links(p)
	return c.found
}

// links notes the axes that cross links they talk too much for, and devices without a rank.
func (c *checker) links(p Plan) {
	machine := p.Cluster.Machine
	grid, err := p.Layout.Mesh()
	if err != nil || len(machine.Levels) == 0 {
		return
	}
	for _, a := range []mesh.Axis{mesh.TP, mesh.EP, mesh.CP} {
		if span := widest(grid, a, machine.Sizes()); span > 0 && span < len(machine.Levels) {
			fast, slow := machine.Levels[0], machine.Levels[span]
			c.add(RuleSlowLink, "layout.order", "%s groups of %d ranks cross %s (%s) instead of staying on %s (%s, %d devices)",
				a.Noun(), grid.Degree(a), slow.Name, slow.Bandwidth, fast.Name, fast.Bandwidth, fast.Size)
		}
	}
	if idle := machine.Devices() - p.Layout.World(); idle > 0 && p.Cluster.Preset != thisMachineName {
		c.add(RuleIdle, "layout cluster", "%d of %d devices have no rank", idle, machine.Devices())
	}
}

// widest returns the outermost level that any group of an axis crosses.
func widest(grid mesh.Mesh, a mesh.Axis, sizes []int) (span int) {
	for _, group := range grid.Groups(mesh.Of(a)) {
		span = max(span, mesh.Span(group, sizes))
	}
	return span
}
