package cost_test

import (
	"math"
	"testing"

	"carve/cluster"
	"carve/collective"
	"carve/cost"
	"carve/mesh"
	"carve/tensor"
	"carve/unit"

	"pgregory.net/rapid"
)

func machine(t *testing.T, preset string, nodes int) cost.Machine {
	t.Helper()
	c, err := cluster.Preset(preset, nodes)
	if err != nil {
		t.Fatal(err)
	}
	m, err := cost.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestEveryPresetIsKnown holds that every preset finds constants, each with a source.
func TestEveryPresetIsKnown(t *testing.T) {
	for _, name := range cluster.Presets() {
		if m := machine(t, name, 1); !m.Known {
			t.Errorf("%s (%s) has no constants", name, m.Cluster.Device.Name)
		}
	}
	if _, err := cost.New(cluster.Cluster{}); err == nil {
		t.Error("a cluster without figures has a price")
	}
	if m, err := cost.New(cluster.Cluster{Node: 1, Device: cluster.Device{Name: "abacus"}}); err != nil || m.Known {
		t.Errorf("an unknown device: known %v, %v", m.Known, err)
	}
}

// TestPublishedCollectives compares with published times of 1 MiB and more; see the sources in the table.
func TestPublishedCollectives(t *testing.T) {
	for _, c := range []struct {
		name, preset string
		nodes        int
		op           collective.Op
		bytes        float64
		want         unit.Seconds
		within       float64
	}{
		// nccl-tests, NVSwitch of 8 A100.
		{"a100 1 GiB", "dgx-a100", 1, collective.AllReduce, 1 << 30, 8203.9e-6, 0.05},
		{"a100 16 GiB", "dgx-a100", 1, collective.AllReduce, 1 << 34, 127997e-6, 0.05},
		{"a100 128 MiB", "dgx-a100", 1, collective.AllReduce, 1 << 27, 1327.6e-6, 0.30},
		// all_reduce_bench on 8 B200, and on 4 nodes of them over EFA.
		{"b200 1 GiB", "dgx-b200", 1, collective.AllReduce, 1 << 30, 2597.7e-6, 0.10},
		{"b200 x 4, 16 GiB", "dgx-b200", 4, collective.AllReduce, 1 << 34, 87181e-6, 0.05},
		{"b200 x 4, 1 GiB", "dgx-b200", 4, collective.AllReduce, 1 << 30, 5747e-6, 0.10},
	} {
		m := machine(t, c.preset, c.nodes)
		grid, err := mesh.New(mesh.Degrees{mesh.DP: 8 * c.nodes}, mesh.DefaultOrder())
		if err != nil {
			t.Fatal(err)
		}
		g := m.GroupOf(grid, mesh.Of(mesh.DP))
		if got := g.Collective(c.op, c.bytes); math.Abs(float64(got/c.want)-1) > c.within {
			t.Errorf("%s: %v, published %v", c.name, got, c.want)
		}
	}
}

// TestGroupsEqualTheirRanks holds the arithmetic on a mesh to the list of ranks.
func TestGroupsEqualTheirRanks(t *testing.T) {
	m := machine(t, "dgx-h100", 64)
	rapid.Check(t, func(t *rapid.T) {
		var d mesh.Degrees
		left := 9 // of the 512 devices, in powers of two
		for _, a := range mesh.All {
			n := rapid.IntRange(0, min(3, left)).Draw(t, a.String())
			d[a], left = 1<<n, left-n
		}
		order := mesh.Order(rapid.Permutation(mesh.All[:]).Draw(t, "order"))
		grid, err := mesh.New(d, order)
		if err != nil {
			t.Fatal(err)
		}
		axes := mesh.Axes(rapid.IntRange(1, int(mesh.Everything)).Draw(t, "axes"))
		if got, want := m.GroupOf(grid, axes), m.GroupOfRanks(grid.Group(0, axes)); got != want {
			t.Fatalf("%v on %v: %+v, by ranks %+v", axes, order, got, want)
		}
	})
}

// TestMoreBandwidthIsNeverSlower: links, memory and arithmetic, each made faster.
func TestMoreBandwidthIsNeverSlower(t *testing.T) {
	slow := machine(t, "dgx-h100", 4)
	fast := machine(t, "dgx-h100", 4)
	fast.Cluster.Device.Bandwidth *= 2
	fast.Cluster.Device.Peak.BF16 *= 2
	for i := range fast.Cluster.Levels {
		fast.Cluster.Levels[i].Bandwidth *= 2
	}
	grid, err := mesh.New(mesh.Degrees{mesh.DP: 32}, mesh.DefaultOrder())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		bytes := rapid.Float64Range(0, 1e11).Draw(t, "bytes")
		op := rapid.SampledFrom(collective.Ops()).Draw(t, "operation")
		a, b := slow.GroupOf(grid, mesh.Of(mesh.DP)), fast.GroupOf(grid, mesh.Of(mesh.DP))
		if a.Collective(op, bytes) < b.Collective(op, bytes) || a.Collective(op, bytes) > a.Collective(op, 2*bytes) {
			t.Fatalf("%v of %v bytes", op, bytes)
		}
		dims := [4]int{rapid.IntRange(1, 1<<15).Draw(t, "m"), rapid.IntRange(1, 1<<15).Draw(t, "n"), rapid.IntRange(1, 1<<15).Draw(t, "k")}
		o := tensor.Operation{Kind: tensor.OpMatMul, DType: tensor.BF16, Dims: dims, Read: unit.Bytes(2 * dims[2] * (dims[0] + dims[1])), Written: unit.Bytes(2 * dims[0] * dims[1])}
		x, y := slow.Operation(o), fast.Operation(o)
		floor := 2 * float64(dims[0]) * float64(dims[1]) * float64(dims[2]) / float64(slow.Peak(tensor.BF16))
		if x < y || float64(x) < floor {
			t.Fatalf("product %v: %v, on twice the device %v, at peak %v", dims, x, y, floor)
		}
	})
}

// TestOneMemberIsFree: a group of one communicates nothing.
func TestOneMemberIsFree(t *testing.T) {
	m := machine(t, "dgx-h100", 1)
	grid, err := mesh.New(mesh.Degrees{mesh.TP: 8}, mesh.DefaultOrder())
	if err != nil {
		t.Fatal(err)
	}
	for _, op := range collective.Ops() {
		g := m.GroupOf(grid, mesh.Of(mesh.DP))
		if got := g.Collective(op, 1e9); got != 0 {
			t.Errorf("%v of one rank takes %v", op, got)
		}
	}
}

// TestWaves shows quantization: one tile more than the units hold starts another wave, and a large product reaches its fraction.
func TestWaves(t *testing.T) {
	m := machine(t, "dgx-a100", 1)
	rate := func(n float64) float64 {
		p := cost.Product{M: n, N: n, K: n, Peak: m.Peak(tensor.BF16)}
		return 2 * n * n * n / float64(m.Product(p, 0)) / float64(p.Peak)
	}
	if large := rate(16384); large < 0.95*m.Constants.MatMul || large > m.Constants.MatMul {
		t.Errorf("a product of 16384 reaches %.2f of the peak, constants say %.2f", large, m.Constants.MatMul)
	}
	if rate(256) > rate(4096)/4 {
		t.Errorf("a product of 256 reaches %.2f, one of 4096 %.2f", rate(256), rate(4096))
	}
}
