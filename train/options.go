package train

import (
	"errors"
	"fmt"

	"carve/cluster"
	"carve/comm"
	"carve/parallel"
	"carve/plan"
	"carve/tensor"
	"carve/unit"
)

// Options say how a plan is run on this machine. They have no influence on the result, but for Time.
type Options struct {
	// Plan is what to compute. A run that is resumed has its own: see [Resume].
	Plan plan.Plan
	// Directory is the run's folder. The caller opens and closes it.
	Directory *Directory
	// Time is how long training shall take; it chooses the plan's number of steps by measuring some. 0 leaves the plan's.
	Time unit.Seconds
	// Cores is the number of cores to use, shared by the ranks; 0 means all that Go may use.
	Cores int
	// Peak is the arithmetic of one core, for the utilisation; zero means that it is not known.
	Peak tensor.Ceiling
	// ArenaLimit is the most memory of a rank; 0 is no limit.
	ArenaLimit unit.Bytes
	// Memory is what this machine has available for all ranks together; 0 means that it is not known.
	Memory unit.Bytes
	// HangLimit is how long a rank may wait for another in one operation before the run counts as hung; 0 is no limit.
	HangLimit unit.Seconds
	// Emulate, if it names levels, is the links that operations between ranks take the time of.
	Emulate comm.EmulateOptions
	// Cache is the folder for prepared data.
	Cache string
	// Stop, when closed, ends the run after the step under way, with a checkpoint. It may be nil.
	Stop <-chan struct{}
	// Sink is told what happens. It may be nil.
	Sink Sink
}

// InputError is the fault of what the user gave: a plan that cannot run, data that cannot be read, a run that cannot be
// resumed. Nothing was started.
type InputError struct{ Err error }

func (e *InputError) Error() string { return e.Err.Error() }

// Unwrap is the fault itself.
func (e *InputError) Unwrap() error { return e.Err }

// input marks an error as the user's to correct.
func input(err error) error {
	if err == nil {
		return nil
	}
	return &InputError{err}
}

// nobody is a sink that listens to nothing.
type nobody struct{}

func (nobody) Event(Event) {}

// tee tells every event to two sinks.
type tee struct{ first, second Sink }

func (t tee) Event(e Event) {
	t.first.Event(e)
	t.second.Event(e)
}

// Refusal is one part of a legal plan that this program cannot run.
type Refusal struct {
	Key     string // of the plan file: "cluster.nodes"
	Message string // with the remedy
}

func (e *Refusal) Error() string { return "train: " + e.Message }

// Check returns everything in a plan that this program cannot run, each a [*Refusal], and nil when it can run it.
func Check(p plan.Plan) error {
	if err := p.Validate(); err != nil {
		return err
	}
	var faults []error
	refuse := func(wrong bool, key, format string, args ...any) {
		if wrong {
			faults = append(faults, &Refusal{key, fmt.Sprintf(format, args...)})
		}
	}
	refuse(len(p.Workload.Data) > 1, "workload.data", "workload.data names %d sources, and blends of several are not read yet; keep one, such as a folder that holds all", len(p.Workload.Data))
	for i, source := range p.Workload.Data {
		refuse(source.Kind == plan.Parquet, fmt.Sprintf("workload.data.%d.kind", i), "parquet (%s) is planned but not read yet; use text, jsonl or shards", source.Path)
	}
	refuse(p.Engine == plan.Local && p.Cluster.Preset == cluster.ThisMachine && p.Cluster.Nodes > 1,
		"cluster.nodes", "cluster.nodes %d: engine local runs every rank on this one machine; use nodes 1", p.Cluster.Nodes)
	refuse(p.Engine == plan.MPI, "engine", "engine mpi is planned but not run yet; use local")
	return errors.Join(append(faults, parallel.Check(p))...)
}

// Notes says what is legal in a plan but worth knowing before it is run.
func Notes(p plan.Plan) (notes []error) {
	for _, v := range p.Notes() {
		notes = append(notes, v)
	}
	if p.Engine == plan.Local && p.Cluster.Preset != cluster.ThisMachine {
		notes = append(notes, fmt.Errorf("train: engine local runs all %d ranks on this machine; the plan's cluster (%s) is not used",
			p.Layout.World(), clusterName(p.Cluster)))
	}
	return notes
}

// clusterName is what a plan calls its cluster.
func clusterName(c plan.Cluster) string {
	if c.File != "" {
		return c.File
	}
	return fmt.Sprintf("%s, nodes: %d", c.Preset, c.Nodes)
}
