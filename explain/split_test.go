package explain

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"carve/mesh"
	"carve/tensor"
)

// TestSwappedHeads explains plans whose context axis swaps heads for positions, so that a layer keeps other tensors than without.
func TestSwappedHeads(t *testing.T) {
	for _, kv := range []int{1, 2, 4} {
		for _, cp := range []int{2, 4} {
			for _, tp := range []int{1, 2} {
				for _, rest := range []string{"packing: documents", "packing: none"} {
					for _, balance := range []string{"zigzag", "contiguous"} {
						text := strings.NewReplacer("kv_heads: 2", fmt.Sprintf("kv_heads: %d", kv), "steps: 2", "steps: 2, "+rest).Replace(base)
						p := load(t, fmt.Sprintf("%slayout: {cp: %d, tp: %d, context: {kind: all-to-all, balance: %s}}\n", text, cp, tp, balance))
						r, err := Explain(p)
						if err != nil {
							t.Fatal(err)
						}
						keptSplit(t, r, fmt.Sprintf("%d key-value heads, cp %d, tp %d, %s, %s", kv, cp, tp, rest, balance))
					}
				}
			}
		}
	}
}

// keptSplit holds that what is kept is listed, that of the feed-forward with its split, and that splits fit sizes.
func keptSplit(t *testing.T, r *Report, name string) {
	t.Helper()
	var owners []string
	for _, s := range r.State {
		if s.Kind != "activation" || s.Lifetime != kept.String() {
			continue
		}
		owners = append(owners, s.Name)
		whole, local := 1, 1
		for i := range s.Shape {
			whole, local = whole*s.Shape[i], local*s.Local[i]
		}
		if s.Split == "" && !slices.Equal(s.Shape, s.Local) || s.Split == "replicate" && whole != local {
			t.Errorf("%s: %s is split %q, %v of %v", name, s.Name, s.Split, s.Local, s.Shape)
		}
		if s.Name == "model.layers.*.mlp" && !strings.Contains(s.Split, "cp shard(0)") {
			t.Errorf("%s: %s %v is split %q", name, s.Name, s.Local, s.Split)
		}
	}
	for _, want := range []string{"model.layers.*.mlp", "model.layers.*.self_attn"} {
		if !slices.Contains(owners, want) {
			t.Errorf("%s: nothing kept of %s", name, want)
		}
	}
}

// TestSharedExperts explains a plan whose tensor ranks share each expert.
func TestSharedExperts(t *testing.T) {
	r, err := Explain(load(t, `
version: 1
model: {architecture: qwen3_moe, layers: 4, hidden: 32, heads: 4, kv_heads: 2, ffn: 64, vocab: 260, context: 64, experts: {count: 4, per_token: 2, ffn: 32}}
workload: {sequence: 32, global_batch: 8, steps: 4}
layout: {ep: 2, tp: 2, sequence_parallel: true, experts: {tensor: 2, dispatch: dropping, capacity: 0.6, balance: loss}}
micro_batch: 1
`))
	if err != nil {
		t.Fatal(err)
	}
	if w := strings.Join(r.Warnings, "\n"); strings.Contains(w, "learned") {
		t.Error(w)
	}
}

// TestVariants holds that every variant of plans with keys of all kinds is legal.
func TestVariants(t *testing.T) {
	for _, layout := range []string{
		"{dp: 4, zero: {stage: 3, hybrid: 2}}",
		"{dp: 2, zero: {stage: 0, reduce: server}}",
		"{tp: 2, tensor: {kind: gathered}}",
		"{tp: 2, cp: 2, sequence_parallel: true, tensor: {chunks: 4}, order: [dp, tp, cp, ep, pp]}",
		"{pp: 2, pipeline: {schedule: interleaved, virtual: 2, stages: [1, 1, 2, 0]}}",
		"{pp: 2, dp: 2, pipeline: {schedule: dualpipe}, zero: {stage: 1, ownership: tensor}}",
		"{pp: 2, cp: 2, context: {kind: all-to-all}, pipeline: {schedule: zb-v}}",
	} {
		p := load(t, base+"layout: "+layout+"\nrecompute: {every: 3}\n")
		for _, axes := range [][]mesh.Axis{nil, {mesh.TP}, {mesh.CP}, {mesh.TP, mesh.CP}} {
			if err := variant(p, axes...).Validate(); err != nil {
				t.Errorf("%s over %v: %v", layout, axes, err)
			}
		}
	}
}

// TestGap holds that a plan whose variants cannot be recorded is explained, and says why splits are missing.
func TestGap(t *testing.T) {
	p := load(t, base+"layout: {tp: 2}\n")
	p.Model.Config.Vocab = 0
	s := learnSplits(p)
	if s.gap == nil {
		t.Fatal("no reason")
	}
	e := &explainer{plan: load(t, base+"layout: {tp: 2}\n"), split: s}
	if w := strings.Join(e.head().Warnings, "\n"); !strings.Contains(w, "could not be learned, so shapes are this rank's: ") {
		t.Errorf("warnings %q", w)
	}
	if _, ok := s.of(&class{}); ok {
		t.Error("something is known")
	}
}

// TestMatch holds what is told of tensors that other variants have more of, in other numbers of dims, or of other sizes.
func TestMatch(t *testing.T) {
	one := func(owner string, dims ...int) keptTensor {
		k := keptTensor{owner: owner, dtype: tensor.FP32}
		copy(k.dims[:], dims)
		return k
	}
	list := func(k ...keptTensor) []keptTensor { return k }
	split := fact{shape: []int{8, 4}}
	split.spec[mesh.TP], split.spec[mesh.CP] = mesh.Shard(1), mesh.Shard(0)
	for _, c := range []struct {
		name                 string
		whole, tp, cp, local []keptTensor
		of                   keptTensor
		want                 fact
		known                bool
	}{
		{"both", list(one("a", 8, 4)), list(one("a", 8, 2)), list(one("a", 4, 4)), list(one("a", 4, 2)), one("a", 4, 2), split, true},
		{"behind another of more dims", list(one("a", 2, 2, 2), one("a", 8, 4)), list(one("a", 2, 2, 2), one("a", 8, 2)), list(one("a", 4, 4), one("a", 2, 2, 2)), list(one("a", 4, 2), one("a", 2, 2, 2)), one("a", 4, 2), split, true},
		{"one more along an axis", list(one("a", 8, 4)), list(one("a", 8, 2)), list(one("a", 4, 4), one("a", 4, 4)), list(one("a", 4, 2)), one("a", 4, 2), fact{}, false},
		{"other dims along an axis", list(one("a", 8, 4)), list(one("a", 8, 2)), list(one("a", 4, 2, 2)), list(one("a", 4, 2)), one("a", 4, 2), fact{}, false},
		{"two dims at once", list(one("a", 8, 4)), list(one("a", 4, 2)), list(one("a", 8, 4)), list(one("a", 4, 2)), one("a", 4, 2), fact{}, false},
		{"larger along an axis", list(one("a", 8, 4)), list(one("a", 8, 8)), list(one("a", 8, 4)), list(one("a", 8, 8)), one("a", 8, 8), fact{}, false},
		{"less than the degree makes it", list(one("a", 8, 4)), list(one("a", 8, 3)), list(one("a", 8, 4)), list(one("a", 8, 3)), one("a", 8, 3), fact{}, false},
		{"another size along both", list(one("a", 8, 4)), list(one("a", 8, 2)), list(one("a", 4, 4)), list(one("a", 4, 4)), one("a", 4, 4), fact{}, false},
		{"two that lie otherwise", list(one("a", 8, 4), one("a", 8, 2)), list(one("a", 8, 2), one("a", 8, 2)), list(one("a", 8, 4), one("a", 8, 2)), list(one("a", 8, 2), one("a", 8, 2)), one("a", 8, 2), fact{}, false},
		{"nothing", nil, nil, nil, list(one("a", 4)), one("a", 4), fact{}, false},
	} {
		got, ok := match(c.whole, c.tp, c.cp, c.local, mesh.Degrees{mesh.TP: 2, mesh.CP: 2})[c.of]
		if ok != c.known || !got.same(c.want) {
			t.Errorf("%s: %v, %v", c.name, got, ok)
		}
	}
}
