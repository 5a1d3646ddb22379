package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"carve/cluster"
	"carve/internal/document"
	"carve/machine"
	"carve/mesh"
	"carve/model"
	"carve/plan"
	"carve/train"
	"carve/unit"
)

// makePlan is the plan that the flags describe, checked, and the time that it shall take, or 0.
func (o trainOptions) makePlan() (plan.Plan, unit.Seconds, error) {
	p, err := o.basePlan()
	if err != nil {
		return p, 0, err
	}
	if err := o.changePlan(&p); err != nil {
		return p, 0, err
	}
	length := unit.Seconds(o.time.Seconds())
	if o.plan == "" && !o.given("steps") && !o.given("time") {
		length = train.DefaultTime
	}
	return p, length, o.located(train.Check(p))
}

// located says of every refusal where in the plan file its key stands, if it does.
func (o trainOptions) located(err error) error {
	all, ok := err.(interface{ Unwrap() []error })
	text, unread := readSmall(o.plan)
	if !ok || unread != nil { // no list, or no file
		return err
	}
	var faults []error
	for _, fault := range all.Unwrap() {
		if r, ok := errors.AsType[*train.Refusal](fault); ok {
			if line, column, ok := plan.Place(text, r.Key); ok {
				fault = fmt.Errorf("%s: line %d, column %d: %w", o.plan, line, column, fault)
			}
		}
		faults = append(faults, fault)
	}
	return errors.Join(faults...)
}

// basePlan is the plan of the file, or the default one for this machine.
func (o trainOptions) basePlan() (plan.Plan, error) {
	if o.plan != "" {
		return readPlan(o.plan)
	}
	cores := o.cores
	if cores <= 0 {
		cores = runtime.GOMAXPROCS(0)
	}
	return train.DefaultPlan(cores), nil
}

// readPlan reads a plan file. Paths in it are relative to the file.
func readPlan(path string) (plan.Plan, error) {
	text, err := readSmall(path)
	if err != nil {
		return plan.Plan{}, fmt.Errorf("plan: %w; name an existing plan file", err)
	}
	p, err := plan.Load(text, func(name string) ([]byte, error) {
		if name == cluster.ThisMachine {
			return measurement()
		}
		return readSmall(beside(path, name))
	})
	if err != nil {
		return p, inFile(path, err)
	}
	for i := range p.Workload.Data {
		p.Workload.Data[i].Path = beside(path, p.Workload.Data[i].Path)
	}
	if t := &p.Workload.Tokenizer; t.Path != "" {
		t.Path = beside(path, t.Path)
	}
	return p, nil
}

// measurement is that of this machine, where plans look for it; nil when there is none.
func measurement() ([]byte, error) {
	cache, err := cacheFolder("")
	if err != nil {
		return nil, nil //nolint:nilerr // where no folder is, no measurement is
	}
	return readThisMachine(cache)
}

// beside is a path that is written in a file.
func beside(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// inFile puts the file's name before every line of an error.
func inFile(path string, err error) error {
	lines := strings.Split(err.Error(), "\n")
	for i := range lines {
		lines[i] = path + ": " + lines[i]
	}
	return fmt.Errorf("%s", strings.Join(lines, "\n"))
}

// changePlan applies the flags that change the plan.
func (o trainOptions) changePlan(p *plan.Plan) error {
	if err := o.changeModel(p); err != nil {
		return err
	}
	if o.given("data") {
		p.Workload.Data = []plan.Source{train.SourceOf(o.data)}
	}
	if o.given("seed") {
		p.Seed = o.seed
	}
	if o.given("precision") {
		var err error
		if p.Precision, err = precision(o.precision); err != nil {
			return err
		}
	}
	return o.changeSize(p)
}

// changeModel replaces the model.
func (o trainOptions) changeModel(p *plan.Plan) (err error) {
	if !o.given("model") {
		return nil
	}
	if !strings.ContainsAny(o.model, `/\`) && !strings.HasSuffix(o.model, ".json") {
		p.Model.Origin, p.Model.Name = plan.FromPreset, o.model
		p.Model.Config, err = model.Preset(o.model)
		return err
	}
	text, err := readSmall(o.model)
	if err != nil {
		return fmt.Errorf("model: %w; name a preset or an existing config.json", err)
	}
	p.Model.Origin, p.Model.Name = plan.FromFile, o.model
	if p.Model.Config, err = model.Read(text); err != nil {
		return inFile(o.model, err)
	}
	return nil
}

// changeSize sets the numbers of ranks and steps.
func (o trainOptions) changeSize(p *plan.Plan) error {
	if o.given("ranks") {
		if o.ranks < 1 || o.ranks > maxRanks {
			return fmt.Errorf("--ranks %d; use 1 to %d", o.ranks, maxRanks)
		}
		if p.Layout.Degrees[mesh.DP] = o.ranks; o.plan == "" {
			*p = train.WithRanks(*p, o.ranks)
		}
	}
	if o.given("time") && o.time <= 0 {
		return fmt.Errorf("--time %v; use more than 0, such as 90s", o.time)
	}
	if !o.given("steps") {
		return nil
	}
	if o.steps < 1 {
		return fmt.Errorf("--steps %d; use 1 or more", o.steps)
	}
	if o.plan == "" {
		*p = train.WithSteps(*p, o.steps)
		return nil
	}
	p.Workload.Steps, p.Workload.Tokens = o.steps, 0
	p.Optimizer.Warmup = min(p.Optimizer.Warmup, o.steps)
	return nil
}

// precision reads a precision's name.
func precision(name string) (plan.Precision, error) {
	for _, p := range precisions() {
		if p.String() == name {
			return p, nil
		}
	}
	return 0, fmt.Errorf("--precision %q is not known%s", document.Clip(name), document.Suggest(name, precisionNames()))
}

// precisions are those that a flag may name.
func precisions() []plan.Precision { return []plan.Precision{plan.FP32, plan.BF16, plan.FP64} }

// precisionNames are their names.
func precisionNames() (names []string) {
	for _, p := range precisions() {
		names = append(names, p.String())
	}
	return names
}

// availableMemory is what this process may take of the machine's memory; 0 when it is not known.
func availableMemory() unit.Bytes {
	m := machine.ReadMemory()
	if m.Limit > 0 && m.Limit < m.Available {
		return m.Limit
	}
	return m.Available
}

// cacheFolder is where prepared text is kept.
func cacheFolder(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	if env := os.Getenv("CARVE_CACHE"); env != "" {
		return env, nil
	}
	root, err := os.UserCacheDir()
	if err != nil {
		return "", badInput(fmt.Errorf("there is no cache folder: %w; give one with --cache", err))
	}
	return filepath.Join(root, "carve"), nil
}
