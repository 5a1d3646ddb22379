package search_test

import (
	"errors"
	"strings"
	"testing"

	"carve/cluster"
	"carve/cost"
	"carve/model"
	"carve/plan"
	"carve/price"
	"carve/search"
	"carve/unit"
)

func question(t testing.TB, name, preset string, nodes, sequence, batch int) search.Question {
	t.Helper()
	p := plan.Default()
	var err error
	p.Model.Origin, p.Model.Name = plan.FromPreset, name
	if p.Model.Config, err = model.Preset(name); err != nil {
		t.Fatal(err)
	}
	p.Cluster.Preset, p.Cluster.Nodes = preset, nodes
	if p.Cluster.Machine, err = cluster.Preset(preset, nodes); err != nil {
		t.Fatal(err)
	}
	p.Workload.Sequence, p.Workload.GlobalBatch, p.Workload.Tokens, p.Workload.Steps = sequence, batch, 0, 1000
	q := search.Question{Plan: p, Headroom: 0.08}
	if q.Machine, err = cost.New(p.Cluster.Machine); err != nil {
		t.Fatal(err)
	}
	if q.Profile, err = price.ProfileOf("carve"); err != nil {
		t.Fatal(err)
	}
	return q
}

func find(t *testing.T, q search.Question) *search.Answer {
	t.Helper()
	a, err := search.Find(q)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestBestPractice: what experience says of well-known models comes out.
func TestBestPractice(t *testing.T) {
	t.Run("405B on 16,384 H100", func(t *testing.T) {
		a := find(t, question(t, "llama-3.1-405b", "dgx-h100", 2048, 8192, 2048))
		if l := a.Best.Layout; l.TP < 4 || l.TP > 8 || l.PP < 4 || l.DP < 16 || !l.SequenceParallel {
			t.Errorf("%s; want tensor inside the node, a pipeline, data across", search.Describe(l))
		}
	})
	t.Run("7B on 8 H100", func(t *testing.T) {
		a := find(t, question(t, "llama-2-7b", "dgx-h100", 1, 4096, 512))
		if l := a.Best.Layout; l.PP != 1 || l.DP < 4 {
			t.Errorf("%s; want no pipeline", search.Describe(l))
		}
	})
	t.Run("DeepSeek-V3 on 2,048 H800", func(t *testing.T) {
		a := find(t, question(t, "deepseek-v3", "h800", 256, 4096, 15360))
		if l := a.Best.Layout; l.EP < 8 || l.TP != 1 {
			t.Errorf("%s; want experts over ranks, no tensor axis", search.Describe(l))
		}
	})
}

// TestAnswer holds what every answer keeps to: the plan is legal, fits, and is no slower than neighbours by more than simplicity is
// worth; every neighbour has a reason; the front has no point that another beats.
func TestAnswer(t *testing.T) {
	for _, q := range []search.Question{
		question(t, "llama-3.1-8b", "dgx-h100", 2, 8192, 128), question(t, "mixtral-8x7b", "dgx-a100", 8, 4096, 512),
		question(t, "llama-3.1-8b", "dgx-h100", 4, 131072, 32), question(t, "gpt2", "tpu-v5e", 1, 1024, 64),
	} {
		a := find(t, q)
		if err := a.Plan.Validate(); err != nil {
			t.Errorf("%s: %v", search.Describe(a.Best.Layout), err)
		}
		if a.Plan.Layout.World() != q.Machine.Cluster.Devices() || a.Best.Memory.Peak > q.Machine.Cluster.Device.Memory {
			t.Errorf("%s: %d ranks, %v", search.Describe(a.Best.Layout), a.Plan.Layout.World(), a.Best.Memory.Peak)
		}
		for _, other := range a.Alternatives {
			if other.Why == "" {
				t.Errorf("%s instead of %s: nobody says why not", other.Change, search.Describe(a.Best.Layout))
			}
		}
		for i, c := range a.Pareto {
			if i > 0 && (c.Time.Step <= a.Pareto[i-1].Time.Step || c.Memory.Peak >= a.Pareto[i-1].Memory.Peak) {
				t.Errorf("the front has %s after a point that beats it", search.Describe(c.Layout))
			}
		}
		if len(a.Pareto) == 0 || a.Pareto[0].Time.Step > a.Best.Time.Step {
			t.Error("the front has nothing as fast as the choice")
		}
		if !strings.HasPrefix(a.Reasons[0], "memory: ") || !strings.HasPrefix(a.Reasons[1], "zero ") || !strings.HasPrefix(a.Reasons[2], "data: ") || !strings.HasPrefix(a.Reasons[3], "tensor ") {
			t.Errorf("reasons out of order: %q", a.Reasons)
		}
	}
}

// TestNothingFits names the smallest layout and the line in the way, and refuses nonsense.
func TestNothingFits(t *testing.T) {
	_, err := search.Find(question(t, "llama-3.1-405b", "dgx-h100", 1, 8192, 64))
	if !errors.Is(err, search.ErrNothingFits) || !strings.Contains(err.Error(), "optimizer") || !strings.Contains(err.Error(), "use at least 16 nodes") {
		t.Errorf("405B on 8 devices: %v", err)
	}
	for _, spoil := range []func(*search.Question){
		func(q *search.Question) { q.Plan.Workload.GlobalBatch = 0 }, func(q *search.Question) { q.Plan.Workload.Sequence = -1 },
		func(q *search.Question) { q.Headroom = 1 }, func(q *search.Question) { q.Plan.Model.Config.Heads = 0 },
		func(q *search.Question) { q.Plan.Model.Config.Hidden = 1 << 40 },
	} {
		q := question(t, "llama-3.1-8b", "dgx-h100", 2, 8192, 128)
		spoil(&q)
		if _, err := search.Find(q); err == nil {
			t.Errorf("%+v has an answer", q.Plan.Workload)
		}
	}
}

// TestMoreMemoryIsNeverSlower: what fits a small device fits a large one.
func TestMoreMemoryIsNeverSlower(t *testing.T) {
	small := question(t, "llama-3.1-8b", "dgx-h100", 2, 8192, 128)
	large := question(t, "llama-3.1-8b", "dgx-h100", 2, 8192, 128)
	large.Machine.Cluster.Device.Memory = 10 * unit.TiB
	a, b := find(t, small), find(t, large)
	if b.Pareto[0].Time.Step > a.Pareto[0].Time.Step {
		t.Errorf("%v with 10 TiB, %v with 80 GiB", b.Pareto[0].Time.Step, a.Pareto[0].Time.Step)
	}
	if len(b.Alternatives) == 0 {
		t.Error("no neighbours")
	}
}

// BenchmarkFind counts priced layouts a second.
func BenchmarkFind(b *testing.B) {
	q := question(b, "llama-3.1-405b", "dgx-h100", 2048, 8192, 2048)
	n := 0
	for b.Loop() {
		a, err := search.Find(q)
		if err != nil {
			b.Fatal(err)
		}
		n += a.Evaluated
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "layouts/s")
}
