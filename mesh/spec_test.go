package mesh_test

import (
	"testing"

	"carve/mesh"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// anySpec draws a placement per axis for a tensor with the given number of dims.
func anySpec(t *rapid.T, m mesh.Mesh, dims int) (s mesh.Spec) {
	for _, a := range mesh.All {
		dim := rapid.IntRange(0, dims-1).Draw(t, a.String()+" dim")
		switch rapid.IntRange(0, 3).Draw(t, a.String()+" kind") {
		case 0:
			s[a] = mesh.Replicate()
		case 1:
			s[a] = mesh.Shard(dim)
		case 2:
			divisors := []int{}
			for n := 1; n <= m.Degree(a); n++ {
				if m.Degree(a)%n == 0 {
					divisors = append(divisors, n)
				}
			}
			s[a] = mesh.ShardParts(dim, rapid.SampledFrom(divisors).Draw(t, a.String()+" parts"))
		case 3:
			s[a] = mesh.Only(rapid.IntRange(0, m.Degree(a)-1).Draw(t, a.String()+" coordinate"))
		}
	}
	return s
}

// held is the dumb twin of Region: the indices of one dim that a coordinate keeps, found by dealing
// out lists of indices axis by axis.
func held(s mesh.Spec, m mesh.Mesh, at mesh.Coordinates, dim, n int) []int {
	indices := []int{}
	for i := range n {
		indices = append(indices, i)
	}
	for _, a := range []mesh.Axis{mesh.PP, mesh.EP, mesh.TP, mesh.CP, mesh.DP} {
		if s[a].Kind == mesh.Single && s[a].At != at[a] {
			indices = []int{}
		}
		if s[a].Kind != mesh.Sharded || s[a].Dim != dim {
			continue
		}
		parts := m.Degree(a)
		if s[a].Parts > 0 {
			parts = s[a].Parts
		}
		part := at[a] * parts / m.Degree(a)
		kept := []int{}
		for i, index := range indices {
			if owner(len(indices), parts, i) == part {
				kept = append(kept, index)
			}
		}
		indices = kept
	}
	return indices
}

// owner returns the part that index i of n goes to, by handing out one index to each part in turn to
// find the sizes, then counting.
func owner(n, parts, i int) int {
	sizes := make([]int, parts)
	for k := range n {
		sizes[k%parts]++
	}
	part := 0
	for i >= sizes[part] {
		i -= sizes[part]
		part++
	}
	return part
}

func TestRegionMatchesDealing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMesh(t)
		shape := rapid.SliceOfN(rapid.IntRange(0, 13), 1, 3).Draw(t, "shape")
		s := anySpec(t, m, len(shape))
		if err := s.Validate(m, shape); err != nil {
			t.Fatal(err)
		}
		for rank, at := range grid(m) {
			region := s.Region(m, at, shape)
			for dim, n := range shape {
				want := held(s, m, at, dim, n)
				got := []int{}
				for i := region[dim].Start; i < region[dim].Stop; i++ {
					got = append(got, i)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("rank %d, dim %d of %v under %s:\n%s", rank, dim, shape, s, diff)
				}
			}
			if diff := cmp.Diff(region.Shape(), s.LocalShape(m, at, shape)); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func TestOwnersCoverOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMesh(t)
		shape := rapid.SliceOfN(rapid.IntRange(1, 9), 2, 2).Draw(t, "shape")
		s := anySpec(t, m, len(shape))
		owners, holders := make([]int, shape[0]*shape[1]), make([]int, shape[0]*shape[1])
		for _, at := range grid(m) {
			region := s.Region(m, at, shape)
			count := 0
			for i := region[0].Start; i < region[0].Stop; i++ {
				for j := region[1].Start; j < region[1].Stop; j++ {
					count++
					holders[i*shape[1]+j]++
					if s.Owns(m, at) {
						owners[i*shape[1]+j]++
					}
				}
			}
			if count != region.Elements() {
				t.Fatalf("region %v counts %d elements, want %d", region, region.Elements(), count)
			}
		}
		for i := range owners {
			if owners[i] != 1 || holders[i] != s.Copies(m) {
				t.Fatalf("element %d of %v under %s has %d owners and %d holders, want 1 and %d",
					i, shape, s, owners[i], holders[i], s.Copies(m))
			}
		}
	})
}

// TestKeyValueHeads is a key projection with 2 heads of 4 rows under TP 4: each head is on two ranks.
func TestKeyValueHeads(t *testing.T) {
	m, err := mesh.New(mesh.Degrees{mesh.TP: 4}, mesh.DefaultOrder())
	if err != nil {
		t.Fatal(err)
	}
	s := mesh.Spec{mesh.TP: mesh.ShardParts(0, 2)}
	want := []mesh.Region{
		{{Start: 0, Stop: 4}, {Start: 0, Stop: 16}},
		{{Start: 0, Stop: 4}, {Start: 0, Stop: 16}},
		{{Start: 4, Stop: 8}, {Start: 0, Stop: 16}},
		{{Start: 4, Stop: 8}, {Start: 0, Stop: 16}},
	}
	for rank, region := range want {
		at := m.Coordinates(rank)
		if diff := cmp.Diff(region, s.Region(m, at, []int{8, 16})); diff != "" {
			t.Errorf("rank %d:\n%s", rank, diff)
		}
		if got := s.Owns(m, at); got != (rank%2 == 0) {
			t.Errorf("rank %d owns: %v", rank, got)
		}
	}
}

// TestUneven splits a vocabulary of 10 over 4 ranks.
func TestUneven(t *testing.T) {
	want := []mesh.Range{{Start: 0, Stop: 3}, {Start: 3, Stop: 6}, {Start: 6, Stop: 8}, {Start: 8, Stop: 10}}
	for part, span := range want {
		if got := mesh.Split(10, 4, part); got != span {
			t.Errorf("part %d is %v, want %v", part, got, span)
		}
	}
}

func TestSpecValidate(t *testing.T) {
	m, err := mesh.New(mesh.Degrees{mesh.TP: 6, mesh.EP: 2}, mesh.DefaultOrder())
	if err != nil {
		t.Fatal(err)
	}
	s := mesh.Spec{mesh.TP: mesh.ShardParts(0, 4), mesh.EP: mesh.Shard(2), mesh.DP: {Kind: 9}, mesh.CP: mesh.Only(1)}
	want := "mesh: dp has unknown placement 9\n" +
		"mesh: tp makes 4 parts, which do not divide its degree 6\n" +
		"mesh: cp keeps a tensor on coordinate 1 of 1\n" +
		"mesh: ep shards dim 2 of a tensor with 2 dims"
	if err := s.Validate(m, []int{8, 8}); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

func TestSpecString(t *testing.T) {
	cases := []struct {
		spec mesh.Spec
		want string
	}{
		{mesh.Spec{}, "replicate"},
		{mesh.Spec{mesh.TP: mesh.Shard(0), mesh.DP: mesh.Partial(mesh.Sum)}, "dp partial(sum), tp shard(0)"},
		{mesh.Spec{mesh.TP: mesh.ShardParts(1, 2), mesh.CP: mesh.Partial(mesh.Max)}, "tp shard(1, 2 parts), cp partial(max)"},
		{mesh.Spec{mesh.EP: mesh.Only(3), mesh.TP: mesh.Shard(0)}, "tp shard(0), ep only(3)"},
		{mesh.Spec{mesh.EP: {Kind: 9}}, "ep placement(9)"},
	}
	for _, c := range cases {
		if got := c.spec.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
	s := mesh.Spec{mesh.TP: mesh.Shard(0), mesh.DP: mesh.Partial(mesh.Sum)}
	if got := s.Axes(mesh.Sharded); got != mesh.Of(mesh.TP) {
		t.Errorf("sharded axes are %s", got)
	}
	if got := s.Axes(mesh.Pending); got != mesh.Of(mesh.DP) {
		t.Errorf("pending axes are %s", got)
	}
}
