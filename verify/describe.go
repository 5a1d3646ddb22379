package verify

import (
	"fmt"
	"strings"

	"carve/mesh"
	"carve/model"
	"carve/plan"
)

// Describe says in a line what makes a plan a layout: "dp 2 × tp 4, sp, zero 3 hybrid 2, MQA". What is as usual is left
// out.
func Describe(p plan.Plan) string {
	words := []string{p.Layout.Degrees.String()}
	say := func(there bool, format string, args ...any) {
		if there {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	l, c := p.Layout, p.Model.Config
	d := l.Degrees
	say(p.Precision != plan.FP64, "%v", p.Precision)
	say(l.Order != mesh.DefaultOrder(), "order %v", l.Order)
	gathered := l.Tensor.Kind == plan.Gathered
	say(gathered && d[mesh.TP] > 1, "gathered")
	say(l.SequenceParallel && !gathered && d[mesh.TP] > 1, "sp")
	say(l.Tensor.Chunks > 1 && d[mesh.TP] > 1, "%d chunks", l.Tensor.Chunks)
	say(l.Zero.Stage > plan.Replicated, "zero %v", l.Zero.Stage)
	say(l.Zero.Stage > plan.Replicated && l.Zero.Hybrid > 0, "hybrid %d", l.Zero.Hybrid)
	say(l.Zero.Stage > plan.Replicated && l.Zero.Ownership == plan.WholeTensor, "whole tensors")
	say(l.Zero.Stage == plan.ShardParameters && !l.Zero.Reshard, "no reshard")
	say(l.Zero.Reduce != plan.Overlap, "%v", l.Zero.Reduce)
	say(l.Chunks() > 1, "%v", l.Pipeline.Schedule)
	say(l.Pipeline.Virtual > 1, "virtual %d", l.Pipeline.Virtual)
	say(l.Pipeline.Stages.Kind == plan.Listed, "stages %v", l.Pipeline.Stages.Layers)
	say(d[mesh.CP] > 1, "%v %v", l.Context.Kind, l.Context.Balance)
	say(p.MicroBatches() > 1, "%d micro-batches", p.MicroBatches())
	say(p.MicroBatch > 1, "of %d", p.MicroBatch)
	say(p.Recompute.Kind != plan.KeepAll, "recompute %s", recomputeName(p.Recompute))
	say(p.Workload.Packing == plan.ByDocument, "packed")
	say(p.Offload != plan.NoOffload, "offload %v", p.Offload)
	say(p.Optimizer.Name != plan.AdamW, "%v", p.Optimizer.Name)
	words = append(words, describeModel(c)...)
	say(c.Experts.Count > 0, "%v", l.Experts.Dispatch)
	say(c.Experts.Count > 0 && l.Experts.Balance != plan.ModelBalance, "balance %v", l.Experts.Balance)
	say(l.Experts.Overlap, "overlapped")
	say(l.Experts.Tensor > 1, "experts split by %d", l.Experts.Tensor)
	return strings.Join(words, ", ")
}

// recomputeName is "selective", "full" or "every 2".
func recomputeName(r plan.Recompute) string {
	switch r.Kind {
	case plan.KeepAll:
		return "none"
	case plan.Selective:
		return "selective"
	case plan.FullBlock:
		return "full"
	case plan.Periodic:
	}
	return fmt.Sprintf("every %d", r.Every)
}

// describeModel names what of a model matters to layouts.
func describeModel(c model.Config) (words []string) {
	switch {
	case c.Attention == model.LatentKV:
		words = append(words, "MLA")
	case c.KVHeads == 1 && c.Heads > 1:
		words = append(words, "MQA")
	case c.KVHeads < c.Heads:
		words = append(words, "GQA")
	default:
		words = append(words, "MHA")
	}
	if c.TieEmbeddings {
		words = append(words, "tied")
	}
	if c.Position != model.Rotary {
		words = append(words, c.Position.String()+" positions")
	}
	if c.QKNorm != model.NoQKNorm {
		words = append(words, "norm of heads")
	}
	if c.Dropout != (model.Dropout{}) {
		words = append(words, "dropout")
	}
	if c.Experts.Count > 0 {
		words = append(words, fmt.Sprintf("%d experts", c.Experts.Count))
	}
	if c.Experts.SharedFFN > 0 {
		words = append(words, "shared experts")
	}
	return words
}
