package train

import (
	"testing"

	"carve/plan"
)

func TestBench(t *testing.T) {
	s := Shape{"test", 32, 2, 2, 48, 300, 16, 2}
	for _, precision := range []plan.Precision{plan.FP32, plan.BF16, plan.FP64} {
		for _, ranks := range []int{1, 2} {
			r, err := Bench(t.Context(), BenchOptions{Shape: s, Ranks: ranks, Threads: 1, Precision: precision})
			if err != nil {
				t.Fatal(err)
			}
			t.Log(precision, ranks, r)
		}
	}
}
