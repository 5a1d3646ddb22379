package record_test

import (
	"math"
	"testing"

	"carve/model"
	"carve/record"
	"carve/tensor"
)

// work sums FLOPs of products and of attention.
type work struct {
	record.Nothing
	products, attention float64
}

func (w *work) Compute(_ record.Moment, o tensor.Operation) {
	switch o.Kind {
	case tensor.OpMatMul:
		w.products += float64(o.FLOPs)
	case tensor.OpAttention, tensor.OpAttentionBackward:
		w.attention += float64(o.FLOPs)
	default:
	}
}

// TestWorkIsConserved holds the operations of all ranks together to what the description of the model says of a step,
// whatever the layout: products to 3 times the forward, attention to 3.5 times, because its backward computes the scores
// again. Where the context axis splits the sequence, masks are not known to a record, and half of all pairs is taken
// instead of (S+1)/2S.
func TestWorkIsConserved(t *testing.T) {
	for _, layout := range []string{
		"{}", "{dp: 4}", "{tp: 2, sequence_parallel: true}", "{pp: 2, pipeline: {schedule: 1f1b}}", "{pp: 2, pipeline: {schedule: interleaved, virtual: 2}}",
		"{dp: 2, tp: 2, pp: 2, zero: {stage: 3}}", "{cp: 2}", "{cp: 4}", "{ep: 2}", "{ep: 4, dp: 2, tp: 2}",
	} {
		p, runs := load(t, "bf16", layout, "")
		if !runs {
			t.Fatalf("%s is not run", layout)
		}
		var sum work
		for rank := range p.Layout.World() {
			if _, err := record.Run(p, rank, record.Options{Sink: &sum}); err != nil {
				t.Fatal(err)
			}
		}
		tokens := float64(p.StepTokens())
		forward := p.Model.Config.ForwardFLOPs(p.Workload.Sequence, model.Causal)
		products := 3 * tokens * float64(forward.Total()-forward[model.Scores])
		attention := 3.5 * tokens * float64(forward[model.Scores])
		if off := math.Abs(sum.products/products - 1); off > 1e-12 {
			t.Errorf("%s: products %g, want %g", layout, sum.products, products)
		}
		s := float64(p.Workload.Sequence)
		if off := 1 - sum.attention/attention; off < -1e-12 || off > 1/(s+1)+1e-12 {
			t.Errorf("%s: attention %g, want %g", layout, sum.attention, attention)
		}
	}
}
