package mesh_test

import (
	"slices"
	"testing"

	"carve/mesh"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestBalanceRuns(t *testing.T) {
	for _, c := range []struct {
		balance    mesh.Balance
		s, degree  int
		coordinate int
		want       []int32
	}{
		{mesh.Zigzag, 16, 4, 0, []int32{0, 1, 14, 15}},
		{mesh.Zigzag, 16, 4, 3, []int32{6, 7, 8, 9}},
		{mesh.Contiguous, 16, 4, 1, []int32{4, 5, 6, 7}},
		{mesh.Zigzag, 4, 1, 0, []int32{0, 1, 2, 3}},
		{mesh.Contiguous, 4, 1, 0, []int32{0, 1, 2, 3}},
	} {
		got := make([]int32, c.s/c.degree)
		c.balance.Positions(got, c.s, c.degree, c.coordinate)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v of %d over %d, coordinate %d: %s", c.balance, c.s, c.degree, c.coordinate, diff)
		}
	}
}

// Every position is on one coordinate, and under zigzag every coordinate has the same number of visible pairs.
func TestBalanceCoversAndIsEven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SampledFrom([]mesh.Balance{mesh.Zigzag, mesh.Contiguous}).Draw(t, "balance")
		degree := rapid.IntRange(1, 8).Draw(t, "degree")
		s := b.Pieces(degree) * rapid.IntRange(1, 9).Draw(t, "piece")
		batch := rapid.IntRange(1, 3).Draw(t, "batch")
		whole, all := make([]int32, batch*s), []int32{}
		for i := range whole {
			whole[i] = int32(i)
		}
		pairs := make([]int, degree)
		for c := range degree {
			part := make([]int32, batch*s/degree)
			b.Cut(part, whole, s, degree, c)
			all = append(all, part...)
			b.Positions(part, s, degree, c)
			for _, p := range part {
				pairs[c] += int(p) + 1
			}
		}
		if slices.Sort(all); !slices.Equal(all, whole) {
			t.Fatalf("positions %v", all)
		}
		if b == mesh.Zigzag && slices.Min(pairs) != slices.Max(pairs) {
			t.Fatalf("visible pairs %v", pairs)
		}
	})
}
