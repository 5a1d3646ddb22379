package verify_test

import (
	"testing"

	"carve/mesh"
	"carve/model"
	"carve/plan"
	"carve/verify"

	"pgregory.net/rapid"
)

// anyLegal draws a valid plan of a published model.
func anyLegal(t *rapid.T) (plan.Plan, bool) {
	p := plan.Default()
	p.Model.Name = rapid.SampledFrom(model.Presets()).Draw(t, "model")
	c, err := model.Preset(p.Model.Name)
	if err != nil {
		t.Fatal(err)
	}
	p.Model.Config = c
	p.Workload.Sequence = min(c.Context, 1024)
	p.Workload.Steps, p.Workload.Tokenizer = 10, plan.Tokenizer{Kind: plan.TrainedBPE, Vocab: 1000}
	l := &p.Layout
	degree := func(a mesh.Axis, among ...int) { l.Degrees[a] = rapid.SampledFrom(among).Draw(t, a.String()) }
	degree(mesh.DP, 1, 2, 3, 4, 8)
	degree(mesh.TP, 1, 2, 4, 8, 16)
	degree(mesh.PP, 1, 2, 3, 4, 6, 8)
	degree(mesh.CP, 1, 2, 4)
	if c.Experts.Count > 0 {
		degree(mesh.EP, 1, 2, 4)
	}
	l.Order = mesh.Order(rapid.Permutation(mesh.All[:]).Draw(t, "order"))
	l.SequenceParallel = rapid.Bool().Draw(t, "sp")
	l.Tensor.Kind = plan.TensorKind(rapid.IntRange(0, 1).Draw(t, "tensor"))
	l.Tensor.Chunks = rapid.IntRange(1, 4).Draw(t, "chunks")
	l.Experts.Overlap = c.Experts.Count > 0 && rapid.Bool().Draw(t, "overlap")
	l.Zero.Stage = plan.Stage(rapid.IntRange(0, 3).Draw(t, "stage"))
	l.Zero.Hybrid = rapid.SampledFrom([]int{0, 1, 2, 4}).Draw(t, "hybrid")
	l.Pipeline.Schedule = plan.Schedule(rapid.IntRange(0, 6).Draw(t, "schedule"))
	l.Pipeline.Virtual = 1
	if l.Pipeline.Schedule == plan.Interleaved {
		l.Pipeline.Virtual = rapid.IntRange(1, 3).Draw(t, "virtual")
	}
	l.Context.Kind = plan.ContextKind(rapid.IntRange(0, 2).Draw(t, "context"))
	l.Context.Balance = plan.ContextBalance(rapid.IntRange(0, 1).Draw(t, "balance"))
	l.Experts.Tensor = rapid.SampledFrom([]int{1, l.Degrees[mesh.TP]}).Draw(t, "experts tensor")
	if rapid.Bool().Draw(t, "listed") {
		list := make([]int, l.Chunks())
		for i := range list {
			list[i] = p.Model.Config.Layers / len(list)
		}
		list[0] += p.Model.Config.Layers % len(list)
		l.Pipeline.Stages = plan.Stages{Kind: plan.Listed, Layers: list}
	}
	p.Recompute = rapid.SampledFrom([]plan.Recompute{{}, {Kind: plan.Selective}, {Kind: plan.FullBlock}, {Kind: plan.Periodic, Every: 3}}).Draw(t, "recompute")
	p.MicroBatch = rapid.IntRange(1, 3).Draw(t, "micro-batch")
	p.Workload.GlobalBatch = p.MicroBatch * l.DataParallel() * rapid.IntRange(1, 32).Draw(t, "micro-batches")
	return p, p.Validate() == nil
}

// TestShrink holds that the small plan of a valid one is valid, small, and of the same kind.
func TestShrink(t *testing.T) {
	valid := 0
	rapid.Check(t, func(t *rapid.T) {
		p, ok := anyLegal(t)
		if !ok {
			return
		}
		valid++
		s := verify.Shrink(p)
		if err := s.Validate(); err != nil {
			t.Fatalf("%v\nof\n%s\nfrom\n%s", err, plan.Encode(s), plan.Encode(p))
		}
		if n := s.Model.Config.Parameters().Total(); n > 200_000 || s.Layout.World() > 64 || s.Layout.World() > p.Layout.World() {
			t.Errorf("%d parameters on %d ranks", n, s.Layout.World())
		}
		for _, kind := range kinds() {
			if was, is := kind.of(p), kind.of(s); was != is {
				t.Errorf("%s was %v and is %v", kind.name, was, is)
			}
		}
	})
	if valid == 0 {
		t.Error("no plan was valid")
	}
}

// property is something that makes a plan what it is.
type property struct {
	name string
	of   func(plan.Plan) any
}

func kinds() []property {
	all := []property{
		{"schedule", func(p plan.Plan) any { return p.Layout.Pipeline.Schedule }},
		{"several chunks", func(p plan.Plan) any { return p.Layout.Chunks() > p.Layout.Degrees[mesh.PP] }},
		{"listed stages", func(p plan.Plan) any { return p.Layout.Pipeline.Stages.Kind }},
		{"tensor", func(p plan.Plan) any { return p.Layout.Tensor }},
		{"overlap", func(p plan.Plan) any { return p.Layout.Experts.Overlap }},
		{"packing", func(p plan.Plan) any { return p.Workload.Packing }},
		{"zero", func(p plan.Plan) any { return p.Layout.Zero.Stage }},
		{"ownership", func(p plan.Plan) any { return p.Layout.Zero.Ownership }},
		{"recompute", func(p plan.Plan) any { return p.Recompute.Kind }},
		{"order", func(p plan.Plan) any { return p.Layout.Order }},
		{"context", func(p plan.Plan) any { return p.Layout.Context }},
		{"hybrid", func(p plan.Plan) any {
			return p.Layout.Zero.Hybrid > 1 && p.Layout.Zero.Hybrid < p.Layout.Degrees.Over(mesh.DenseData)
		}},
		{"multi-head", func(p plan.Plan) any { return p.Model.Config.KVHeads == p.Model.Config.Heads }},
		{"multi-query", func(p plan.Plan) any { return p.Model.Config.KVHeads == 1 && p.Layout.Degrees[mesh.TP] == 1 }},
		{"shared key-value heads", func(p plan.Plan) any { return p.Model.Config.KVHeads < p.Layout.Degrees[mesh.TP] }},
		{"tied", func(p plan.Plan) any { return p.Model.Config.TieEmbeddings }},
		{"norm", func(p plan.Plan) any { return p.Model.Config.Norm }},
		{"position", func(p plan.Plan) any { return p.Model.Config.Position }},
		{"experts", func(p plan.Plan) any { return p.Model.Config.Experts.Count > 0 }},
		{"several choices", func(p plan.Plan) any { return p.Model.Config.Experts.PerToken > 1 }},
		{"shared experts", func(p plan.Plan) any { return p.Model.Config.Experts.SharedFFN > 0 }},
		{"groups", func(p plan.Plan) any { return p.Model.Config.Experts.Groups > 1 }},
		{"dense layers", func(p plan.Plan) any { return p.Model.Config.Experts.FirstDense > 0 }},
		{"split experts", func(p plan.Plan) any { return p.Layout.Experts.Tensor > 1 }},
		{"accumulation", func(p plan.Plan) any { return p.MicroBatches() > 1 }},
	}
	for _, a := range mesh.All {
		all = append(all, property{a.String(), func(p plan.Plan) any { return p.Layout.Degrees[a] > 1 }})
	}
	return all
}
