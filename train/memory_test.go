package train

import (
	"errors"
	"os"
	"strings"
	"testing"

	"carve/mesh"
	"carve/plan"
	"carve/tensor"
	"carve/unit"
)

// TestLeastMemory compares the lower bound with what arenas hold, in categories that it counts.
func TestLeastMemory(t *testing.T) {
	for _, optimizer := range []plan.OptimizerName{plan.AdamW, plan.Muon, plan.SGD} {
		for _, precision := range []plan.Precision{plan.FP32, plan.BF16, plan.FP64} {
			p := over(smallPlan(t, 2), 2, 2)
			p.Precision, p.Optimizer.Name, p.Workload.Validation.Fraction = precision, optimizer, 0
			r := mustRun(t, p)
			held := unit.Bytes(0)
			peak := of[Summary](&r.journal)[0].Peak
			for _, c := range []tensor.Category{tensor.Parameter, tensor.Gradient, tensor.Optimizer} {
				held += peak.Of(c)
			}
			least := LeastMemory(p)
			if least > held || optimizer != plan.Muon && least != held {
				t.Errorf("%v in %v: at least %d bytes, held %d", optimizer, precision, least, held)
			}
		}
	}
}

// TestLeastMemoryIsALowerBound compares it with what ranks of every kind of layout hold.
func TestLeastMemoryIsALowerBound(t *testing.T) {
	for name, change := range map[string]func(*plan.Layout){
		"zero 1":   func(l *plan.Layout) { l.Degrees[mesh.DP], l.Zero.Stage = 2, plan.ShardOptimizer },
		"zero 2":   func(l *plan.Layout) { l.Degrees[mesh.DP], l.Zero.Stage = 2, plan.ShardGradients },
		"zero 3":   func(l *plan.Layout) { l.Degrees[mesh.DP], l.Zero.Stage = 2, plan.ShardParameters },
		"tensor":   func(l *plan.Layout) { l.Degrees[mesh.TP] = 2 },
		"pipeline": func(l *plan.Layout) { l.Degrees[mesh.PP] = 2 },
		"context":  func(l *plan.Layout) { l.Degrees[mesh.CP] = 2 },
	} {
		p := smallPlan(t, 1)
		p.MicroBatch, p.Workload.Validation.Fraction = 2, 0
		change(&p.Layout)
		r := mustRun(t, p)
		held := unit.Bytes(0)
		peak := of[Summary](&r.journal)[0].Peak
		for _, c := range []tensor.Category{tensor.Parameter, tensor.Gradient, tensor.Optimizer} {
			held += peak.Of(c)
		}
		if least := LeastMemory(p); least > held || 2*least < held {
			t.Errorf("%s: at least %d bytes, held %d", name, least, held)
		}
	}
}

// TestTooLittleMemory holds that a run for which there is no memory is refused as input, with the numbers and a remedy,
// and leaves no folder: before anything is built where the state alone is too large, and after it otherwise.
func TestTooLittleMemory(t *testing.T) {
	p := over(smallPlan(t, 2), 2, 2)
	need := LeastMemory(p)
	cases := []struct {
		name   string
		change func(*Options)
		want   string
	}{
		{"machine", func(o *Options) { o.Memory = need - 1 }, "need at least " + need.String()},
		{"limit below the state", func(o *Options) { o.ArenaLimit = need / 4 }, "and --arena-limit allows " + (need / 4).String()},
		{"limit below the step", func(o *Options) { o.ArenaLimit = need/2 + 64*unit.KiB }, "exceed the arena limit"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := newTrial(t, p)
			_, err := r.run(t.Context(), tc.change)
			var fault *InputError
			if !errors.As(err, &fault) || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), `""`) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if _, err := os.Stat(r.path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the folder of the run is there: %v", err)
			}
		})
	}
	r := newTrial(t, p)
	if _, err := r.run(t.Context(), func(o *Options) { o.Memory = need * 4 }); err != nil {
		t.Errorf("with enough memory: %v", err)
	}
}
