package explain

import (
	"fmt"
	"strings"

	"carve/mesh"
	"carve/parallel"
	"carve/plan"
	"carve/record"
	"carve/schedule"
	"carve/tensor"
)

// Explain records a plan and explains it. The plan must be valid; what the engine cannot run is an error.
func Explain(p plan.Plan) (*Report, error) {
	if err := parallel.Check(p); err != nil {
		return nil, err
	}
	m, err := p.Layout.Mesh()
	if err != nil {
		return nil, err
	}
	program, err := parallel.Program(p)
	if err != nil {
		return nil, err
	}
	e := &explainer{plan: p, mesh: m, program: program, places: newPlaces(p, m)}
	if err := e.record(); err != nil {
		return nil, err
	}
	e.split = learnSplits(p)
	r := e.head()
	r.Flows = e.flows()
	r.Axes = e.axes()
	r.State = e.state()
	r.Memory = e.memory()
	if r.Pipeline, err = e.pipeline(); err != nil {
		return nil, err
	}
	r.Topology = e.places.topology(r.Axes)
	return r, nil
}

// explainer is a plan with its records.
type explainer struct {
	plan    plan.Plan
	mesh    mesh.Mesh
	program *schedule.Program
	places  *places
	ranks   []record.Rank
	watched []*watch // by recorded rank
	split   splits
}

// record runs the recorded ranks.
func (e *explainer) record() error {
	ranks := e.mesh.Group(0, mesh.Of(mesh.PP))
	for _, i := range spread(len(ranks), mostRecorded) {
		w := newWatch()
		r, err := record.Run(e.plan, ranks[i], record.Options{Kernels: tensor.PortableKernels, Sink: w})
		if err != nil {
			return err
		}
		e.ranks, e.watched = append(e.ranks, r), append(e.watched, w)
	}
	return nil
}

// mostRecorded bounds the pipeline coordinates that are recorded.
const mostRecorded = 8

// spread returns at most `most` of n indices, evenly, with the first and the last.
func spread(n, most int) []int {
	k := min(n, most)
	at := make([]int, k)
	for i := range at {
		if k > 1 {
			at[i] = i * (n - 1) / (k - 1)
		}
	}
	return at
}

// head is what a report says of the plan itself.
func (e *explainer) head() *Report {
	p, machine := e.plan, e.plan.Cluster.Machine
	r := &Report{
		Model: modelName(p), Parameters: p.Model.Config.Parameters().Total(), Precision: p.Precision.String(),
		World: p.Layout.World(), Layout: p.Layout.Degrees.String(), Order: p.Layout.Order.String(),
		Cluster: machine.Name, Sequence: p.Workload.Sequence, Batch: p.Workload.GlobalBatch, Micro: p.MicroBatches(),
		Device: Device{Name: machine.Device.Name, Memory: machine.Device.Memory}, Warnings: []string{},
	}
	for _, rank := range e.ranks {
		r.Recorded = append(r.Recorded, rank.Rank)
	}
	for _, v := range p.Notes() {
		r.Warnings = append(r.Warnings, strings.TrimPrefix(v.Error(), "plan: "))
	}
	if gap := e.split.gap; gap != nil {
		r.Warnings = append(r.Warnings, "how the axes split activations could not be learned, so shapes are this rank's: "+oneLine(gap))
	}
	return r
}

// oneLine is an error without its ends of lines.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// modelName names the model for people.
func modelName(p plan.Plan) string {
	if p.Model.Name != "" {
		return p.Model.Name
	}
	return fmt.Sprintf("%s, %d layers of %d", p.Model.Config.Architecture, p.Model.Config.Layers, p.Model.Config.Hidden)
}

// memory is the peaks of the recorded ranks.
func (e *explainer) memory() []Memory {
	out := make([]Memory, len(e.ranks))
	for i, r := range e.ranks {
		out[i] = Memory{
			Rank: r.Rank, Stage: r.At[mesh.PP], Total: r.Peak.Usage.Total(), Owner: r.Peak.Owner,
			Phase: e.watched[i].phaseOf(r.Peak.Event), Categories: byCategory(r.Peak.Usage),
		}
	}
	return out
}

// pipeline is the schedule of a plan with more than one stage, else nil.
func (e *explainer) pipeline() (*Pipeline, error) {
	if e.plan.Layout.Chunks() == 1 {
		return nil, nil
	}
	program := e.program
	report, err := schedule.Check(program)
	if err != nil {
		return nil, err
	}
	times, err := schedule.Time(program, schedule.UnitCost())
	if err != nil {
		return nil, err
	}
	out := &Pipeline{
		Schedule: program.Name, Ranks: len(program.Ranks), Chunks: e.plan.Layout.Chunks(), Micro: program.Micros(),
		Layers: e.plan.StageLayers(), Bubble: times.BubbleRatio(), PeakInFlight: report.PeakInFlight, Actions: report.Actions,
	}
	if grid := schedule.Text(program, times); len(grid) < mostGrid {
		out.Grid, out.drawing = grid, schedule.SVG(program, times)
	}
	return out, nil
}

// mostGrid bounds the letters of a drawn schedule.
const mostGrid = 8 << 10
