package parallel_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"carve/comm"
	"carve/nn"
	"carve/optim"
	"carve/parallel"
	"carve/plan"
	"carve/tensor"
)

// small is a plan of one rank in fp64 whose model has every kind of parameter that layouts treat differently.
const small = `
version: 1
model: {architecture: llama, layers: 8, hidden: 16, heads: 4, kv_heads: 2, head_dim: 4, ffn: 24, vocab: 259, context: 64, tie_embeddings: false}
workload: {sequence: 8, global_batch: 16, steps: 2}
cluster: {preset: this-machine}
micro_batch: 1
precision: fp64
optimizer: {name: adamw, learning_rate: 1e-3, schedule: constant, warmup: 0, clip: 0.5, eps: 1e-6}
`

// outcome is what a run has left: the loss of every step, and every parameter whole.
type outcome struct {
	loss   []float64
	params map[string][]float64
}

// train runs a plan on local ranks with made-up samples.
func train(t *testing.T, text string) outcome {
	t.Helper()
	p, err := plan.Load([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	world := comm.NewLocal(p.Layout.World(), comm.LocalOptions{})
	ends := make([]comm.Endpoint, world.Size())
	engines := make([]*parallel.Engine, world.Size())
	for i := range ends {
		ends[i] = world.Rank(i)
	}
	out := outcome{loss: make([]float64, p.Steps()), params: map[string][]float64{}}
	var mu sync.Mutex // guards out
	err = comm.Run(t.Context(), ends, func(end comm.Endpoint) (err error) {
		e, err := parallel.New(end, p, parallel.Options{Arena: tensor.ArenaOptions{Poison: true}})
		engines[end.Rank()] = e
		if err != nil {
			return err
		}
		var failed error
		if err := nn.Guard(func() { failed = steps(e, p, &out, &mu) }); err != nil {
			return err
		}
		return failed
	})
	for _, e := range engines {
		if e != nil {
			e.Close()
		}
	}
	if err != nil {
		t.Fatalf("%v: %v", p.Layout.Degrees, err)
	}
	return out
}

// steps runs the steps of one rank and leaves its parts of the parameters.
func steps(e *parallel.Engine, p plan.Plan, out *outcome, mu *sync.Mutex) error {
	for step := range p.Steps() {
		targets := fill(e, p, step)
		r, err := e.Step(step, p.Optimizer.LearningRate)
		if err != nil {
			return err
		}
		mu.Lock()
		out.loss[step] += r.Loss / float64(targets)
		mu.Unlock()
	}
	mu.Lock()
	defer mu.Unlock()
	for _, q := range e.State().Parameters() {
		place(out.params, q)
	}
	return nil
}

// fill makes the samples of a step, and returns the number of targets of all ranks: those of a number are the same under
// every layout. Packed samples have a document every five tokens, which the last one of each knows nothing of.
func fill(e *parallel.Engine, p plan.Plan, step int) (targets int) {
	s := p.Workload.Sequence
	mine := p.Workload.GlobalBatch / p.Layout.DataParallel()
	for i := range mine * s {
		sample, at := e.Data()*mine+i/s, i%s
		e.Tokens()[i] = number(p, step, sample, at)
		e.Targets()[i] = number(p, step, sample, at+1)
		if e.Documents() != nil {
			e.Positions()[i], e.Documents()[i] = int32(at%5), int32(at/5)
			if at%5 == 4 {
				e.Targets()[i] = -1
			}
		}
	}
	if e.Documents() == nil {
		return int(p.StepTokens())
	}
	targets = p.Workload.GlobalBatch * (s - s/5)
	e.SetTargets(int64(targets))
	return targets
}

func number(p plan.Plan, step, sample, at int) int32 {
	return int32(nn.Key(uint64(step), fmt.Sprint(sample, " ", at)) % uint64(p.Model.Config.Vocab))
}

// place writes a rank's part of a parameter into the whole one. Parts have one or two dims.
func place(all map[string][]float64, q optim.Piece) {
	total := 1
	for _, n := range q.Param.Shape {
		total *= n
	}
	if all[q.Param.Name] == nil {
		all[q.Param.Name] = make([]float64, total)
	}
	cols, rows := q.Region[len(q.Region)-1], q.Region[0]
	width := q.Param.Shape[len(q.Param.Shape)-1]
	values := q.Tensor.F64()
	if len(q.Region) == 1 {
		copy(all[q.Param.Name][cols.Start:], values)
		return
	}
	for i := rows.Start; i < rows.Stop; i++ {
		values = values[copy(all[q.Param.Name][i*width+cols.Start:i*width+cols.Stop], values):]
	}
}

// TestLayouts holds every layout to what one rank computes.
func TestLayouts(t *testing.T) {
	want := train(t, small)
	for _, extra := range some("recompute: selective", "recompute: full", "recompute: {every: 2}", "offload: activations") {
		t.Run(extra, func(t *testing.T) {
			compare(t, want, train(t, small+"layout: {pp: 2, cp: 2, tp: 2, pipeline: {schedule: zb-h1}}\n"+extra+"\n"))
		})
	}
	for _, layout := range some(
		"{dp: 2}",
		"{tp: 2}",
		"{tp: 4}", // more ranks than key-value heads
		"{tp: 2, sequence_parallel: true}",
		"{tp: 4, tensor: {chunks: 3}}",
		"{tp: 2, tensor: {kind: gathered}}",
		"{cp: 2}",
		"{cp: 4, context: {balance: contiguous}}",
		"{pp: 2, pipeline: {schedule: afab}}",
		"{pp: 4, pipeline: {schedule: 1f1b}}",
		"{pp: 3, pipeline: {schedule: 1f1b, stages: [3, 3, 2]}}",
		"{pp: 2, pipeline: {schedule: interleaved, virtual: 2}}",
		"{pp: 4, pipeline: {schedule: interleaved, virtual: 2}}",
		"{pp: 4, pipeline: {schedule: zb-h1}}",
		"{pp: 2, pipeline: {schedule: zb-v}}",
		"{pp: 4, pipeline: {schedule: zb-v}}",
		"{pp: 2, pipeline: {schedule: dualpipe-v}}",
		"{pp: 2, tp: 2, cp: 2, sequence_parallel: true, pipeline: {schedule: dualpipe-v}}",
		"{dp: 2, tp: 2, pp: 2, cp: 2, sequence_parallel: true, pipeline: {schedule: 1f1b}}",
		"{pp: 2, pipeline: {schedule: dualpipe}}",
		"{pp: 4, tp: 2, pipeline: {schedule: dualpipe}}",
		"{dp: 2, zero: {stage: 1}}",
		"{dp: 4, zero: {stage: 2}}",
		"{dp: 4, zero: {stage: 3}}",
		"{dp: 4, zero: {stage: 3, hybrid: 2, reshard: false}}",
		"{dp: 2, zero: {stage: 0, reduce: server}}",
		"{dp: 2, tp: 2, pp: 2, cp: 2, sequence_parallel: true, zero: {stage: 3, ownership: tensor}, pipeline: {schedule: interleaved, virtual: 2}}",
		"{dp: 2, pp: 2, zero: {stage: 2}, pipeline: {schedule: zb-v}}",
		"{dp: 2, pp: 2, zero: {stage: 3}, pipeline: {schedule: dualpipe}}",
	) {
		t.Run(layout, func(t *testing.T) { compare(t, want, train(t, small+"layout: "+layout+"\n")) })
	}
}

// TestMuonLayouts holds whole and split matrices to one rank.
func TestMuonLayouts(t *testing.T) {
	muon := strings.Replace(small, "{name: adamw,", "{name: muon,", 1)
	want := train(t, muon)
	for _, layout := range some(
		"{dp: 2, tp: 2, zero: {stage: 0}}",
		"{tp: 2, pp: 2, sequence_parallel: true, pipeline: {schedule: dualpipe}}",
		"{dp: 2, tp: 2, zero: {stage: 3, ownership: tensor}}",
	) {
		t.Run(layout, func(t *testing.T) { compare(t, want, train(t, muon+"layout: "+layout+"\n")) })
	}
}

// TestTiedLayouts does the same where the head is the token table.
func TestTiedLayouts(t *testing.T) {
	tied := strings.Replace(small, "tie_embeddings: false", "tie_embeddings: true", 1)
	want := train(t, tied)
	for _, layout := range some(
		"{tp: 2, sequence_parallel: true}",
		"{pp: 2, pipeline: {schedule: 1f1b}}",
		"{pp: 2, pipeline: {schedule: zb-v}}",
		"{pp: 2, pipeline: {schedule: dualpipe}}",
		"{dp: 2, pp: 2, zero: {stage: 1}, pipeline: {schedule: zb-h1}}",
		"{dp: 2, pp: 2, zero: {stage: 2}, pipeline: {schedule: interleaved, virtual: 2}}",
		"{dp: 2, pp: 4, zero: {stage: 3}, pipeline: {schedule: dualpipe}}",
	) {
		t.Run(layout, func(t *testing.T) { compare(t, want, train(t, tied+"layout: "+layout+"\n")) })
	}
}

// TestExpertLayouts does the same for a mixture of experts.
func TestExpertLayouts(t *testing.T) {
	mixed := strings.Replace(small, "architecture: llama,", "architecture: qwen3_moe, experts: {count: 8, per_token: 2, ffn: 12, shared_ffn: 8, normalise: true, balance: loss, loss_coefficient: 0.05},", 1)
	want := train(t, mixed)
	for _, layout := range some(
		"{ep: 2}",
		"{ep: 4, dp: 2, zero: {stage: 2}}",
		"{ep: 2, tp: 2, sequence_parallel: true, experts: {tensor: 1}}",
		"{ep: 2, tp: 2, experts: {tensor: 2}}",
		"{ep: 2, cp: 2, pp: 2, pipeline: {schedule: 1f1b}, zero: {stage: 3}}",
		"{ep: 2, pp: 2, pipeline: {schedule: dualpipe}}",
		"{ep: 2, tp: 2, pp: 2, sequence_parallel: true, pipeline: {schedule: dualpipe-v}}",
		"{ep: 2, experts: {overlap: true}}",
		"{ep: 2, tp: 2, sequence_parallel: true, zero: {stage: 2}, experts: {overlap: true}}",
		"{ep: 2, pp: 2, cp: 2, pipeline: {schedule: 1f1b}, experts: {overlap: true}}",
		"{ep: 2, pp: 2, zero: {stage: 3}, pipeline: {schedule: 1f1b}, experts: {overlap: true}}",
	) {
		t.Run(layout, func(t *testing.T) { compare(t, want, train(t, mixed+"layout: "+layout+"\n")) })
	}
}

// TestBiasedExpertLayouts does the same where biases balance the experts, which must be the same wherever a layer is, and
// where experts have a capacity.
func TestBiasedExpertLayouts(t *testing.T) {
	mixed := strings.Replace(small, "architecture: llama,", "architecture: mixtral, experts: {count: 8, per_token: 2, ffn: 12},", 1)
	const options = "dispatch: dropping, capacity: 1, balance: bias, rate: 5e-4"
	want := train(t, mixed+"layout: {experts: {"+options+"}}\n")
	biases := 0
	for name, values := range want.params {
		if strings.HasSuffix(name, "e_score_correction_bias") {
			biases++
			if !slices.ContainsFunc(values, func(v float64) bool { return v != 0 }) {
				t.Errorf("%s is still %v after two steps", name, values)
			}
		}
	}
	if biases != 8 {
		t.Errorf("%d biases, want one for each layer", biases)
	}
	for _, layout := range some(
		"ep: 2, cp: 2, zero: {stage: 3}",
		"ep: 2, tp: 2, sequence_parallel: true, experts: {tensor: 2, ",
		"dp: 2, ep: 2, pp: 2, pipeline: {schedule: dualpipe}",
		"ep: 4, tp: 2, pp: 2, pipeline: {schedule: zb-v}",
	) {
		if strings.HasSuffix(layout, ", ") {
			layout += options + "}"
		} else {
			layout += ", experts: {" + options + "}"
		}
		t.Run(layout, func(t *testing.T) { compare(t, want, train(t, mixed+"layout: {"+layout+"}\n")) })
	}
}

// TestDropoutLayouts holds layouts to one rank with dropout: the masks are the same, also where layouts cut micro-batches.
func TestDropoutLayouts(t *testing.T) {
	const untied = "tie_embeddings: false}"
	dropped := strings.Replace(small, untied, "dropout: {embedding: 0.1, attention: 0.2, residual: 0.3}, "+untied, 1)
	want := train(t, dropped)
	for _, layout := range some(
		"{dp: 2, tp: 2, sequence_parallel: true, pp: 2, pipeline: {schedule: 1f1b}}",
		"{cp: 2, pp: 2, pipeline: {schedule: zb-v}}",
	) {
		t.Run(layout, func(t *testing.T) { compare(t, want, train(t, dropped+"layout: "+layout+"\n")) })
	}
}

// TestPackedLayouts does the same for samples of several documents.
func TestPackedLayouts(t *testing.T) {
	packed := strings.Replace(small, "sequence: 8", "sequence: 8, packing: documents", 1)
	want := train(t, packed)
	if relative(want.loss[0], train(t, small).loss[0], want.loss[0]) < 1e-6 {
		t.Fatal("packing changes nothing")
	}
	for _, layout := range some(
		"{cp: 2}",
		"{dp: 2, cp: 4, context: {kind: all-gather, balance: contiguous}}",
		"{cp: 2, tp: 2, context: {kind: all-to-all}}",
		"{cp: 2, pp: 2, sequence_parallel: true, pipeline: {schedule: 1f1b}}",
		"{pp: 4, pipeline: {schedule: zb-h1}}",
	) {
		t.Run(layout, func(t *testing.T) { compare(t, want, train(t, packed+"layout: "+layout+"\n")) })
	}
}

// some are the layouts to run: all, or, under the race detector, every fifth.
func some(all ...string) (chosen []string) {
	for i, layout := range all {
		if !racing || i%5 == 0 {
			chosen = append(chosen, layout)
		}
	}
	return chosen
}

// compare holds losses and parameters to within round-off.
func compare(t *testing.T, want, got outcome) {
	t.Helper()
	for i, w := range want.loss {
		if d := relative(w, got.loss[i], w); d > 1e-12 {
			t.Errorf("loss of step %d is %v, want %v", i+1, got.loss[i], w)
		}
	}
	var wrong []string
	for name, w := range want.params {
		g := got.params[name]
		if len(g) != len(w) {
			wrong = append(wrong, fmt.Sprintf("%s: %d elements, want %d", name, len(g), len(w)))
			continue
		}
		largest, worst := 0.0, 0.0
		for _, v := range w {
			largest = max(largest, v, -v)
		}
		for i, v := range w {
			worst = max(worst, relative(v, g[i], largest))
		}
		if worst > 1e-12 {
			wrong = append(wrong, fmt.Sprintf("%s differs by %g", name, worst))
		}
	}
	if len(wrong) > 0 {
		t.Errorf("%d of %d parameters are wrong:\n%s", len(wrong), len(want.params), strings.Join(wrong[:min(8, len(wrong))], "\n"))
	}
}

func relative(want, got, scale float64) float64 { return max(want-got, got-want) / scale }
