package main

import (
	"slices"
	"testing"

	"carve/explain"
	"carve/verify"
)

// TestExplainCovers explains layouts of the matrix that together have every feature of it, thrice where it can be.
func TestExplainCovers(t *testing.T) {
	const enough = 3
	seen := map[verify.Feature]int{}
	explained := 0
	for _, p := range verify.Matrix() {
		features := verify.Features(p)
		rare := slices.ContainsFunc(features, func(f verify.Feature) bool { return seen[f] < enough })
		for _, f := range features {
			seen[f]++
		}
		if !rare {
			continue
		}
		explained++
		r, err := explain.Explain(p)
		if err != nil {
			t.Errorf("%v: %v", features, err)
			continue
		}
		if explanation(r) == "" || explain.SVG(r) == "" {
			t.Errorf("%v: nothing is said", features)
		}
	}
	for _, want := range []verify.Feature{{Aspect: "context", Value: "all-to-all"}, {Aspect: "schedule", Value: "dualpipe"}, {Aspect: "experts split", Value: "true"}} {
		if seen[want] == 0 {
			t.Errorf("the matrix has no %v", want)
		}
	}
	t.Logf("%d layouts of %d features", explained, len(seen))
}
