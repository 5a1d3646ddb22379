package data

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// order lists the whole permutation.
func order(p permutation) []uint64 {
	out := make([]uint64, p.n)
	for i := range out {
		out[i] = p.at(uint64(i))
	}
	return out
}

// bijective tells whether out holds each of 0 … n-1 once.
func bijective(out []uint64) bool {
	seen := make([]bool, len(out))
	for _, v := range out {
		if v >= uint64(len(out)) || seen[v] {
			return false
		}
		seen[v] = true
	}
	return true
}

func TestPermutationIsBijective(t *testing.T) {
	for n := uint64(1); n < 300; n++ {
		if !bijective(order(newPermutation(n, 1, n))) {
			t.Fatalf("%d items", n)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint64Range(1, 5000).Draw(t, "n")
		p := newPermutation(n, rapid.Uint64().Draw(t, "seed"), rapid.Uint64().Draw(t, "epoch"))
		if !bijective(order(p)) {
			t.Fatal("not a permutation")
		}
	})
	if bijective([]uint64{0, 2, 2}) || bijective([]uint64{0, 3, 1}) {
		t.Error("the check misses a repeated or an absent item")
	}
}

func TestPermutationOfHugeDomain(t *testing.T) {
	for _, n := range []uint64{1 << 40, 1<<62 + 12345, math.MaxInt64} {
		p := newPermutation(n, 1, 0)
		for i := range uint64(100) {
			if v := p.at(n - 1 - i); v >= n {
				t.Fatalf("%d of %d", v, n)
			}
		}
	}
}

// TestPermutationLooksRandom counts, over many keys, where each item lands. With
// 4,800 keys and 8 places a count has mean 600 and standard deviation 23; five of
// them bound it. A permutation that leaves items near their places fails.
func TestPermutationLooksRandom(t *testing.T) {
	const n, keys, mean, bound = 8, 4800, 600, 115
	var count [n][n]int
	for k := range uint64(keys) {
		for i, v := range order(newPermutation(n, k/60, k%60)) {
			count[i][v]++
		}
	}
	for i := range count {
		for v, c := range count[i] {
			if c < mean-bound || c > mean+bound {
				t.Errorf("item %d is in place %d %d times, want about %d", v, i, c, mean)
			}
		}
	}
}

// TestPermutationMixesNeighbours expects the mean distance of neighbours in a
// random order of n items, n/3, within a twentieth.
func TestPermutationMixesNeighbours(t *testing.T) {
	const n = 20000
	for seed := range uint64(4) {
		out := order(newPermutation(n, seed, 0))
		sum := 0.0
		for i := 1; i < n; i++ {
			sum += math.Abs(float64(out[i]) - float64(out[i-1]))
		}
		if got := sum / n / (n / 3.0); math.Abs(got-1) > 0.05 {
			t.Errorf("seed %d: mean distance %.3f of that of a random order", seed, got)
		}
	}
}
