package plan_test

import (
	"slices"
	"testing"

	"carve/mesh"
	"carve/model"
	"carve/plan"
	"carve/unit"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestStageLayers checks splits that a person can judge.
func TestStageLayers(t *testing.T) {
	cases := []struct {
		name, text string
		want       []int
	}{
		{"one stage", "model: gpt2", []int{12}},
		{ // the head over 128,256 tokens costs as much as 2.4 layers
			"heavy head", "model: llama-3.1-8b\nlayout: {pp: 4}", []int{8, 9, 9, 6},
		},
		{"listed", "model: gpt2\nlayout: {pp: 4, pipeline: {stages: [0, 6, 6, 0]}}", []int{0, 6, 6, 0}},
		{"even", "model: gpt2\nlayout: {pp: 2, pipeline: {schedule: zb-v, stages: even}}", []int{3, 3, 3, 3}},
		{ // 30 layers, PP 4: none is lost
			"indivisible", "model: {architecture: llama, layers: 30, hidden: 4096, heads: 32, ffn: 14336, vocab: 300}\nlayout: {pp: 4}", []int{7, 8, 8, 7},
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, load(t, c.text).StageLayers()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// fullest returns the largest load of a split.
func fullest(m model.Config, sequence int, counts []int) float64 {
	worst, layer := 0.0, 0
	for chunk, n := range counts {
		load := 0.0
		if chunk == len(counts)-1 {
			load = float64(m.HeadFLOPs().Total())
		}
		for range n {
			load += float64(m.LayerFLOPs(layer, sequence, model.Causal).Total())
			layer++
		}
		worst = max(worst, load)
	}
	return worst
}

// splits lists every way to give layers to chunks, one or more each: the dumb twin of balancing.
func splits(layers, chunks int) [][]int {
	if chunks == 1 {
		return [][]int{{layers}}
	}
	var all [][]int
	for first := 1; first <= layers-chunks+1; first++ {
		for _, rest := range splits(layers-first, chunks-1) {
			all = append(all, append([]int{first}, rest...))
		}
	}
	return all
}

// TestBalancedIsOptimal compares the fullest chunk with that of every possible split.
func TestBalancedIsOptimal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		layers := rapid.IntRange(1, 10).Draw(t, "layers")
		chunks := rapid.IntRange(1, layers).Draw(t, "chunks")
		p, err := plan.Parse([]byte("version: 1\nmodel: {architecture: qwen3_moe, layers: 1, hidden: 64, heads: 4, ffn: 128, vocab: 512, experts: {count: 8, per_token: 2, ffn: 64}}"), nil)
		if err != nil {
			t.Fatal(err)
		}
		m := &p.Model.Config
		m.Layers = layers
		m.Vocab = rapid.IntRange(257, 4000).Draw(t, "vocab")
		m.Experts.FirstDense = rapid.IntRange(0, layers).Draw(t, "dense")
		m.FFN = rapid.IntRange(1, 40).Draw(t, "ffn") * 16
		p.Layout.Degrees[mesh.PP] = chunks
		got := p.StageLayers()
		sum := 0
		for _, n := range got {
			sum += n
		}
		if sum != layers || len(got) != chunks || slices.Min(got) < 1 {
			t.Fatalf("%d layers on %d chunks: %v", layers, chunks, got)
		}
		best := fullest(*m, p.Workload.Sequence, splits(layers, chunks)[0])
		for _, split := range splits(layers, chunks) {
			best = min(best, fullest(*m, p.Workload.Sequence, split))
		}
		if load := fullest(*m, p.Workload.Sequence, got); load > best*(1+1e-9) { // sums in another order
			t.Fatalf("%d layers on %d chunks: %v has %v on the fullest, %v is possible", layers, chunks, got, load, best)
		}
	})
}

// TestStageParameters checks that chunks sum to the model, a tied head held twice counting twice, and
// that the heaviest of [1 2 2 3] has three layers of eight.
func TestStageParameters(t *testing.T) {
	p := load(t, "model: {architecture: llama, layers: 8, hidden: 64, heads: 4, ffn: 128, vocab: 300, tie_embeddings: true}\nlayout: {pp: 4, pipeline: {stages: [1, 2, 2, 3]}}")
	m := p.Model.Config
	layer, embedding := m.LayerParameters(0).Total(), unit.Count(300*64)
	want := []unit.Count{embedding + layer, 2 * layer, 2 * layer, 3*layer + 64 + embedding}
	if diff := cmp.Diff(want, p.StageParameters()); diff != "" {
		t.Error(diff)
	}
	p.Layout.Degrees[mesh.PP], p.Layout.Pipeline.Stages = 1, plan.Stages{}
	if got := p.StageParameters(); got[0] != m.Parameters().Total() {
		t.Errorf("one stage has %d parameters, the model %d", got[0], m.Parameters().Total())
	}
}

func TestChunks(t *testing.T) {
	for schedule, want := range map[plan.Schedule]int{
		plan.AllForwardAllBackward: 4,
		plan.OneForwardOneBackward: 4,
		plan.Interleaved:           12,
		plan.ZeroBubbleH1:          4,
		plan.ZeroBubbleV:           8,
		plan.DualPipe:              4,
		plan.DualPipeV:             8,
	} {
		l := plan.Layout{Degrees: mesh.Degrees{mesh.PP: 4}, Pipeline: plan.Pipeline{Schedule: schedule, Virtual: 3}}
		if got := l.Chunks(); got != want {
			t.Errorf("%s has %d chunks, want %d", schedule, got, want)
		}
	}
}
