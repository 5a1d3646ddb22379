package model

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"carve/internal/document"
)

// files holds a config.json per preset, with the keys that describe the network. Their values are those
// of the configuration published with the weights; of GPT-3 the paper's table 2.1; of Megatron's shapes
// table 1 of Narayanan et al. 2021 (and table 3 of Korthikanti et al. 2022 for 22B), written as GPT-2
// because that is how those models are built, heads tied and positions learned. tiny-moe is nobody's: it has the parts of a
// mixture of experts in a size that trains on a laptop.
//
//go:embed preset/*.json
var files embed.FS

// Presets returns the names that Preset knows, sorted.
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

// Preset returns a published model by name, such as "llama-3.1-8b". An unknown name is an error with the
// nearest known one.
func Preset(name string) (Config, error) {
	names := Presets()
	if !slices.Contains(names, name) {
		if near, ok := document.Nearest(name, names); ok {
			return Config{}, fmt.Errorf("model: unknown preset %q; did you mean %s?", document.Clip(name), near)
		}
		return Config{}, fmt.Errorf("model: unknown preset %q; use one of %s", document.Clip(name), document.Either(names))
	}
	data, err := files.ReadFile("preset/" + name + ".json")
	if err != nil {
		return Config{}, err
	}
	return Read(data)
}
