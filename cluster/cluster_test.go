package cluster_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carve/cluster"
	"carve/mesh"
	"carve/unit"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// preset returns a preset that must exist.
func preset(t *testing.T, name string, nodes int) cluster.Cluster {
	t.Helper()
	c, err := cluster.Preset(name, nodes)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestFigures checks figures of data sheets that everybody knows.
func TestFigures(t *testing.T) {
	cases := []struct {
		preset    string
		peak      unit.FLOPsPerSecond
		memory    unit.Bytes
		bandwidth unit.BytesPerSecond
		link, nic unit.BytesPerSecond
	}{
		{"dgx-a100", 312e12, 80 * unit.GiB, 2000e9, 300e9, 25e9},
		{"dgx-h100", 989e12, 80 * unit.GiB, 3350e9, 450e9, 50e9},
		{"dgx-h200", 989e12, 141 * unit.GiB, 4800e9, 450e9, 50e9},
		{"dgx-b200", 2250e12, 180 * unit.GiB, 8000e9, 900e9, 50e9},
		{"mi300x", 1307.4e12, 192 * unit.GiB, 5300e9, 448e9, 50e9},
	}
	for _, c := range cases {
		got := preset(t, c.preset, 2)
		d := got.Device
		if d.Peak.BF16 != c.peak || d.Memory != c.memory || d.Bandwidth != c.bandwidth {
			t.Errorf("%s: device %+v", c.preset, d)
		}
		if got.Levels[0].Bandwidth != c.link || got.Levels[1].Bandwidth != c.nic {
			t.Errorf("%s: links %v and %v", c.preset, got.Levels[0].Bandwidth, got.Levels[1].Bandwidth)
		}
	}
}

func TestEveryPresetIsSourcedAndRoundTrips(t *testing.T) {
	names := cluster.Presets()
	if len(names) < 16 {
		t.Fatalf("only %d presets", len(names))
	}
	for _, name := range names {
		c := preset(t, name, 1)
		if c.Name != name || c.Device.Source == "" || c.Device.Peak.BF16 == 0 {
			t.Errorf("%s: %+v", name, c)
		}
		for _, level := range c.Levels {
			if level.Source == "" {
				t.Errorf("%s: level %s has no source", name, level.Name)
			}
		}
		again, err := cluster.Parse(cluster.Encode(c))
		if diff := cmp.Diff(c, again); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// TestNodes checks how a preset is cut to size.
func TestNodes(t *testing.T) {
	cases := []struct {
		preset string
		nodes  int
		sizes  []int
	}{
		{"dgx-h100", 1, []int{8}},
		{"dgx-h100", 16, []int{8, 128}},
		{"gb200-nvl72", 2, []int{8}},
		{"gb200-nvl72", 18, []int{72}},
		{"gb200-nvl72", 128, []int{72, 512}},
		{"tpu-v5e", 64, []int{256}},
	}
	for _, c := range cases {
		got := preset(t, c.preset, c.nodes)
		if diff := cmp.Diff(c.sizes, got.Sizes()); diff != "" {
			t.Errorf("%s of %d nodes:\n%s", c.preset, c.nodes, diff)
		}
		if got.Nodes() != c.nodes || got.Devices() != c.sizes[len(c.sizes)-1] {
			t.Errorf("%s of %d nodes has %d nodes and %d devices", c.preset, c.nodes, got.Nodes(), got.Devices())
		}
	}
}

// TestSpan checks which level groups cross: neighbours stay inside a node, the data group leaves it.
func TestSpan(t *testing.T) {
	c := preset(t, "dgx-h100", 2)
	m, err := mesh.New(mesh.Degrees{mesh.TP: 4, mesh.DP: 4}, mesh.DefaultOrder())
	if err != nil {
		t.Fatal(err)
	}
	tensor := mesh.Span(m.Group(0, mesh.Of(mesh.TP)), c.Sizes())
	data := mesh.Span(m.Group(0, mesh.DenseData), c.Sizes())
	if c.Levels[tensor].Name != "nvlink" || c.Levels[data].Name != "infiniband" {
		t.Errorf("tensor group crosses level %d, data group level %d", tensor, data)
	}
	if (cluster.Cluster{Node: 1}).Devices() != 1 {
		t.Error("a cluster without levels is not one device")
	}
}

func TestPresetRefuses(t *testing.T) {
	cases := []struct {
		name  string
		nodes int
		want  string
	}{
		{"h200", 1, `cluster: unknown preset "h200"; did you mean dgx-h200?`},
		{"dgx-h10", 1, `cluster: unknown preset "dgx-h10"; did you mean dgx-h100?`},
		{"dgx-h100", 0, "cluster: dgx-h100 has no 0 nodes; use 1 to 131072 nodes of 8 devices"},
		{"tpu-v5e", 65, "cluster: tpu-v5e has no 65 nodes; use 1 to 64 nodes of 4 devices"},
	}
	for _, c := range cases {
		if _, err := cluster.Preset(c.name, c.nodes); err == nil || err.Error() != c.want {
			t.Errorf("Preset(%q, %d): %v, want %s", c.name, c.nodes, err, c.want)
		}
	}
	if _, err := cluster.Preset("cray-1", 1); err == nil || !strings.Contains(err.Error(), "dgx-a100-40gb") {
		t.Errorf("a far name does not list the known ones: %v", err)
	}
}

// TestBadFiles checks the exact words of errors: testdata/NAME.bad.json with NAME.bad.txt.
func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.bad.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.ReadFile(strings.TrimSuffix(file, ".json") + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cluster.Parse(data); err == nil || err.Error()+"\n" != string(want) {
			t.Errorf("%s:\n%v\nwant\n%s", file, err, want)
		}
	}
}

// TestValidateNaN checks that figures made in a program are checked too.
func TestValidateNaN(t *testing.T) {
	c := preset(t, "dgx-a100", 1)
	c.Device.Bandwidth = unit.BytesPerSecond(math.NaN())
	c.Levels = make([]cluster.Level, 9)
	want := "cluster: device.bandwidth is NaN; use 1 to 1e18\ncluster: has 9 levels; use at most 8"
	if err := c.Validate(); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// TestCutProperty checks that any legal number of nodes gives ascending levels that end at the devices.
func TestCutProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom(cluster.Presets()).Draw(t, "preset")
		nodes := rapid.IntRange(1, 64).Draw(t, "nodes")
		if name == "mi355x" {
			nodes = 1 // no network is published for it
		}
		c, err := cluster.Preset(name, nodes)
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
		if c.Devices() != nodes*c.Node {
			t.Fatalf("%s of %d nodes has %d devices of %d a node", name, nodes, c.Devices(), c.Node)
		}
	})
}

func FuzzParse(f *testing.F) {
	c, err := cluster.Preset("dgx-h100", 2)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(cluster.Encode(c))
	for _, seed := range []string{"", "{}", "[", `{"device":{"peak":{"bf16":1e999}}}`, `{"levels":[{"size":-1}]}`, `{"node":1,"node":2}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := cluster.Parse(data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "cluster: ") {
				t.Fatalf("error without owner: %v", err)
			}
			return
		}
		again, err := cluster.Parse(cluster.Encode(c))
		if diff := cmp.Diff(c, again); err != nil || diff != "" {
			t.Fatalf("written and read: %v\n%s", err, diff)
		}
	})
}

// TestDefaults checks what a file may leave out: a node of one device, full bisection.
func TestDefaults(t *testing.T) {
	c, err := cluster.Parse([]byte(`{"device": {"peak": {"fp32": 1e12}, "memory": "1GiB", "bandwidth": 1e10},
		"levels": [{"size": 2, "bandwidth": 1e9}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Node != 1 || c.Levels[0].Oversubscription != 1 || c.Nodes() != 2 {
		t.Errorf("%+v", c)
	}
}
