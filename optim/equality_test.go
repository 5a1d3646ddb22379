package optim_test

import (
	"fmt"
	"testing"

	"carve/model"
	"carve/optim"
	"carve/tensor"
)

// Tolerances of a layout against one rank with the same global batch: the order of summation differs. The worst
// tensor's worst element, relative to the tensor's largest, over three steps.
const (
	fp64Tolerance = 1e-12
	fp32Tolerance = 1e-4 // AdamW divides noise by the size of small gradients
)

// layouts split the same global batch.
func layouts() []layout {
	all := []layout{
		{micro: 2},
		{micro: 12},
		{tp: 2},
		{tp: 4}, // two ranks hold each key-value head of qwen3
		{dp: 2, tp: 4, rows: true, state: optim.Options{Stage: optim.ShardParameters, Prefetch: 1}},
		{dp: 2, tp: 4, rows: true, micro: 2, state: optim.Options{Stage: optim.ShardOptimizer}},
		{dp: 2, state: optim.Options{Mode: optim.Naive}},
		{dp: 4, state: optim.Options{Bucket: 3000}},
		{dp: 3, micro: 2, state: optim.Options{Mode: optim.Server}},
		{dp: 2, tp: 2, state: optim.Options{Mode: optim.Server, Bucket: 3000}},
	}
	sharded := []layout{{dp: 2}, {dp: 3, micro: 2}, {dp: 4, micro: 3}, {dp: 2, tp: 2, micro: 2}, {dp: 4, state: optim.Options{Hybrid: 2}}}
	for stage := optim.Replicated; stage <= optim.ShardParameters; stage++ {
		for i, l := range sharded {
			l.state.Stage, l.state.Prefetch, l.state.Reshard = stage, i%3, optim.Reshard(i%2)
			all = append(all, l)
			l.state.Ownership = optim.WholeTensor
			all = append(all, l)
		}
		all = append(all,
			layout{pipes: 2, state: optim.Options{Stage: stage}},
			layout{stages: 2, dp: 2, micro: 2, state: optim.Options{Stage: stage}},
			layout{pipes: 2, dp: 2, micro: 3, state: optim.Options{Stage: stage, Ownership: optim.WholeTensor}},
			layout{dp: 2, micro: 2, state: optim.Options{Stage: stage, Mode: optim.Naive}},
		)
	}
	if racing {
		return []layout{all[4], all[6], all[8], all[len(all)-3]}
	}
	return all
}

func (l layout) String() string {
	o := l.state
	return fmt.Sprintf("dp=%d,tp=%d,sp=%v,ep=%d,stages=%d,pipes=%d,micro=%d,dtype=%v,stage=%d,hybrid=%d,ownership=%d,mode=%d,bucket=%d,prefetch=%d,reshard=%d",
		l.dp, l.tp, l.rows, l.ep, l.stages, l.pipes, l.micro, l.dtype, o.Stage, o.Hybrid, o.Ownership, o.Mode, o.Bucket, o.Prefetch, o.Reshard)
}

func TestEqualsOneRank(t *testing.T) {
	for _, d := range precisions() {
		for name, j := range jobs() {
			want := j.run(t, layout{dtype: d.dtype})
			for i, l := range layouts() {
				if i%3 != 0 && (name != "qwen3" || d.dtype != tensor.FP64) {
					continue // one family in the precision that shows everything is enough
				}
				l.dtype = d.dtype
				t.Run(name+"/"+l.String(), func(t *testing.T) {
					if worst, where := want.distance(j.run(t, l)); worst > d.tolerance {
						t.Errorf("%s differs by %.1e, tolerance %.0e", where, worst, d.tolerance)
					}
				})
			}
		}
	}
}

// precision is a dtype and how close layouts must be in it.
type precision struct {
	dtype     tensor.DType
	tolerance float64
}

func precisions() []precision {
	if racing {
		return []precision{{tensor.FP32, fp32Tolerance}}
	}
	return []precision{{tensor.FP64, fp64Tolerance}, {tensor.FP32, fp32Tolerance}}
}

// jobs are two model families; between them they have every kind of parameter. GPT-2 runs with SGD: without rotary
// positions the loss does not depend on the key's bias (a softmax is blind to what is added to all scores), so its gradient
// is rounding noise, and AdamW, which divides by the gradient's size, would blow that up to full steps.
func jobs() map[string]job {
	g := newJob()
	c := model.New(model.GPT2)
	c.Layers, c.Hidden, c.Heads, c.KVHeads, c.HeadDim = 2, 16, 4, 4, 4
	c.FFN, c.Vocab, c.Context, c.InitStd = 24, 21, 16, 0.1
	g.config, g.algorithm, g.clip = c, sgd(), 0
	plain := newJob()
	plain.algorithm, plain.config.TieEmbeddings = optim.SGDOptions{}, false
	return map[string]job{"qwen3": newJob(), "gpt2": g, "plain": plain}
}

// TestExpertsEqualOneRank shards dense parameters over the data and expert axes, and experts over the data axis.
func TestExpertsEqualOneRank(t *testing.T) {
	j := newJob()
	j.config = mixture()
	want := j.run(t, layout{dtype: tensor.FP64})
	for _, l := range expertLayouts() {
		l.dtype = tensor.FP64
		if worst, where := want.distance(j.run(t, l)); worst > fp64Tolerance {
			t.Errorf("%v: %s differs by %.1e, tolerance %.0e", l, where, worst, fp64Tolerance)
		}
	}
}

// expertLayouts have an expert axis, at every stage.
func expertLayouts() (all []layout) {
	for stage := optim.Replicated; stage <= optim.ShardParameters; stage++ {
		o := optim.Options{Stage: stage, Prefetch: 1}
		all = append(all, layout{ep: 2, state: o}, layout{dp: 3, ep: 2, tp: 2, state: o})
		o.Ownership = optim.WholeTensor
		all = append(all, layout{dp: 2, ep: 2, state: o})
	}
	if racing {
		return all[len(all)-1:]
	}
	return all
}

// mixture is a model with experts.
func mixture() model.Config {
	c := model.New(model.Mixtral)
	c.Layers, c.Hidden, c.Heads, c.KVHeads, c.HeadDim = 2, 16, 4, 2, 4
	c.FFN, c.Vocab, c.Context, c.InitStd = 24, 21, 16, 0.1
	c.Experts.Count, c.Experts.PerToken, c.Experts.FFN = 4, 2, 8
	return c
}

func TestFaultsAreCaught(t *testing.T) {
	j := newJob()
	want := j.run(t, layout{dtype: tensor.FP64})
	sharded := func(stage optim.Stage) optim.Options { return optim.Options{Stage: stage, Prefetch: 1} }
	hybrid := optim.Options{Stage: optim.ShardGradients, Hybrid: 2}
	for _, c := range []struct {
		name   string
		layout layout
		fault  fault
	}{
		{"a bucket not reduced", layout{dp: 2}, fault{"data", dropped}},
		{"a bucket reduced twice", layout{dp: 2}, fault{"data", doubled}},
		{"a bucket averaged", layout{dp: 2}, fault{"data", averaged}},
		{"a sum not brought to its owner", layout{dp: 2, state: sharded(optim.ShardOptimizer)}, fault{"data", dropped}},
		{"a sum averaged", layout{dp: 3, state: sharded(optim.ShardGradients)}, fault{"data", averaged}},
		{"parameters not sent on", layout{dp: 2, state: sharded(optim.ShardOptimizer)}, fault{"data parameters", dropped}},
		{"parameters not gathered", layout{dp: 2, state: sharded(optim.ShardParameters)}, fault{"data parameters", dropped}},
		{"a server's parameters not sent", layout{dp: 2, state: optim.Options{Mode: optim.Server}}, fault{"data", dropped}},
		{"replicas not summed", layout{dp: 4, state: hybrid}, fault{"data replicas", dropped}},
		{"replicas summed twice", layout{dp: 4, state: hybrid}, fault{"data replicas", doubled}},
		{"stages with the same units not summed", layout{pipes: 2}, fault{"stages [0 1]", dropped}},
		{"a tied table not summed", layout{stages: 2}, fault{"stages [0 1]", dropped}},
		{"a tied table summed twice", layout{stages: 2, dp: 2, state: sharded(optim.ShardParameters)}, fault{"stages [0 1]", doubled}},
		{"a tensor-parallel sum not made", layout{tp: 2}, fault{"tensor", dropped}},
		{"gradients of norms not summed", layout{tp: 2, rows: true}, fault{"tensor gradients", dropped}},
		{"a tensor-parallel sum of rows not made", layout{tp: 2, rows: true}, fault{"tensor", dropped}},
		{"copies of a key-value head not summed", layout{tp: 4}, fault{"twins gradients", dropped}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.layout.dtype, c.layout.fault = tensor.FP64, c.fault
			worst, where := want.distance(j.run(t, c.layout))
			if worst < 1e6*fp64Tolerance {
				t.Errorf("not caught: %s differs by %.1e", where, worst)
			}
		})
	}
}

// TestBucketsGiveTheSameBytes compares modes and bucket sizes bit for bit.
func TestBucketsGiveTheSameBytes(t *testing.T) {
	j := newJob()
	for _, dtype := range []tensor.DType{tensor.FP32, tensor.BF16} {
		want := j.run(t, layout{dp: 2, dtype: dtype, state: optim.Options{Mode: optim.Naive}})
		for _, l := range []layout{{}, {state: optim.Options{Bucket: 4000}}, {state: optim.Options{Bucket: 1 << 20}}} {
			l.dp, l.dtype = 2, dtype
			if worst, where := want.distance(j.run(t, l)); worst != 0 {
				t.Errorf("%v: %s differs by %.1e from naive", l, where, worst)
			}
		}
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	j := newJob()
	for _, l := range []layout{
		{},
		{dp: 2, micro: 2},
		{dp: 4, dtype: tensor.BF16},
		{dp: 3, micro: 2, dtype: tensor.BF16, state: optim.Options{Stage: optim.ShardOptimizer, Ownership: optim.WholeTensor}},
		{dp: 4, micro: 3, state: optim.Options{Stage: optim.ShardParameters, Hybrid: 2, Prefetch: 2}},
	} {
		a, b := j.run(t, l), j.run(t, l)
		if worst, where := a.distance(b); worst != 0 {
			t.Errorf("%v: %s differs by %.1e between two runs", l, where, worst)
		}
	}
}

// TestBF16IsClose holds bf16 training to fp32. A bf16 number has 8 bits, so each operation errs by up to 2^-9; a loss
// averages thousands of such errors of either sign.
func TestBF16IsClose(t *testing.T) {
	const lossTolerance, normTolerance = 0.01, 0.05
	j := newJob()
	j.steps = 10
	a, b := j.run(t, layout{}), j.run(t, layout{dtype: tensor.BF16, dp: 2})
	for i := range a.losses {
		if d := a.losses[i]/b.losses[i] - 1; d > lossTolerance || d < -lossTolerance {
			t.Errorf("step %d: loss %v in fp32, %v in bf16", i, a.losses[i], b.losses[i])
		}
		if d := a.norms[i]/b.norms[i] - 1; d > normTolerance || d < -normTolerance {
			t.Errorf("step %d: gradient norm %v in fp32, %v in bf16", i, a.norms[i], b.norms[i])
		}
	}
}
