package verify

import (
	"fmt"

	"carve/mesh"
	"carve/model"
	"carve/plan"
)

// Feature is one property that a layout has: a value of one of the ways in which layouts differ.
type Feature struct{ Aspect, Value string }

func (f Feature) String() string { return f.Aspect + " " + f.Value }

// Features lists the properties of a plan that have an effect: the schedule of a pipeline of one rank is none.
func Features(p plan.Plan) (list []Feature) {
	l, d, c := p.Layout, p.Layout.Degrees, p.Model.Config
	has := func(there bool, aspect string, value any) {
		if there {
			list = append(list, Feature{aspect, fmt.Sprint(value)})
		}
	}
	for _, a := range mesh.All {
		has(true, a.String(), d[a])
	}
	data, pipes, context, experts := d.Over(mesh.DenseData) > 1, d[mesh.PP] > 1, d[mesh.CP] > 1, c.Experts.Count > 0
	sharded := data && l.Zero.Stage > plan.Replicated
	has(data, "zero", l.Zero.Stage)
	has(data, "reduce", l.Zero.Reduce)
	has(sharded, "hybrid", inner(l))
	has(sharded, "ownership", l.Zero.Ownership)
	has(sharded && l.Zero.Stage == plan.ShardParameters, "reshard", l.Zero.Reshard)
	has(d[mesh.TP] > 1, "sp", l.SequenceParallel)
	has(d[mesh.TP] > 1, "tensor", l.Tensor.Kind)
	has(d[mesh.TP] > 1, "chunks", l.Tensor.Chunks)
	has(pipes, "schedule", l.Pipeline.Schedule)
	has(pipes && l.Pipeline.Schedule == plan.Interleaved, "virtual", l.Pipeline.Virtual)
	has(pipes, "stages", []string{"balanced", "even", "listed"}[l.Pipeline.Stages.Kind])
	has(context, "context", l.Context.Kind)
	has(context, "context balance", l.Context.Balance)
	has(true, "recompute", recomputeName(p.Recompute))
	has(true, "offload", p.Offload)
	has(true, "precision", p.Precision)
	has(true, "packing", p.Workload.Packing)
	has(true, "accumulation", p.MicroBatches() > 1)
	has(true, "micro-batch", p.MicroBatch)
	has(true, "optimizer", p.Optimizer.Name)
	has(true, "order", l.Order)
	has(true, "experts", expertsFeature(p))
	has(experts, "dispatch", l.Experts.Dispatch)
	has(experts && (d[mesh.EP] > 1 || !l.Experts.Overlap), "overlap", l.Experts.Overlap)
	has(experts && d[mesh.TP] > 1, "experts split", l.Experts.Tensor > 1)
	has(experts, "shared experts", c.Experts.SharedFFN > 0)
	has(true, "heads", headsFeature(c))
	has(true, "family", familyFeature(c))
	has(true, "tied", c.TieEmbeddings)
	has(true, "dropout", c.Dropout != (model.Dropout{}))
	return list
}

// expertsFeature is "dense", or what balances the experts.
func expertsFeature(p plan.Plan) string {
	if p.Model.Config.Experts.Count == 0 {
		return "dense"
	}
	return p.Layout.Experts.Balance.String()
}

// headsFeature is how many query heads share a key-value head.
func headsFeature(c model.Config) string {
	switch {
	case c.KVHeads == c.Heads:
		return "multi-head"
	case c.KVHeads == 1:
		return "multi-query"
	}
	return "grouped"
}

// familyFeature is the plain family of models that a description is like.
func familyFeature(c model.Config) model.Architecture {
	switch {
	case c.Position == model.Learned:
		return model.GPT2
	case c.QKNorm == model.HeadQKNorm:
		return model.Qwen3
	}
	return model.Llama
}
