package train

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carve/mesh"
	"carve/plan"
)

// manyDocuments is a file of JSON lines, each a document of 20 to 40 bytes.
func manyDocuments(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for i := 0; b.Len() < 20<<10; i++ {
		fmt.Fprintf(&b, "{\"text\": \"item %d costs %d%s\"}\n", i, i*i%101, strings.Repeat("!", i%17))
	}
	path := filepath.Join(t.TempDir(), "items.jsonl")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPackingIsTheSameOnEveryLayout trains and validates on packed documents, on one rank and over data and context ranks.
func TestPackingIsTheSameOnEveryLayout(t *testing.T) {
	p := smallPlan(t, 6)
	p.Workload.Data = []plan.Source{{Path: manyDocuments(t), Weight: 1, Kind: plan.JSONL}}
	run := func(packing plan.Packing, d mesh.Degrees) []float64 {
		p.Workload.Packing, p.Layout.Degrees, p.MicroBatch = packing, d, 2
		r := newTrial(t, p)
		sum, err := r.run(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return append(r.losses(), sum.ValLoss)
	}
	one := mesh.Degrees{1, 1, 1, 1, 1}
	want := run(plan.ByDocument, one)
	got := run(plan.ByDocument, mesh.Degrees{mesh.DP: 2, mesh.TP: 1, mesh.PP: 1, mesh.CP: 2, mesh.EP: 1})
	joined := run(plan.NoPacking, one)
	differs := false
	for i, w := range want {
		const tolerance = 1e-5 // of fp32 over a few steps
		if math.Abs(got[i]/w-1) > tolerance {
			t.Errorf("loss %d: %v over ranks, %v on one", i, got[i], w)
		}
		differs = differs || math.Abs(joined[i]/w-1) > 100*tolerance
	}
	if !differs {
		t.Error("packing changes nothing")
	}
}
