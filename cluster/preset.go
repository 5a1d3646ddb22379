package cluster

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"carve/internal/document"
)

// files holds a cluster per preset, of one domain of its innermost level. The last level's size is
// its largest: what the preset may grow to.
//
//go:embed preset/*.json
var files embed.FS

// Presets returns the names that Preset knows, sorted; this-machine is not among them.
func Presets() []string {
	entries, err := files.ReadDir("preset")
	if err != nil {
		return nil // the folder is part of the program
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = strings.TrimSuffix(entry.Name(), ".json")
	}
	slices.Sort(names)
	return names
}

// Preset returns a cluster of the given number of nodes of a known machine, such as "dgx-h100". Levels
// that the nodes do not fill are cut to size, those beyond are left out. An unknown name is an error with
// the nearest known one.
func Preset(name string, nodes int) (Cluster, error) {
	c, err := Largest(name)
	if err != nil {
		return Cluster{}, err
	}
	if most := c.Devices() / c.Node; nodes < 1 || nodes > most {
		return Cluster{}, fmt.Errorf("cluster: %s has no %d nodes; use 1 to %d nodes of %d devices", name, nodes, most, c.Node)
	}
	return c.cut(nodes * c.Node), nil
}

// Largest returns a known machine with as many nodes as it may have.
func Largest(name string) (Cluster, error) {
	names := Presets()
	if !slices.Contains(names, name) {
		if near, ok := document.Nearest(name, append(names, ThisMachine)); ok {
			return Cluster{}, fmt.Errorf("cluster: unknown preset %q; did you mean %s?", document.Clip(name), near)
		}
		return Cluster{}, fmt.Errorf("cluster: unknown preset %q; use %s", document.Clip(name), document.Either(append(names, ThisMachine)))
	}
	data, err := files.ReadFile("preset/" + name + ".json")
	if err != nil {
		return Cluster{}, err
	}
	return Parse(data)
}

// cut returns c with the given number of devices, at most its own.
func (c Cluster) cut(devices int) Cluster {
	for i, level := range c.Levels {
		if level.Size >= devices {
			c.Levels = append(slices.Clone(c.Levels[:i]), level)
			c.Levels[i].Size = devices
			return c
		}
	}
	return c
}
