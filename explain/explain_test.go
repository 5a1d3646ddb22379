package explain

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"carve/plan"
	"carve/unit"
)

// base is a plan whose every size is another power of two or a prime multiple, so that no two can be mixed up.
const base = `
version: 1
model: {architecture: llama, layers: 4, hidden: 64, heads: 8, kv_heads: 2, head_dim: 8, ffn: 160, vocab: 512, context: 64, tie_embeddings: false}
workload: {sequence: 32, global_batch: 16, steps: 2}
cluster: {preset: dgx-h100, nodes: 2}
micro_batch: 2
precision: bf16
`

func load(t *testing.T, text string) plan.Plan {
	t.Helper()
	p, err := plan.Load([]byte(text), nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func explain(t *testing.T, layout string) *Report {
	t.Helper()
	r, err := Explain(load(t, base+"layout: "+layout+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sums adds up the flows of an operation over a group.
func sums(r *Report, group, op string) (calls int, bytes, hidden unit.Bytes) {
	for _, f := range r.Flows {
		if f.Group == group && f.Op == op {
			calls += f.Calls
			bytes += f.Bytes
			hidden += f.HiddenBytes
		}
	}
	return calls, bytes, hidden
}

// sizes of base.
const (
	layers, hidden, heads, keyHeads, width, ffn, vocab = 4, 64, 8, 2, 8, 160, 512
	tokens                                             = 2 * 32 // of a micro-batch
	block                                              = hidden*(heads+2*keyHeads)*width + heads*width*hidden + 3*hidden*ffn + 2*hidden
	params                                             = layers*block + 2*vocab*hidden + hidden
	bf16                                               = 2
)

// closed is a count that a formula knows as well. Formulas are per step of one rank; M is the micro-batches.
type closed struct {
	layout, group, op string
	calls             int // -1: as many as the buckets make
	bytes             unit.Bytes
}

func closedForms() []closed {
	const row = tokens * hidden * bf16
	return []closed{
		// Gradients go round once, whole.
		{"{dp: 2, zero: {stage: 0}}", "data", "all-reduce", -1, params * bf16},
		{"{dp: 4, zero: {stage: 0}}", "data", "all-reduce", -1, params * bf16},
		// ZeRO 1 and 2: gradients are reduced to their owners; parameters come back.
		{"{dp: 8, zero: {stage: 2}}", "data", "reduce-scatter", -1, params * bf16},
		// ZeRO 3 with one micro-batch: 3P (Rajbhandari et al. 2020, section 7.2.2): parameters are gathered for forward and
		// backward, gradients scattered. A fused head has no backward of its own: 3P less its table and norm.
		{"{dp: 8, zero: {stage: 3, reshard: true}}", "data parameters", "all-gather", -1, (2*params - vocab*hidden - hidden) * bf16},
		{"{dp: 8, zero: {stage: 3, reshard: true}}", "data", "reduce-scatter", -1, params * bf16},
		// A block sums its two branches forward and backward (Shoeybi et al. 2019), the embedding forward, the head backward; three
		// numbers of every row for the loss. 8 micro-batches.
		{"{tp: 2, sequence_parallel: false, zero: {stage: 0}}", "tensor", "all-reduce", -1, 8 * ((4*layers+2)*row + 3*tokens*4)},
		// A stage's boundary passes once each way. 8 micro-batches.
		{"{pp: 2, pipeline: {schedule: 1f1b}}", "pipeline activations", "send", 8, 8 * row},
		{"{pp: 2, pipeline: {schedule: 1f1b}}", "pipeline gradients", "recv", 8, 8 * row},
		// A ring moves CP-1 blocks of keys and values forward; backward as many, and CP blocks of their gradients in fp32.
		{"{cp: 2, zero: {stage: 0}}", "context", "send", 8 * layers * (1 + 1 + 2), 8 * layers * tokens / 2 * 2 * keyHeads * width * (2*bf16 + 2*4)},
	}
}

// TestClosedForms compares what is counted with formulas.
func TestClosedForms(t *testing.T) {
	for _, c := range closedForms() {
		r := explain(t, c.layout)
		if fault := c.compare(r); fault != "" {
			t.Error(fault)
		}
		for i, f := range r.Flows { // leave one out
			if f.Group == c.group && f.Op == c.op {
				less := *r
				less.Flows = slices.Delete(slices.Clone(r.Flows), i, i+1)
				if c.compare(&less) == "" {
					t.Errorf("%s: nobody misses the %s of %s", c.layout, f.Op, f.Group)
				}
			}
		}
	}
}

func (c closed) compare(r *Report) string {
	calls, bytes, _ := sums(r, c.group, c.op)
	if bytes != c.bytes || c.calls >= 0 && calls != c.calls {
		return fmt.Sprintf("%s: %s of %s: %d calls, %d bytes; want %d, %d", c.layout, c.op, c.group, calls, bytes, c.calls, c.bytes)
	}
	return ""
}

// TestSequenceParallel holds what Korthikanti et al. 2022 (section 4.2.2) say: around the branches, an all-gather and a
// reduce-scatter of the same rows take the place of each all-reduce. carve keeps no gathered rows: the backward gathers the
// inputs of the matrices once more.
func TestSequenceParallel(t *testing.T) {
	const branches = 8 * 2 * layers * unit.Bytes(tokens*hidden*bf16) // of all micro-batches, one way
	r := explain(t, "{tp: 2, sequence_parallel: true, zero: {stage: 0}}")
	got := map[string]unit.Bytes{}
	for _, f := range r.Flows {
		if strings.Contains(f.Module, "layers") {
			got[f.Phase+" "+f.Op] += f.Bytes
		}
	}
	want := map[string]unit.Bytes{
		"forward all-gather": branches, "forward reduce-scatter": branches, "backward all-gather": 2 * branches, "backward reduce-scatter": branches,
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// TestState looks at a few classes whose numbers are easy to tell.
func TestState(t *testing.T) {
	r := explain(t, "{dp: 2, tp: 2, cp: 2, pp: 2, sequence_parallel: true, zero: {stage: 1}, pipeline: {schedule: 1f1b}}")
	for _, want := range []State{
		{Kind: "parameter", Name: "model.layers.*.mlp.down_proj.weight", Split: "tp shard(1)", Replication: 4, Count: 2, Bytes: 2 * hidden * ffn / 2 * bf16, Lifetime: "run"},
		{Kind: "parameter", Name: "model.layers.*.input_layernorm.weight", Split: "replicate", Replication: 8, Count: 2, Bytes: 2 * hidden * bf16, Lifetime: "run"},
		{Kind: "gradient", Name: "all gradients of the rank", Split: "as the parameters", Replication: 4, Lifetime: "run"},
		{Kind: "optimizer", Name: "adamw state", Split: "as the parameters; ZeRO over 4", Replication: 1, Lifetime: "run"},
		// Query, key and value of a micro-batch, and the residual stream; two micro-batches in flight of two layers.
		{Kind: "activation", Name: "model.layers.*.self_attn", Split: "tp shard(1), cp shard(0)", Replication: 1, Count: 4, Bytes: 4 * tokens / 2 * (heads + 2*keyHeads) * width / 2 * bf16, Lifetime: "forward to backward"},
		{Kind: "activation", Name: "model.layers.*.self_attn", Split: "tp shard(0), cp shard(0)", Replication: 1, Count: 4, Bytes: 4 * tokens / 4 * hidden * bf16, Lifetime: "forward to backward"},
	} {
		if !slices.ContainsFunc(r.State, func(s State) bool {
			return s.Kind == want.Kind && s.Name == want.Name && s.Split == want.Split && s.Lifetime == want.Lifetime &&
				s.Replication == want.Replication && (want.Count == 0 || s.Count == want.Count && s.Bytes == want.Bytes)
		}) {
			var near []string
			for _, s := range r.State {
				if s.Name == want.Name {
					near = append(near, fmt.Sprintf("%+v", s))
				}
			}
			t.Errorf("no %+v; of that name:\n%s", want, strings.Join(near, "\n"))
		}
	}
}

// TestHolders holds what stages share: everything under DualPipe, a tied token table under all other schedules.
func TestHolders(t *testing.T) {
	tied := strings.Replace(base, "tie_embeddings: false", "tie_embeddings: true", 1)
	const table, matrix = "model.embed_tokens.weight", "model.layers.*.mlp.up_proj.weight"
	for _, c := range []struct {
		text          string
		table, matrix int
	}{
		{base + "layout: {pp: 2, dp: 2, zero: {stage: 0}, pipeline: {schedule: 1f1b}}\n", 2, 2},
		{tied + "layout: {pp: 2, dp: 2, zero: {stage: 0}, pipeline: {schedule: 1f1b}}\n", 4, 2},
		{tied + "layout: {pp: 2, dp: 2, zero: {stage: 0}, pipeline: {schedule: zb-v}}\n", 2, 2}, // both ends on one rank
		{base + "layout: {pp: 2, dp: 2, zero: {stage: 0}, pipeline: {schedule: dualpipe}}\n", 4, 4},
	} {
		r, err := Explain(load(t, c.text))
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.State {
			if want := map[string]int{table: c.table, matrix: c.matrix}[s.Name]; want > 0 && s.Kind == "parameter" && s.Replication != want {
				t.Errorf("%s: %d copies of %s, want %d", r.Layout, s.Replication, s.Name, want)
			}
		}
	}
}

// TestPlacement holds that links follow the order of the axes.
func TestPlacement(t *testing.T) {
	for _, c := range []struct{ layout, tp, dp string }{
		{"{dp: 2, tp: 8}", "nvlink", "infiniband"},
		{"{dp: 2, tp: 8, order: [dp, tp, cp, ep, pp]}", "infiniband", "nvlink"},
	} {
		r := explain(t, c.layout)
		links := map[string]string{}
		for _, a := range r.Axes {
			links[a.Name] = a.Link.Name
		}
		if links["tp"] != c.tp || links["dp"] != c.dp {
			t.Errorf("%s: links %v", c.layout, links)
		}
		warned := strings.Contains(strings.Join(r.Warnings, "\n"), "tensor groups of 8 ranks cross infiniband")
		if warned != (c.tp == "infiniband") {
			t.Errorf("%s: warnings %q", c.layout, r.Warnings)
		}
		for _, n := range r.Topology.Shown {
			for i, s := range n.Ranks {
				if s.Rank != n.Index*8+i || s.Coordinates["tp"]+8*s.Coordinates["dp"] != s.Rank && c.tp == "nvlink" {
					t.Errorf("%s: node %d, seat %d: %+v", c.layout, n.Index, i, s)
				}
			}
		}
	}
}

// TestHidden holds that the bucket of the last gradients is exposed and the others are not, and that none is with one
// reduction after the backward.
func TestHidden(t *testing.T) {
	_, all, hidden := sums(explain(t, "{dp: 2, zero: {stage: 0, bucket: 4KiB}}"), "data", "all-reduce")
	if hidden == 0 || hidden >= all {
		t.Errorf("%v of %v hidden", hidden, all)
	}
	if _, _, hidden := sums(explain(t, "{dp: 2, zero: {stage: 0, reduce: naive}}"), "data", "all-reduce"); hidden != 0 {
		t.Errorf("%v hidden of a reduction at the end", hidden)
	}
}

// TestFullSize explains a plan of 70 billion parameters over 16,384 ranks.
func TestFullSize(t *testing.T) {
	r, err := Explain(load(t, `
version: 1
model: llama-3.1-70b
workload: {sequence: 8192, global_batch: 2048, tokens: 15e12}
cluster: {preset: dgx-h100, nodes: 2048}
layout: {dp: 256, tp: 8, pp: 8, sequence_parallel: true, pipeline: {schedule: 1f1b}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if r.World != 16384 || len(r.Memory) != 8 || r.Topology.Nodes != 2048 {
		t.Errorf("world %d, %d stages, %d nodes", r.World, len(r.Memory), r.Topology.Nodes)
	}
	for i, m := range r.Memory[1:] {
		if m.Categories["activation"] >= r.Memory[i].Categories["activation"] {
			t.Errorf("stage %d keeps %v, the one before %v", m.Stage, m.Categories["activation"], r.Memory[i].Categories["activation"])
		}
	}
}

// TestSVG holds that a drawing is well-formed, needs nothing from elsewhere, and names what it shows.
func TestSVG(t *testing.T) {
	drawing := SVG(explain(t, "{dp: 2, tp: 2, pp: 4, pipeline: {schedule: zb-h1}}"))
	d := xml.NewDecoder(strings.NewReader(drawing))
	for {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, foreign := range []string{"href", "url(", "@import", "<script", "<image"} {
		if strings.Contains(drawing, foreign) {
			t.Errorf("the drawing has %s", foreign)
		}
	}
	for _, word := range []string{"tp 2: tensor parallel", "node 1", "adamw state", "pipeline zb-h1", "prefers-color-scheme:dark"} {
		if !strings.Contains(drawing, word) {
			t.Errorf("the drawing lacks %q", word)
		}
	}
}

// TestRefused holds that a plan nobody runs is an error.
func TestRefused(t *testing.T) {
	_, err := Explain(load(t, `
version: 1
model: deepseek-v2-lite
workload: {sequence: 4096, global_batch: 16, steps: 1}
cluster: {preset: dgx-h100, nodes: 1}
layout: {dp: 8}
`))
	if err == nil {
		t.Error("latent attention is explained")
	}
}
