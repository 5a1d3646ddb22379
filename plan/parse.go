package plan

import (
	"errors"
	"fmt"
	"strings"

	"carve/cluster"
	"carve/internal/document"
	"carve/mesh"
	"carve/model"
	"carve/unit"
)

// owner starts every error of this package.
const owner = "plan"

// Files returns the contents of a file that a plan names by its path, such as a config.json or a
// cluster, or for the name cluster.ThisMachine the measurement of this machine; nil for that name means
// that it has not been measured. Paths are as in the plan.
type Files func(name string) ([]byte, error)

// Load reads a plan and checks it: Parse, then Validate, whose violations get line and column.
func Load(data []byte, files Files) (Plan, error) {
	p, n, err := parse(data, files)
	if err != nil {
		return Plan{}, err
	}
	found := p.violations()
	for _, v := range found {
		v.locate(n)
	}
	if len(found) > 0 {
		return Plan{}, found
	}
	return p, nil
}

// Parse reads a plan file and fills in every default. It checks form, not rules: the error holds every
// unknown key, wrong type, unreadable file and unknown preset, each with line and column.
func Parse(data []byte, files Files) (Plan, error) {
	p, _, err := parse(data, files)
	return p, err
}

// Place returns where a plan file has a key, such as "layout.zero.stage", if it has it.
func Place(data []byte, key string) (line, column int, ok bool) {
	n, err := parseYAML(data)
	if err != nil {
		return 0, 0, false
	}
	return n.Place(key)
}

// parse reads a plan file, and returns its tree as well.
func parse(data []byte, files Files) (Plan, *document.Node, error) {
	n, err := parseYAML(data)
	if err != nil {
		return Plan{}, nil, fmt.Errorf("plan: %w", err)
	}
	d := draft{Plan: Default()}
	r := document.NewReader(owner)
	d.codec().Decode(r, n)
	d.complete(r, n, files)
	if err := r.Err(); err != nil {
		return Plan{}, nil, err
	}
	return d.Plan, n, nil
}

// Encode writes p whole, so that Parse gives it back.
func Encode(p Plan) []byte {
	d := draft{Plan: p, version: Version}
	return writeYAML(d.codec().Encode())
}

// draft is a Plan while it is read.
type draft struct {
	Plan
	version   int
	modelAt   *document.Node // where the model is named; nil if nowhere
	clusterAt *document.Node
}

// Default returns what a plan file that says nothing means; model, sequence and batch are left to Parse,
// which derives them from the rest.
func Default() Plan {
	return Plan{
		Workload: Workload{Validation: Validation{Fraction: 0.01, Interval: 100, Batches: 4}},
		Cluster:  Cluster{Preset: cluster.ThisMachine, Nodes: 1},
		Layout: Layout{
			Degrees:          mesh.Degrees{1, 1, 1, 1, 1},
			Order:            mesh.DefaultOrder(),
			Tensor:           Tensor{Chunks: 1},
			SequenceParallel: true,
			Zero:             Zero{Stage: ShardOptimizer, Bucket: 25 * unit.MiB, Prefetch: 1, Reshard: true},
			Pipeline:         Pipeline{Schedule: OneForwardOneBackward, Virtual: 1},
			Experts:          Experts{Capacity: 1.25, Tensor: 1},
		},
		MicroBatch: 1,
		Optimizer: Optimizer{
			LearningRate: 3e-4, MinRatio: 0.1, Decay: 0.2,
			Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, Momentum: 0.95, WeightDecay: 0.1, Clip: 1,
		},
		Checkpoint: Checkpoint{Every: 1000, Keep: 2},
		Logging:    Logging{Interval: 10},
		Seed:       1,
	}
}

// complete resolves names and fills in what depends on other values.
func (d *draft) complete(r *document.Reader, n *document.Node, files Files) {
	if n.Kind != document.Mapping {
		return
	}
	switch {
	case n.Get("version") == nil:
		r.Fault(n, "version is missing; write version: %d", Version)
	case d.version > Version:
		r.Fault(n.Get("version"), "version %d is not known; use %d, or a newer carve", d.version, Version)
	}
	d.completeModel(r, n, files)
	d.completeCluster(r, files)
	d.completeWorkload(r, n)
}

// completeModel resolves the model's name.
func (d *draft) completeModel(r *document.Reader, n *document.Node, files Files) {
	if d.modelAt == nil {
		if n.Get("model") == nil {
			r.Fault(n, "model is missing; name a preset, a config.json or write a mapping")
		}
		return
	}
	var err error
	r.In("model", func() {
		switch d.Model.Origin {
		case FromPreset:
			d.Model.Config, err = model.Preset(d.Model.Name)
		case FromFile:
			d.Model.Config, err = readFile(files, d.Model.Name, model.Read)
		case Inline:
		}
		faults(r, d.modelAt, err)
	})
}

// completeCluster resolves the cluster's name.
func (d *draft) completeCluster(r *document.Reader, files Files) {
	at := d.clusterAt
	if at == nil {
		at = &document.Node{}
	}
	var err error
	r.In("cluster", func() {
		switch {
		case d.Cluster.File != "":
			d.Cluster.Machine, err = readFile(files, d.Cluster.File, ParseCluster)
		case d.Cluster.Preset == cluster.ThisMachine:
			d.Cluster.Machine, err = thisMachine(files)
		default:
			d.Cluster.Machine, err = cluster.Preset(d.Cluster.Preset, d.Cluster.Nodes)
		}
		faults(r, at, err)
	})
}

// Defaults of a workload, where nothing else says what they should be.
const (
	defaultSequence = 2048
	defaultBatch    = 64
	defaultSteps    = 1000
	defaultWarmup   = 100
)

// completeWorkload fills in sequence, batch, length of the run, warm-up and tokenizer.
func (d *draft) completeWorkload(r *document.Reader, n *document.Node) {
	if r.Failed() {
		return
	}
	w := &d.Workload
	if w.Sequence == 0 {
		w.Sequence = min(d.Model.Config.Context, defaultSequence)
	}
	if w.GlobalBatch == 0 {
		share := max(d.MicroBatch, 1) * d.Layout.DataParallel()
		w.GlobalBatch = (defaultBatch + share - 1) / share * share
	}
	if w.Steps == 0 && w.Tokens == 0 {
		w.Steps = defaultSteps
	}
	if at := n.Get("optimizer"); at == nil || at.Get("warmup") == nil {
		d.Optimizer.Warmup = min(defaultWarmup, d.Steps()/10)
	}
	if at := n.Get("workload"); at == nil || at.Get("tokenizer") == nil {
		w.Tokenizer = Tokenizer{Kind: TrainedBPE, Vocab: d.Model.Config.Vocab}
		if d.Model.Config.Vocab < byteVocab {
			w.Tokenizer = Tokenizer{}
		}
	}
}

// byteVocab is the vocabulary of the byte tokenizer: the bytes and one token that ends a text.
const byteVocab = 257

// ParseCluster reads a cluster file, which is YAML or JSON.
func ParseCluster(data []byte) (cluster.Cluster, error) {
	n, err := parseYAML(data)
	if err != nil {
		return cluster.Cluster{}, fmt.Errorf("cluster: %w", err)
	}
	return cluster.Read(n)
}

// thisMachine returns the measurement of this machine, or nothing where there is none.
func thisMachine(files Files) (cluster.Cluster, error) {
	if files == nil {
		return cluster.Cluster{}, nil
	}
	data, err := files(cluster.ThisMachine)
	if err != nil || data == nil {
		return cluster.Cluster{}, err
	}
	return ParseCluster(data)
}

// readFile reads and decodes a file that a plan names.
func readFile[T any](files Files, name string, decode func([]byte) (T, error)) (T, error) {
	var none T
	if files == nil {
		return none, fmt.Errorf("%s: files cannot be read here; use a preset", name)
	}
	data, err := files(name)
	if err != nil {
		return none, err
	}
	value, err := decode(data)
	if err != nil {
		return none, &fileError{name, err}
	}
	return value, nil
}

// fileError names the file that an error is about, on each of its lines.
type fileError struct {
	name string
	err  error
}

// Error puts the name before every line.
func (e *fileError) Error() string {
	lines := strings.Split(e.err.Error(), "\n")
	for i, line := range lines {
		lines[i] = e.name + ": " + line
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the error itself.
func (e *fileError) Unwrap() error { return e.err }

// faults records every line of an error at a node.
func faults(r *document.Reader, n *document.Node, err error) {
	if err == nil {
		return
	}
	text := err.Error()
	if _, ok := errors.AsType[*fileError](err); !ok {
		for _, name := range []string{"model: ", "cluster: "} {
			text = strings.TrimPrefix(text, name)
		}
	}
	for line := range strings.SplitSeq(text, "\n") {
		r.Fault(n, "%s", line)
	}
}

// codec reads the name of a preset, the path of a config.json, or an inline mapping.
func (m *Model) codec(at **document.Node) document.Codec {
	inline := model.Inline(&m.Config)
	return document.Codec{
		Decode: func(r *document.Reader, n *document.Node) {
			*at = n
			*m = Model{}
			switch {
			case n.Kind == document.Mapping:
				m.Origin = Inline
				inline.Decode(r, n)
			case n.Kind == document.String && isPath(n.Text):
				m.Origin, m.Name = FromFile, n.Text
			case n.Kind == document.String && n.Text != "":
				m.Name = n.Text
			default:
				*at = nil
				r.Fault(n, "want a preset, the path of a config.json or a mapping, have %s", describe(n))
			}
		},
		Encode: func() *document.Node {
			if m.Origin == Inline {
				return inline.Encode()
			}
			return text(m.Name)
		},
	}
}

// isPath tells a path from a name: it has a slash or ends in .json.
func isPath(name string) bool {
	return strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".json")
}

// codec reads {preset, nodes} or {file}.
func (c *Cluster) codec(at **document.Node) document.Codec {
	preset := func() bool { return c.File == "" }
	file := func() bool { return c.File != "" }
	m := document.Map(
		field("preset", document.When(preset, document.Text(&c.Preset))),
		field("nodes", document.When(preset, document.AtLeast(1, &c.Nodes))),
		field("file", document.When(file, document.Text(&c.File))),
	)
	decode := m.Decode
	m.Decode = func(r *document.Reader, n *document.Node) {
		*at = n
		decode(r, n)
		if n.Get("file") == nil {
			return
		}
		if n.Get("preset") != nil || n.Get("nodes") != nil {
			r.Fault(n, "file stands beside preset or nodes; keep one of them")
		}
		c.Preset, c.Nodes = "", 0
	}
	return m
}
