package explain

import (
	"fmt"
	"slices"
	"strings"

	"carve/mesh"
	"carve/model"
	"carve/plan"
)

// axes answers the four questions for every axis above 1.
func (e *explainer) axes() []Axis {
	out := []Axis{}
	for _, a := range mesh.All {
		if e.mesh.Degree(a) == 1 {
			continue
		}
		x := Axis{
			Name: a.String(), Noun: a.Noun(), Degree: e.mesh.Degree(a), Split: e.splitBy(a), Replicated: e.replicatedOver(a),
			Link: e.places.link(mesh.Of(a)), Group: few(e.mesh.Group(0, mesh.Of(a))), Rank: e.ranks[0].Rank, Restores: []Flow{},
		}
		for i, r := range e.ranks {
			if y := x.restoredBy(e.flowsOf(i)); y.Bytes > x.Bytes {
				x, x.Rank = y, r.Rank
			}
		}
		out = append(out, x)
	}
	return out
}

// restoredBy is the axis with the flows of one rank that go along it.
func (x Axis) restoredBy(flows []Flow) Axis {
	x.Restores, x.Calls, x.Bytes, x.WireBytes, x.HiddenBytes = nil, 0, 0, 0, 0
	for _, f := range flows {
		if !slices.Contains(f.Axes, x.Name) {
			continue
		}
		f.Module = ""
		x.Restores = append(x.Restores, f)
		x.Calls += f.Calls
		x.Bytes += f.Bytes
		x.WireBytes += f.WireBytes
		x.HiddenBytes += f.HiddenBytes
	}
	x.Restores = together(x.Restores, (*Flow).add)
	return x
}

// splitBy is what an axis splits.
func (e *explainer) splitBy(a mesh.Axis) []string {
	p, c, n := e.plan, e.plan.Model.Config, e.mesh.Degree(a)
	switch a {
	case mesh.DP:
		out := []string{fmt.Sprintf("samples: %d of a step over %d ranks, %d on each", p.Workload.GlobalBatch, p.Layout.DataParallel(), p.Workload.GlobalBatch/p.Layout.DataParallel())}
		return append(out, shardedState(p)...)
	case mesh.TP:
		out := []string{shared("query heads", c.Heads, n), shared("key-value heads", c.KVHeads, n)}
		if c.FFN > 0 {
			out = append(out, shared("feed-forward features", c.FFN, n))
		}
		if c.Experts.Count > 0 {
			out = append(out, expertSplit(c.Experts, p.Layout.Experts.Tensor, n))
		}
		out = append(out, shared("vocabulary", c.Vocab, n))
		if p.Layout.SequenceParallel {
			out = append(out, fmt.Sprintf("rows of the residual stream: %d of a micro-batch, %d on each",
				p.MicroBatch*p.Workload.Sequence/e.mesh.Degree(mesh.CP), p.MicroBatch*p.Workload.Sequence/e.mesh.Degree(mesh.CP)/n))
		}
		return out
	case mesh.PP:
		layers := p.StageLayers()
		return []string{fmt.Sprintf("layers: %d in %d chunks of %d to %d", c.Layers, len(layers), slices.Min(layers), slices.Max(layers))}
	case mesh.CP:
		return []string{fmt.Sprintf("positions of every sequence: %d, %d on each, %v", p.Workload.Sequence, p.Workload.Sequence/n, p.Layout.Context.Balance)}
	case mesh.EP:
		return []string{
			fmt.Sprintf("experts of every layer: %d, %d on each", c.Experts.Count, c.Experts.Count/n),
			fmt.Sprintf("samples, with dp: %d ranks in all", p.Layout.DataParallel()),
		}
	}
	return nil
}

// expertSplit says how the tensor axis shares the experts.
func expertSplit(c model.Experts, tensor, n int) string {
	if tensor == 1 {
		return "rows that are routed: each rank has whole experts and routes its share"
	}
	return shared("features of each expert", c.FFN, n)
}

// shared says how many of something a rank of an axis has.
func shared(what string, all, ranks int) string {
	each := mesh.Split(all, ranks, 0).Len()
	if all < ranks {
		return fmt.Sprintf("%s: %d, one on each, held by %d ranks", what, all, ranks/all)
	}
	return fmt.Sprintf("%s: %d, %d on each", what, all, each)
}

// shardedState is what ZeRO splits over the data axes.
func shardedState(p plan.Plan) []string {
	what := []string{"optimizer state", "gradients", "parameters"}
	z := p.Layout.Zero
	if z.Stage == plan.Replicated {
		return nil
	}
	over := fmt.Sprintf("over %d ranks", p.Layout.Degrees.Over(mesh.DenseData))
	if z.Hybrid > 0 {
		over = fmt.Sprintf("over groups of %d ranks", z.Hybrid)
	}
	return []string{fmt.Sprintf("%s %s (ZeRO %v)", join(what[:z.Stage]), over, z.Stage)}
}

// replicatedOver is what every coordinate of an axis has whole.
func (e *explainer) replicatedOver(a mesh.Axis) []string {
	p, c := e.plan, e.plan.Model.Config
	switch a {
	case mesh.DP:
		return without([]string{"parameters", "gradients", "optimizer state"}, int(p.Layout.Zero.Stage))
	case mesh.TP:
		out := []string{"norm scales and biases of row-parallel layers"}
		if !p.Layout.SequenceParallel {
			out = append(out, "residual stream")
		}
		if n := e.mesh.Degree(mesh.TP); n > c.KVHeads {
			out = append(out, fmt.Sprintf("each key-value head on %d ranks", n/c.KVHeads))
		}
		if c.Experts.Count > 0 {
			out = append(out, "router")
		}
		return out
	case mesh.PP:
		switch {
		case p.Layout.Pipeline.Schedule == plan.DualPipe:
			return []string{"every stage, on two ranks"}
		case c.TieEmbeddings:
			return []string{"the token table, on the first stage and the last"}
		}
		return []string{"nothing"}
	case mesh.CP:
		return without([]string{"parameters", "gradients", "optimizer state"}, int(p.Layout.Zero.Stage))
	case mesh.EP:
		return []string{"everything but the experts, as over dp"}
	}
	return nil
}

// without leaves out the last n of a list of states; ZeRO begins with the optimizer's.
func without(list []string, n int) []string {
	if n == len(list) {
		return []string{"nothing (units are gathered while they run)"}
	}
	return list[:len(list)-n]
}

// join writes a list with commas and "and".
func join(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	var out strings.Builder
	out.WriteString(words[0])
	for _, w := range words[1 : len(words)-1] {
		out.WriteString(", " + w)
	}
	return out.String() + " and " + words[len(words)-1]
}
