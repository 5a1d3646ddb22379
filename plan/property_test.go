package plan_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carve/cluster"
	"carve/internal/document"
	"carve/mesh"
	"carve/model"
	"carve/plan"
	"carve/unit"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// pick draws an enumerated value below a count.
func pick[T ~uint8](t *rapid.T, name string, count int) T {
	return T(rapid.IntRange(0, count-1).Draw(t, name))
}

// anyPlan draws a plan whose form is right, whether or not it keeps the rules.
func anyPlan(t *rapid.T) plan.Plan {
	p := plan.Default()
	p.Model.Name = rapid.SampledFrom(model.Presets()).Draw(t, "model")
	config, err := model.Preset(p.Model.Name)
	if err != nil {
		t.Fatal(err)
	}
	p.Model.Config = config
	if rapid.Bool().Draw(t, "inline") {
		p.Model.Origin, p.Model.Name = plan.Inline, ""
	}
	size := func(name string) int { return rapid.IntRange(1, 1<<20).Draw(t, name) }
	number := func(name string) float64 { return rapid.Float64().Draw(t, name) }
	p.Workload.Sequence, p.Workload.GlobalBatch = size("sequence"), size("batch")
	if rapid.Bool().Draw(t, "by tokens") {
		p.Workload.Tokens = unit.Count(rapid.Int64Range(1, 1<<53).Draw(t, "tokens"))
	} else {
		p.Workload.Steps = size("steps")
	}
	p.Workload.Data = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) plan.Source {
		return plan.Source{
			Path:   rapid.StringMatching(`[ -~äöü€😀]{0,20}`).Draw(t, "path"),
			Weight: rapid.Float64().Draw(t, "weight"),
			Kind:   pick[plan.DataKind](t, "kind", 5),
		}
	}), 0, 3).Draw(t, "data")
	if len(p.Workload.Data) == 0 {
		p.Workload.Data = nil
	}
	p.Workload.Tokenizer = rapid.SampledFrom([]plan.Tokenizer{
		{}, {Kind: plan.TrainedBPE, Vocab: size("vocab")}, {Kind: plan.FromTokenizerFile, Path: "a b/tokenizer.json"},
	}).Draw(t, "tokenizer")
	p.Workload.Packing = pick[plan.Packing](t, "packing", 2)
	p.Cluster = anyCluster(t)
	p.Layout = anyLayout(t, size)
	p.MicroBatch = size("micro-batch")
	p.Precision = pick[plan.Precision](t, "precision", 3)
	p.Recompute = rapid.SampledFrom([]plan.Recompute{
		{}, {Kind: plan.Selective}, {Kind: plan.FullBlock}, {Kind: plan.Periodic, Every: size("every")},
	}).Draw(t, "recompute")
	p.Offload = pick[plan.Offload](t, "offload", 2)
	p.Optimizer = plan.Optimizer{
		Name: pick[plan.OptimizerName](t, "optimizer", 3), Schedule: pick[plan.RateSchedule](t, "rates", 4),
		LearningRate: number("rate"), MinRatio: number("ratio"), Warmup: size("warmup"), Decay: number("decay"),
		Beta1: number("beta1"), Beta2: number("beta2"), Epsilon: number("eps"), Momentum: number("momentum"),
		WeightDecay: number("weight decay"), Clip: number("clip"),
	}
	p.Checkpoint = plan.Checkpoint{Every: size("checkpoint"), Keep: size("keep")}
	p.Engine = pick[plan.Engine](t, "engine", 2)
	p.Seed = rapid.Uint64().Draw(t, "seed")
	return p
}

// anyCluster draws a preset.
func anyCluster(t *rapid.T) plan.Cluster {
	name := rapid.SampledFrom(append(cluster.Presets(), cluster.ThisMachine)).Draw(t, "cluster")
	c := plan.Cluster{Preset: name, Nodes: 1}
	if name != cluster.ThisMachine {
		machine, err := cluster.Preset(name, 1)
		if err != nil {
			t.Fatal(err)
		}
		c.Machine = machine
	}
	return c
}

// anyLayout draws a layout.
func anyLayout(t *rapid.T, size func(string) int) plan.Layout {
	l := plan.Default().Layout
	for _, a := range mesh.All {
		l.Degrees[a] = rapid.IntRange(1, 6).Draw(t, a.String())
	}
	l.Order = mesh.Order(rapid.Permutation(mesh.All[:]).Draw(t, "order"))
	l.Tensor = plan.Tensor{Kind: pick[plan.TensorKind](t, "tensor kind", 2), Chunks: rapid.IntRange(1, 9).Draw(t, "tensor chunks")}
	l.SequenceParallel = rapid.Bool().Draw(t, "sp")
	l.Zero = plan.Zero{
		Stage: pick[plan.Stage](t, "stage", 4), Hybrid: size("hybrid"), Bucket: unit.Bytes(size("bucket")), Prefetch: size("prefetch"),
		Reshard: rapid.Bool().Draw(t, "reshard"), Ownership: pick[plan.Ownership](t, "ownership", 2), Reduce: pick[plan.Reduce](t, "reduce", 3),
	}
	l.Pipeline = plan.Pipeline{Schedule: pick[plan.Schedule](t, "schedule", 7), Virtual: rapid.IntRange(1, 3).Draw(t, "virtual")}
	switch rapid.IntRange(0, 2).Draw(t, "stages") {
	case 1:
		l.Pipeline.Stages.Kind = plan.Even
	case 2:
		l.Pipeline.Stages = plan.Stages{Kind: plan.Listed, Layers: rapid.SliceOfN(rapid.IntRange(0, 9), 1, 5).Draw(t, "layers")}
	}
	l.Context = plan.Context{Kind: pick[plan.ContextKind](t, "context", 3), Balance: pick[plan.ContextBalance](t, "balance", 2)}
	l.Experts = plan.Experts{
		Dispatch: pick[plan.Dispatch](t, "dispatch", 2), Balance: pick[plan.Balance](t, "experts balance", 4),
		Capacity: rapid.Float64().Draw(t, "capacity"), Tensor: rapid.IntRange(1, 6).Draw(t, "experts tensor"),
		Rate: rapid.Float64().Draw(t, "rate"), Overlap: rapid.Bool().Draw(t, "overlap"),
	}
	return l
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPlan(t)
		text := plan.Encode(p)
		again, err := plan.Parse(text, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Fatalf("%s\n%s", diff, text)
		}
		if diff := cmp.Diff(string(text), string(plan.Encode(again))); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestLegalPlans checks what every legal plan keeps, on plans that are often legal.
func TestLegalPlans(t *testing.T) {
	legal := 0
	rapid.Check(t, func(t *rapid.T) {
		p := plan.Default()
		p.Model.Name = rapid.SampledFrom([]string{"gpt2", "llama-3.2-1b", "mixtral-8x7b", "deepseek-v2-lite"}).Draw(t, "model")
		config, err := model.Preset(p.Model.Name)
		if err != nil {
			t.Fatal(err)
		}
		p.Model.Config = config
		p.Workload.Sequence, p.Workload.Steps = 1024, 10
		p.Workload.Tokenizer = plan.Tokenizer{Kind: plan.TrainedBPE, Vocab: 4096}
		p.Workload.GlobalBatch = rapid.IntRange(1, 64).Draw(t, "batch")
		for _, a := range mesh.All {
			p.Layout.Degrees[a] = rapid.SampledFrom([]int{1, 1, 2, 3, 4}).Draw(t, a.String())
		}
		p.Layout.Pipeline.Schedule = pick[plan.Schedule](t, "schedule", 7)
		if p.Validate() != nil {
			return
		}
		legal++
		share := p.MicroBatch * p.Layout.DataParallel()
		if p.MicroBatches() < 1 || p.MicroBatches()*share != p.Workload.GlobalBatch {
			t.Fatalf("%d micro-batches of %d make no global batch of %d", p.MicroBatches(), share, p.Workload.GlobalBatch)
		}
		grid, err := p.Layout.Mesh()
		if err != nil || grid.World() != p.Layout.World() {
			t.Fatalf("mesh of %d ranks for a layout of %d: %v", grid.World(), p.Layout.World(), err)
		}
		sum := 0
		for _, layers := range p.StageLayers() {
			sum += layers
		}
		if sum != config.Layers || len(p.StageLayers()) != p.Layout.Chunks() {
			t.Fatalf("stages %v of %d layers", p.StageLayers(), config.Layers)
		}
		if len(p.Notes()) > 6 {
			t.Fatalf("%d notes", len(p.Notes()))
		}
		if _, err := plan.Load(plan.Encode(p), nil); err != nil {
			t.Fatalf("a legal plan does not load: %v", err)
		}
	})
	if legal == 0 {
		t.Error("no plan was legal")
	}
}

// TestBatchRemedyIsLegal takes the advice of every global-batch violation.
func TestBatchRemedyIsLegal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, err := plan.Load([]byte("version: 1\nmodel: gpt2"), nil)
		if err != nil {
			t.Fatal(err)
		}
		p.Workload.GlobalBatch = rapid.IntRange(1, 500).Draw(t, "batch")
		p.MicroBatch = rapid.IntRange(1, 9).Draw(t, "micro")
		p.Layout.Degrees[mesh.DP] = rapid.IntRange(1, 30).Draw(t, "dp")
		err = p.Validate()
		if err == nil {
			return
		}
		_, advice, _ := strings.Cut(err.Error(), " use ")
		for word := range strings.FieldsSeq(advice) {
			if word == "or" {
				continue
			}
			p.Workload.GlobalBatch = int(decimal(t, word))
			if err := p.Validate(); err != nil {
				t.Fatalf("advice %s is not legal: %v", word, err)
			}
		}
	})
}

// decimal reads a decimal number.
func decimal(t *rapid.T, word string) (n int64) {
	for _, r := range word {
		if r < '0' || r > '9' {
			t.Fatalf("%q is not a number", word)
		}
		n = 10*n + int64(r-'0')
	}
	return n
}

func TestSteps(t *testing.T) {
	p := load(t, "model: gpt2\nworkload: {sequence: 1000, global_batch: 10, tokens: 1e6}")
	if p.StepTokens() != 10_000 || p.Steps() != 100 || p.TotalTokens() != 1_000_000 {
		t.Errorf("%d tokens a step, %d steps, %d tokens", p.StepTokens(), p.Steps(), p.TotalTokens())
	}
	p.Workload.Tokens++
	if p.Steps() != 101 {
		t.Errorf("one token more makes %d steps, want 101", p.Steps())
	}
}

func FuzzParse(f *testing.F) {
	paths, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := plan.Parse(data, nil)
		if err != nil {
			lines := strings.Split(err.Error(), "\n")
			if len(lines) > document.MaxFaults+1 {
				t.Fatalf("%d lines of errors", len(lines))
			}
			for _, line := range lines {
				if !strings.HasPrefix(line, "plan: ") {
					t.Fatalf("error line without owner: %q", line)
				}
			}
			return
		}
		if p.Validate() == nil {
			p.Notes()
		}
		text := plan.Encode(p)
		again, err := plan.Parse(text, nil)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if diff := cmp.Diff(p, again); diff != "" {
			t.Fatalf("%s\n%s", diff, text)
		}
	})
}

func FuzzParseCluster(f *testing.F) {
	data, err := os.ReadFile("testdata/lab.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("levels: [{size: 1e9}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := plan.ParseCluster(data); err != nil && !strings.HasPrefix(err.Error(), "cluster: ") {
			t.Fatalf("error without owner: %v", err)
		}
	})
}
