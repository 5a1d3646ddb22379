package verify

import (
	"math/rand/v2"
	"testing"
)

// TestMatrixCoversPairs draws layouts by chance, in another way than the matrix is made, and wants every two features of each
// legal one somewhere in the matrix together.
func TestMatrixCoversPairs(t *testing.T) {
	type pair [2]Feature
	covered := map[pair]bool{}
	plans := Matrix()
	if len(plans) < 150 {
		t.Errorf("%d layouts, want 150 or more", len(plans))
	}
	for _, p := range plans {
		if !legal(p) {
			t.Errorf("%s is not legal", Describe(p))
		}
		list := Features(p)
		for i, a := range list {
			for _, b := range list[i+1:] {
				covered[pair{a, b}] = true
			}
		}
	}
	aspects := grid()
	random := rand.New(rand.NewPCG(99, 7))
	found := 0
	for range 20_000 {
		choices := make([]int, len(aspects))
		for a := range aspects {
			if random.IntN(3) > 0 { // the first choices go with most
				choices[a] = random.IntN(len(aspects[a].choices))
			}
		}
		p := assemble(aspects, choices)
		if !legal(p) {
			continue
		}
		found++
		list := Features(p)
		for i, a := range list {
			for _, b := range list[i+1:] {
				if !covered[pair{a, b}] {
					t.Errorf("no layout has %v and %v, as %s", a, b, Describe(p))
					covered[pair{a, b}] = true
				}
			}
		}
	}
	if found < 200 {
		t.Errorf("only %d legal layouts by chance", found)
	}
}

// TestFeaturesAreChoices holds that every choice of the grid shows in the features of some layout of the matrix: else it would have no
// effect, or be impossible.
func TestFeaturesAreChoices(t *testing.T) {
	seen := map[Feature]bool{}
	for _, p := range Matrix() {
		for _, f := range Features(p) {
			seen[f] = true
		}
	}
	for _, a := range grid() {
		for _, c := range a.choices {
			if !seen[Feature{a.name, c.name}] {
				t.Errorf("no layout has %s %s", a.name, c.name)
			}
		}
	}
}
