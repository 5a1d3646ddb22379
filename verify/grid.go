package verify

import (
	"slices"

	"carve/mesh"
	"carve/model"
	"carve/plan"
)

// mostMatrixRanks bounds the worlds of the matrix.
const mostMatrixRanks = 16

// choice is one value of an aspect: what it does to a plan, and which other choices it has no effect or no meaning without.
type choice struct {
	name  string
	needs []need
	set   func(*plan.Plan)
}

// need asks for another aspect to have one of some values, the cheapest first.
type need struct {
	aspect string
	values []string
}

// aspect is one way in which layouts of the matrix differ. Its first choice goes with most others.
type aspect struct {
	name    string
	choices []choice
}

// grid lists the aspects of the matrix, in the order in which choices are made.
func grid() []aspect {
	list := modelAspects()
	for _, a := range mesh.All {
		list = append(list, degreeAspect(a))
	}
	return slices.Concat(list, stateAspects(), splitAspects(), runAspects())
}

// on asks for an aspect.
func on(aspect string, values ...string) need { return need{aspect, values} }

// degreeAspect is the size of an axis.
func degreeAspect(a mesh.Axis) aspect {
	var choices []choice
	for i, name := range []string{"1", "2", "3", "4"} {
		c := choice{name: name, set: func(p *plan.Plan) { p.Layout.Degrees[a] = i + 1 }}
		if a == mesh.EP && i > 0 {
			c.needs = []need{on("experts", "none", "loss", "bias")}
		}
		choices = append(choices, c)
	}
	return aspect{a.String(), choices}
}

// stateAspects are those of the data axes.
func stateAspects() []aspect {
	data := on("dp", "2", "3", "4")
	zero := func(s plan.Stage) func(*plan.Plan) { return func(p *plan.Plan) { p.Layout.Zero.Stage = s } }
	sharded := on("zero", "1", "2", "3")
	reduce := func(r plan.Reduce) func(*plan.Plan) { return func(p *plan.Plan) { p.Layout.Zero.Reduce = r } }
	return []aspect{
		{"zero", []choice{
			{"0", []need{data}, zero(plan.Replicated)},
			{"1", []need{data}, zero(plan.ShardOptimizer)},
			{"2", []need{data}, zero(plan.ShardGradients)},
			{"3", []need{data}, zero(plan.ShardParameters)},
		}},
		{"hybrid", []choice{
			{"false", []need{sharded, data}, func(*plan.Plan) {}},
			{"true", []need{sharded, on("dp", "4", "2")}, func(p *plan.Plan) {
				p.Layout.Zero.Hybrid = leastDivisor(p.Layout.Degrees.Over(mesh.DenseData))
			}},
		}},
		{"ownership", []choice{
			{"flat", []need{sharded, data}, func(*plan.Plan) {}},
			{"tensor", []need{sharded, data}, func(p *plan.Plan) { p.Layout.Zero.Ownership = plan.WholeTensor }},
		}},
		{"reshard", []choice{
			{"true", []need{on("zero", "3"), data}, func(p *plan.Plan) { p.Layout.Zero.Reshard = true }},
			{"false", []need{on("zero", "3"), data}, func(p *plan.Plan) { p.Layout.Zero.Reshard = false }},
		}},
		{"reduce", []choice{
			{"overlap", []need{data}, reduce(plan.Overlap)},
			{"naive", []need{data}, reduce(plan.Naive)},
			{"server", []need{data, on("zero", "0")}, reduce(plan.Server)},
		}},
	}
}

// splitAspects are those of the tensor, pipeline and context axes.
func splitAspects() []aspect {
	tensor, pipes, context := on("tp", "2", "3", "4"), on("pp", "2", "3", "4"), on("cp", "2", "3", "4")
	schedule := func(s plan.Schedule, virtual int) func(*plan.Plan) {
		return func(p *plan.Plan) { p.Layout.Pipeline.Schedule, p.Layout.Pipeline.Virtual = s, virtual }
	}
	stages := func(k plan.StagesKind) func(*plan.Plan) {
		return func(p *plan.Plan) { p.Layout.Pipeline.Stages.Kind = k }
	}
	kind := func(k plan.ContextKind) func(*plan.Plan) { return func(p *plan.Plan) { p.Layout.Context.Kind = k } }
	interleaved := []need{pipes, on("schedule", "interleaved")}
	return []aspect{
		{"sp", []choice{
			{"false", []need{tensor}, func(p *plan.Plan) { p.Layout.SequenceParallel = false }},
			{"true", []need{tensor}, func(p *plan.Plan) { p.Layout.SequenceParallel = true }},
		}},
		{"tensor", []choice{
			{"megatron", []need{tensor}, func(*plan.Plan) {}},
			{"gathered", []need{tensor, on("sp", "false")}, func(p *plan.Plan) { p.Layout.Tensor.Kind = plan.Gathered }},
		}},
		{"chunks", []choice{
			{"1", []need{tensor}, func(*plan.Plan) {}},
			{"2", []need{tensor, on("tensor", "megatron")}, func(p *plan.Plan) { p.Layout.Tensor.Chunks = 2 }},
		}},
		{"schedule", []choice{
			{"1f1b", []need{pipes}, schedule(plan.OneForwardOneBackward, 1)},
			{"afab", []need{pipes}, schedule(plan.AllForwardAllBackward, 1)},
			{"interleaved", []need{pipes}, schedule(plan.Interleaved, 2)},
			{"zb-h1", []need{pipes}, schedule(plan.ZeroBubbleH1, 1)},
			{"zb-v", []need{pipes}, schedule(plan.ZeroBubbleV, 1)},
			{"dualpipe", []need{on("pp", "2", "4")}, schedule(plan.DualPipe, 1)},
			{"dualpipe-v", []need{pipes}, schedule(plan.DualPipeV, 1)},
		}},
		{"virtual", []choice{
			{"2", interleaved, func(*plan.Plan) {}},
			{"3", interleaved, func(p *plan.Plan) {
				if p.Layout.Pipeline.Schedule == plan.Interleaved {
					p.Layout.Pipeline.Virtual = 3
				}
			}},
		}},
		{"stages", []choice{
			{"balanced", []need{pipes}, stages(plan.Balanced)},
			{"even", []need{pipes}, stages(plan.Even)},
			{"listed", []need{pipes}, stages(plan.Listed)},
		}},
		{"context", []choice{
			{"ring", []need{context}, kind(plan.Ring)},
			{"all-gather", []need{context}, kind(plan.AllGather)},
			{"all-to-all", []need{context}, kind(plan.AllToAll)},
		}},
		{"context balance", []choice{
			{"zigzag", []need{context}, func(p *plan.Plan) { p.Layout.Context.Balance = plan.Zigzag }},
			{"contiguous", []need{context}, func(p *plan.Plan) { p.Layout.Context.Balance = plan.Contiguous }},
		}},
	}
}

// runAspects are those of the step.
func runAspects() []aspect {
	recompute := func(r plan.Recompute) func(*plan.Plan) { return func(p *plan.Plan) { p.Recompute = r } }
	precision := func(r plan.Precision) func(*plan.Plan) { return func(p *plan.Plan) { p.Precision = r } }
	optimizer := func(o plan.OptimizerName) func(*plan.Plan) { return func(p *plan.Plan) { p.Optimizer.Name = o } }
	order := func(o mesh.Order) choice {
		return choice{o.String(), nil, func(p *plan.Plan) { p.Layout.Order = o }}
	}
	return []aspect{
		{"recompute", []choice{
			{"none", nil, recompute(plan.Recompute{})},
			{"selective", nil, recompute(plan.Recompute{Kind: plan.Selective})},
			{"full", nil, recompute(plan.Recompute{Kind: plan.FullBlock})},
			{"every 2", nil, recompute(plan.Recompute{Kind: plan.Periodic, Every: 2})},
		}},
		{"offload", []choice{
			{"none", nil, func(*plan.Plan) {}},
			{"activations", nil, func(p *plan.Plan) { p.Offload = plan.OffloadActivations }},
		}},
		{"precision", []choice{
			{"fp64", nil, precision(plan.FP64)}, {"fp32", nil, precision(plan.FP32)}, {"bf16", nil, precision(plan.BF16)},
		}},
		{"packing", []choice{
			{"none", nil, func(*plan.Plan) {}},
			{"documents", nil, func(p *plan.Plan) { p.Workload.Packing = plan.ByDocument }},
		}},
		{"accumulation", []choice{
			{"true", nil, func(p *plan.Plan) { p.Workload.GlobalBatch = 3 }},
			{"false", nil, func(p *plan.Plan) { p.Workload.GlobalBatch = 1 }},
		}},
		{"micro-batch", []choice{
			{"1", nil, func(p *plan.Plan) { p.MicroBatch = 1 }},
			{"2", nil, func(p *plan.Plan) { p.MicroBatch = 2 }},
		}},
		{"optimizer", []choice{
			{"adamw", nil, optimizer(plan.AdamW)}, {"sgd", nil, optimizer(plan.SGD)}, {"muon", nil, optimizer(plan.Muon)},
		}},
		{"order", []choice{
			order(mesh.DefaultOrder()),
			order(mesh.Order{mesh.PP, mesh.DP, mesh.EP, mesh.CP, mesh.TP}),
			order(mesh.Order{mesh.DP, mesh.TP, mesh.PP, mesh.EP, mesh.CP}),
		}},
	}
}

// modelAspects are those of the model.
func modelAspects() []aspect {
	some := on("experts", "none", "loss", "bias")
	experts := func(b plan.Balance) func(*plan.Plan) {
		return func(p *plan.Plan) {
			c := &p.Model.Config
			c.Experts = model.Experts{Count: 1, PerToken: 2, Every: 1, Scale: 1, Normalise: true, LossCoefficient: 0.02}
			p.Layout.Experts.Balance = b
			switch c.Architecture {
			case model.Llama:
				c.Architecture = model.Mixtral
			case model.Qwen3:
				c.Architecture = model.Qwen3MoE
			default:
			}
		}
	}
	heads := func(name string, heads, keyHeads int) choice {
		return choice{name, nil, func(p *plan.Plan) { p.Model.Config.Heads, p.Model.Config.KVHeads = heads, keyHeads }}
	}
	family := func(name string, a model.Architecture, needs ...need) choice {
		return choice{name, needs, func(p *plan.Plan) { p.Model.Config = model.New(a) }}
	}
	return []aspect{
		{"family", []choice{
			family("llama", model.Llama), family("qwen3", model.Qwen3), family("gpt2", model.GPT2, on("experts", "dense")),
		}},
		{"experts", []choice{
			{"dense", nil, func(p *plan.Plan) { p.Model.Config.Experts = model.Experts{} }},
			{"none", nil, experts(plan.NoBalance)},
			{"loss", nil, experts(plan.LossBalance)},
			{"bias", nil, experts(plan.BiasBalance)},
		}},
		{"dispatch", []choice{
			{"dropless", []need{some}, func(p *plan.Plan) { p.Layout.Experts.Dispatch = plan.Dropless }},
			{"dropping", []need{some}, func(p *plan.Plan) { p.Layout.Experts.Dispatch = plan.Dropping }},
		}},
		{"overlap", []choice{
			{"false", []need{some}, func(*plan.Plan) {}},
			{"true", []need{some, on("ep", "2", "3", "4")}, func(p *plan.Plan) { p.Layout.Experts.Overlap = true }},
		}},
		{"experts split", []choice{
			{"false", []need{some, on("tp", "2", "3", "4")}, func(*plan.Plan) {}},
			{"true", []need{some, on("tp", "2", "3", "4")}, func(p *plan.Plan) { p.Layout.Experts.Tensor = 2 }},
		}},
		{"shared experts", []choice{
			{"false", []need{some}, func(*plan.Plan) {}},
			{"true", []need{some}, func(p *plan.Plan) { p.Model.Config.Experts.SharedFFN = 1 }},
		}},
		{"heads", []choice{heads("grouped", 4, 2), heads("multi-head", 2, 2), heads("multi-query", 2, 1)}},
		{"tied", []choice{
			{"false", nil, func(p *plan.Plan) { p.Model.Config.TieEmbeddings = false }},
			{"true", nil, func(p *plan.Plan) { p.Model.Config.TieEmbeddings = true }},
		}},
		{"dropout", []choice{
			{"false", nil, func(*plan.Plan) {}},
			{"true", nil, func(p *plan.Plan) {
				p.Model.Config.Dropout = model.Dropout{Embedding: 0.1, Attention: 0.2, Residual: 0.15}
			}},
		}},
	}
}
