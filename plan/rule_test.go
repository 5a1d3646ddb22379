package plan_test

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carve/mesh"
	"carve/plan"

	"github.com/google/go-cmp/cmp"
)

// TestEveryRuleHasABadFile checks that each rule catches something: the negative control of Validate. What
// is wrong with a model is found when it is read; RuleModel is for models made in a program.
func TestEveryRuleHasABadFile(t *testing.T) {
	paths, err := filepath.Glob("testdata/*.bad.yaml")
	if err != nil {
		t.Fatal(err)
	}
	caught := map[plan.Rule]bool{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, err = plan.Load(data, files)
		if all, ok := errors.AsType[plan.Violations](err); ok {
			for _, v := range all {
				caught[v.Rule] = true
			}
		}
	}
	for _, rule := range []plan.Rule{
		plan.RuleRange, plan.RuleBatch, plan.RuleLength, plan.RuleSequence, plan.RuleHeads,
		plan.RuleKVHeads, plan.RuleWidth, plan.RuleExperts, plan.RuleStages, plan.RuleSchedule, plan.RuleTensor, plan.RuleContext,
		plan.RuleZero, plan.RuleOptimizer, plan.RuleOrder, plan.RuleWorld, plan.RuleData, plan.RuleTokenizer,
		plan.RuleRecompute,
	} {
		if !caught[rule] {
			t.Errorf("no bad file breaks rule %s", rule)
		}
	}
}

// load reads a plan that must be legal.
func load(t *testing.T, text string) plan.Plan {
	t.Helper()
	p, err := plan.Load([]byte("version: 1\n"+text), files)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestErrorsAsOneViolation(t *testing.T) {
	p := load(t, "model: gpt2")
	p.Layout.Degrees[mesh.TP] = 8
	p.Workload.GlobalBatch = 63
	p.MicroBatch = 2
	err := p.Validate()
	var one *plan.Violation
	if !errors.As(err, &one) || one.Rule != plan.RuleBatch {
		t.Errorf("the first violation is %v", one)
	}
	want := "plan: global batch 63 is not a multiple of micro-batch 2 x data degree 1 x expert degree 1 = 2; use 62 or 64\n" +
		"plan: tensor degree 8 does not divide 12 heads; use 1, 2, 3, 4, 6 or 12"
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// TestValidateHandMade checks what only a program can put into a plan.
func TestValidateHandMade(t *testing.T) {
	cases := []struct {
		name   string
		change func(*plan.Plan)
		want   string
	}{
		{"no model", func(p *plan.Plan) { p.Model = plan.Model{} }, "plan: model: layers is 0; use 1 to 4096"},
		{"NaN", func(p *plan.Plan) { p.Optimizer.LearningRate = math.NaN() }, "plan: optimizer.learning_rate is NaN; use 0 to 1000"},
		{"degree 0", func(p *plan.Plan) { p.Layout.Degrees[mesh.CP] = 0 }, "plan: layout.cp is 0; use 1 to 16777216"},
		{"no length", func(p *plan.Plan) { p.Workload.Steps = 0 }, "plan: the run has no length; give workload.tokens or workload.steps"},
		{"stage", func(p *plan.Plan) { p.Layout.Zero.Stage = 7 }, "plan: zero stage 7; use 0 to 3"},
		{"axis", func(p *plan.Plan) { p.Layout.Order[2] = 9 }, "plan: order names no axis 9; use each of dp, tp, pp, cp and ep once"},
		{"path", func(p *plan.Plan) { p.Workload.Tokenizer = plan.Tokenizer{Kind: plan.FromTokenizerFile} }, "plan: the tokenizer has no path; name a tokenizer.json"},
		{"negative stage", func(p *plan.Plan) {
			p.Layout.Pipeline.Stages = plan.Stages{Kind: plan.Listed, Layers: []int{-12}}
		}, "plan: stage 0 has -12 layers; use 0 to 12"},
		{"weight", func(p *plan.Plan) { p.Workload.Data = []plan.Source{{Path: "x", Weight: math.Inf(1)}} }, "plan: data source 0 (x) has weight +Inf; use a number above 0"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			p := load(t, "model: gpt2")
			c.change(&p)
			if err := p.Validate(); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// TestNotes checks what is legal but worth knowing, with its rule.
func TestNotes(t *testing.T) {
	llama := "model: {architecture: llama, layers: 80, hidden: 4096, heads: 32, kv_heads: 2, ffn: 14336, vocab: 32000, context: 4096}\n"
	cases := []struct {
		name, text string
		want       []string
	}{
		{"nothing to say", "model: gpt2", nil},
		{ // 80 layers, PP 16, virtual 2: every layer is placed, and unevenly
			"uneven chunks", llama + "layout: {pp: 16, pipeline: {schedule: interleaved, virtual: 2}}",
			[]string{"uneven-stages: 80 layers do not lie evenly on 32 chunks: 2 to 3 each"},
		},
		{
			"repeated heads", llama + "layout: {tp: 8}",
			[]string{"kv-heads-repeated: 2 key-value heads over tensor degree 8: each is held by 4 ranks; tensor degree 2 or less would hold it once"},
		},
		{
			"uneven rows", llama + "workload: {sequence: 1003}\nlayout: {tp: 2}",
			[]string{"sequence: 1003 rows do not lie evenly on tensor degree 2: their blocks travel one by one, and other engines refuse them"},
		},
		{"rows that nobody splits", llama + "workload: {sequence: 1003}\nlayout: {tp: 2, tensor: {kind: gathered}}", nil},
		{
			"long sequence", llama + "workload: {sequence: 8192, steps: 5}\noptimizer: {warmup: 9}",
			[]string{
				"sequence: sequence 8192 is longer than the 4096 positions that the model was made for",
				"optimizer: warm-up of 9 steps is longer than the run's 5: the learning rate is never reached",
			},
		},
		{
			"slow link", "model: llama-3.1-8b\nlayout: {dp: 3, tp: 8, order: [dp, tp, cp, ep, pp]}\ncluster: {preset: dgx-h100, nodes: 4}",
			[]string{
				"slow-link: tensor groups of 8 ranks cross infiniband (50.0 GB/s) instead of staying on nvlink (450 GB/s, 8 devices)",
				"idle-devices: 8 of 32 devices have no rank",
			},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, note := range load(t, c.text).Notes() {
				got = append(got, string(note.Rule)+": "+note.Message)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
