package mesh_test

import (
	"slices"
	"testing"

	"carve/mesh"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// anyMesh draws a mesh of up to 243 ranks in any order.
func anyMesh(t *rapid.T) mesh.Mesh {
	var degrees mesh.Degrees
	for _, a := range mesh.All {
		degrees[a] = rapid.IntRange(0, 3).Draw(t, a.String())
	}
	order := mesh.Order(rapid.Permutation(mesh.All[:]).Draw(t, "order"))
	m, err := mesh.New(degrees, order)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// grid is the dumb twin of a mesh: the coordinates of every rank, by counting up like an odometer whose
// fastest digit is the first axis of the order.
func grid(m mesh.Mesh) []mesh.Coordinates {
	var at mesh.Coordinates
	all := []mesh.Coordinates{}
	for range m.World() {
		all = append(all, at)
		for _, a := range m.Order() {
			at[a]++
			if at[a] < m.Degree(a) {
				break
			}
			at[a] = 0
		}
	}
	return all
}

// agree tells whether two positions are equal on every axis outside a set.
func agree(a, b mesh.Coordinates, outside mesh.Axes) bool {
	for _, axis := range mesh.All {
		if !outside.Has(axis) && a[axis] != b[axis] {
			return false
		}
	}
	return true
}

func TestRankAndCoordinates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMesh(t)
		for rank, at := range grid(m) {
			if got := m.Coordinates(rank); got != at {
				t.Fatalf("rank %d is at %v, want %v", rank, got, at)
			}
			if got := m.Rank(at); got != rank {
				t.Fatalf("%v is rank %d, want %d", at, got, rank)
			}
		}
	})
}

func TestGroups(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := anyMesh(t)
		set := mesh.Axes(rapid.IntRange(0, int(mesh.Everything)).Draw(t, "set"))
		all := grid(m)
		var groups [][]int
		for rank, at := range all {
			var want []int
			for other, there := range all {
				if agree(at, there, set) {
					want = append(want, other)
				}
			}
			got := m.Group(rank, set)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("group of rank %d over %s:\n%s", rank, set, diff)
			}
			if got[m.Index(rank, set)] != rank || len(got) != m.Size(set) {
				t.Fatalf("rank %d is not at index %d of %v", rank, m.Index(rank, set), got)
			}
			if want[0] == rank {
				groups = append(groups, want)
			}
		}
		if diff := cmp.Diff(groups, m.Groups(set)); diff != "" {
			t.Fatalf("groups over %s:\n%s", set, diff)
		}
	})
}

// TestDefaultOrder writes out a small mesh in full, as a person would draw it.
func TestDefaultOrder(t *testing.T) {
	m, err := mesh.New(mesh.Degrees{mesh.DP: 2, mesh.TP: 2, mesh.PP: 2, mesh.EP: 2}, mesh.DefaultOrder())
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		set  mesh.Axes
		want [][]int
	}{
		{mesh.Of(mesh.TP), [][]int{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}},
		{mesh.Of(mesh.EP), [][]int{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}},
		{mesh.ExpertData, [][]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}, {8, 12}, {9, 13}, {10, 14}, {11, 15}}},
		{mesh.DenseData, [][]int{{0, 2, 4, 6}, {1, 3, 5, 7}, {8, 10, 12, 14}, {9, 11, 13, 15}}},
		{mesh.Of(mesh.PP), [][]int{{0, 8}, {1, 9}, {2, 10}, {3, 11}, {4, 12}, {5, 13}, {6, 14}, {7, 15}}},
	}
	for _, c := range cases {
		if diff := cmp.Diff(c.want, m.Groups(c.set)); diff != "" {
			t.Errorf("groups over %s:\n%s", c.set, diff)
		}
	}
}

// TestRankOrderChangesGroups is the case "same model, rank order tp-cp-dp-pp against others".
func TestRankOrderChangesGroups(t *testing.T) {
	degrees := mesh.Degrees{mesh.DP: 2, mesh.TP: 2, mesh.PP: 2}
	cases := []struct {
		order mesh.Order
		data  [][]int
	}{
		{mesh.Order{mesh.TP, mesh.CP, mesh.EP, mesh.DP, mesh.PP}, [][]int{{0, 2}, {1, 3}, {4, 6}, {5, 7}}},
		{mesh.Order{mesh.DP, mesh.TP, mesh.CP, mesh.EP, mesh.PP}, [][]int{{0, 1}, {2, 3}, {4, 5}, {6, 7}}},
		{mesh.Order{mesh.TP, mesh.PP, mesh.DP, mesh.CP, mesh.EP}, [][]int{{0, 4}, {1, 5}, {2, 6}, {3, 7}}},
	}
	for _, c := range cases {
		m, err := mesh.New(degrees, c.order)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.data, m.Groups(mesh.DenseData)); diff != "" {
			t.Errorf("data groups in order %s:\n%s", c.order, diff)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	cases := []struct {
		degrees mesh.Degrees
		order   mesh.Order
		want    string
	}{
		{mesh.Degrees{mesh.TP: -2}, mesh.DefaultOrder(), "mesh: tensor degree -2 is negative; use 1 or more"},
		{
			mesh.Degrees{mesh.DP: 1 << 20, mesh.PP: 1 << 20},
			mesh.DefaultOrder(),
			"mesh: pipeline degree 1048576 makes more than 16777216 ranks; use smaller degrees",
		},
		{
			mesh.Degrees{},
			mesh.Order{mesh.TP, mesh.TP, mesh.DP, mesh.EP, mesh.PP},
			"mesh: order names tp twice; use each of dp, tp, pp, cp and ep once",
		},
		{
			mesh.Degrees{},
			mesh.Order{9},
			"mesh: order names no axis 9; use each of dp, tp, pp, cp and ep once",
		},
	}
	for _, c := range cases {
		if _, err := mesh.New(c.degrees, c.order); err == nil || err.Error() != c.want {
			t.Errorf("New(%v, %v): %v, want %s", c.degrees, c.order, err, c.want)
		}
	}
}

func TestSpan(t *testing.T) {
	sizes := []int{4, 8, 32}
	cases := []struct {
		ranks []int
		want  int
	}{
		{[]int{5}, 0},
		{[]int{4, 5, 7}, 0},
		{[]int{3, 4}, 1},
		{[]int{0, 8}, 2},
		{[]int{31, 32}, 3},
	}
	for _, c := range cases {
		if got := mesh.Span(c.ranks, sizes); got != c.want {
			t.Errorf("ranks %v span level %d, want %d", c.ranks, got, c.want)
		}
	}
}

func TestStrings(t *testing.T) {
	got := []string{
		mesh.DenseData.String(),
		mesh.Axes(0).String(),
		mesh.Degrees{mesh.DP: 16, mesh.TP: 8}.String(),
		mesh.Degrees{}.String(),
		mesh.DefaultOrder().String(),
		mesh.Axis(7).String() + " " + mesh.Axis(7).Noun(),
		mesh.EP.Noun(),
	}
	want := []string{"dp×cp×ep", "none", "dp 16 × tp 8", "1 rank", "tp-cp-ep-dp-pp", "axis(7) axis(7)", "expert"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := mesh.Of(mesh.EP, mesh.DP, mesh.CP); got != mesh.DenseData {
		t.Errorf("Of(ep, dp, cp) = %s", got)
	}
	if !slices.Equal([]int{2 * 3, 2 * 3 * 5}, []int{
		mesh.Degrees{mesh.DP: 2, mesh.EP: 3, mesh.TP: 5}.Over(mesh.Samples),
		mesh.Degrees{mesh.DP: 2, mesh.EP: 3, mesh.TP: 5}.World(),
	}) {
		t.Error("products of degrees")
	}
}
