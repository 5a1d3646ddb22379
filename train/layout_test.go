package train

import (
	"math"
	"testing"

	"carve/mesh"
	"carve/plan"
)

// layouts are ways of splitting the small model that together have every axis, schedule and ZeRO stage.
func layouts() map[string]func(*plan.Plan) {
	return map[string]func(*plan.Plan){
		"tensor, sequence and data": func(p *plan.Plan) {
			p.Layout.Degrees[mesh.DP], p.Layout.Degrees[mesh.TP], p.Layout.SequenceParallel = 2, 2, true
			p.Layout.Zero.Stage = plan.ShardOptimizer
		},
		"stages and positions": func(p *plan.Plan) {
			p.Layout.Degrees[mesh.PP], p.Layout.Degrees[mesh.CP] = 2, 2
			p.Layout.Zero.Stage, p.Recompute.Kind = plan.ShardParameters, plan.Selective
		},
		"a V of chunks": func(p *plan.Plan) {
			p.Model.Config.Layers = 4
			p.Layout.Degrees[mesh.PP], p.Layout.Pipeline.Schedule = 2, plan.ZeroBubbleV
			p.Recompute.Kind = plan.FullBlock
		},
		"both directions": func(p *plan.Plan) {
			p.Layout.Degrees[mesh.DP], p.Layout.Degrees[mesh.PP], p.Layout.Pipeline.Schedule = 2, 2, plan.DualPipe
			p.Layout.Zero.Stage = plan.ShardGradients
		},
		"experts": func(p *plan.Plan) {
			p.Model.Config = mixedModel()
			p.Layout.Degrees[mesh.EP], p.Layout.Degrees[mesh.TP], p.Layout.Experts.Balance = 2, 2, plan.BiasBalance
		},
	}
}

// TestLayoutsLearnAlike holds that in fp32 every layout has, after fifty steps on text, the loss of one rank.
func TestLayoutsLearnAlike(t *testing.T) {
	const tolerance = 1e-4
	steps := 50
	if racing {
		steps = 4
	}
	for name, split := range layouts() {
		t.Run(name, func(t *testing.T) {
			p := over(smallPlan(t, steps), 1, 1)
			split(&p)
			alone := p
			alone.Layout, alone.Recompute = plan.Default().Layout, plan.Recompute{}
			alone.Layout.Experts.Balance = p.Layout.Experts.Balance
			one, all := mustRun(t, alone), mustRun(t, p)
			want, got := one.losses(), all.losses()
			if d := math.Abs(got[steps-1]/want[steps-1] - 1); !(d < tolerance) || want[steps-1] > want[0]/2 && !racing {
				t.Errorf("the loss is %v after %d steps, on one rank %v", got[steps-1], steps, want[steps-1])
			}
			held, heldAlone := of[Validation](&all.journal), of[Validation](&one.journal)
			near(t, "validation loss", []float64{held[len(held)-1].Loss}, []float64{heldAlone[len(heldAlone)-1].Loss}, tolerance)
		})
	}
}
