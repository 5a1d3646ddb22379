package train

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"carve/cluster"
	"carve/data"
	"carve/plan"
)

// portable is a plan that means the same wherever it is read from: the model is written out, paths are absolute, token
// shards are named as such, and the cluster is the machine that it runs on.
func portable(p plan.Plan) plan.Plan {
	if p.Model.Origin == plan.FromFile {
		p.Model = plan.Model{Origin: plan.Inline, Config: p.Model.Config}
	}
	if p.Cluster.File != "" {
		p.Cluster = plan.Cluster{Preset: cluster.ThisMachine, Nodes: 1}
	}
	sources := make([]plan.Source, len(p.Workload.Data))
	for i, s := range p.Workload.Data {
		s.Path = absolute(s.Path)
		sources[i] = known(s)
	}
	if len(sources) > 0 {
		p.Workload.Data = sources
	}
	p.Workload.Tokenizer.Path = absolute(p.Workload.Tokenizer.Path)
	return p
}

// SourceOf is the source of samples at a path.
func SourceOf(path string) plan.Source { return known(plan.Source{Path: path, Weight: 1}) }

// known names token shards as such, where the plan leaves it to carve.
func known(s plan.Source) plan.Source {
	if s.Kind == plan.AutoData && data.IsShards(s.Path) {
		s.Kind = plan.Shards
	}
	return s
}

// learnsTokens tells whether a portable plan learns from token shards, not from text.
func learnsTokens(p plan.Plan) bool {
	return len(p.Workload.Data) > 0 && p.Workload.Data[0].Kind == plan.Shards
}

// NameOf is a short name for runs of a plan: that of the preset, or the architecture and size of the model.
func NameOf(p plan.Plan) string {
	if p.Model.Origin == plan.FromPreset && p.Model.Name != "" {
		return p.Model.Name
	}
	c := p.Model.Config
	return strings.ToLower(fmt.Sprintf("%v-%v", c.Architecture, c.Parameters().Total()))
}

// absolute is a path that does not depend on the folder the program runs in.
func absolute(path string) string {
	if path == "" {
		return path
	}
	if full, err := filepath.Abs(path); err == nil {
		return full
	}
	return path
}

// ReadPlan reads the plan of a run's folder.
func ReadPlan(path string) (plan.Plan, error) {
	file := filepath.Join(path, planFile)
	text, err := os.ReadFile(file)
	if err != nil {
		return plan.Plan{}, fmt.Errorf("train: %w", err)
	}
	p, err := plan.Load(text, nil)
	if err != nil {
		return plan.Plan{}, fmt.Errorf("train: %s: %w", file, err)
	}
	return p, nil
}
