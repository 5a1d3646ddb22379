package explain

import (
	"testing"

	"carve/cluster"
	"carve/mesh"
	"carve/plan"

	"pgregory.net/rapid"
)

// TestLinks compares links with those of all groups, listed.
func TestLinks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var degrees mesh.Degrees
		for i := range degrees {
			degrees[i] = rapid.IntRange(1, 4).Draw(t, "degree")
		}
		m, err := mesh.New(degrees, mesh.Order(rapid.Permutation(mesh.All[:]).Draw(t, "order")))
		if err != nil {
			t.Fatal(err)
		}
		inner := rapid.IntRange(1, 8).Draw(t, "inner")
		sizes := []int{inner, inner * rapid.IntRange(1, 64).Draw(t, "outer")}
		p := newPlaces(plan.Plan{Cluster: plan.Cluster{Machine: cluster.Cluster{Node: inner, Levels: []cluster.Level{{Size: sizes[0]}, {Size: sizes[1]}}}}}, m)
		set := mesh.Axes(rapid.IntRange(0, int(mesh.Everything)).Draw(t, "set"))
		want := 0
		for _, group := range m.Groups(set) {
			want = max(want, mesh.Span(group, p.machine.Sizes()))
		}
		if got := p.link(set).Level; got != want {
			t.Fatalf("%v of %v in blocks of %v: level %d, want %d", set, degrees, p.machine.Sizes(), got, want)
		}
	})
}

// TestLinksOfMany holds that no group is listed to find a link, however many ranks there are.
func TestLinksOfMany(t *testing.T) {
	m, err := mesh.New(mesh.Degrees{mesh.TP: 8, mesh.DP: mesh.MaxWorld / 8, mesh.PP: 1, mesh.CP: 1, mesh.EP: 1}, mesh.DefaultOrder())
	if err != nil {
		t.Fatal(err)
	}
	machine := cluster.Cluster{Node: 8, Levels: []cluster.Level{{Size: 8}, {Size: mesh.MaxWorld}}}
	if n := testing.AllocsPerRun(1, func() {
		p := newPlaces(plan.Plan{Cluster: plan.Cluster{Machine: machine}}, m)
		if p.link(mesh.Of(mesh.TP)).Level != 0 || p.link(mesh.Of(mesh.DP)).Level != 1 {
			t.Error("wrong links")
		}
	}); n > 100 {
		t.Errorf("%v allocations", n)
	}
}
