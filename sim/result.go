package sim

import (
	"carve/cost"
	"carve/model"
	"carve/parallel"
	"carve/plan"
	"carve/unit"
)

// Of simulates one step of a plan on a machine. The plan must be valid and one that the engine runs.
func Of(p plan.Plan, m cost.Machine, o Options) (*Result, error) {
	work, err := Price(p, m)
	if err != nil {
		return nil, err
	}
	program, err := parallel.Program(p)
	if err != nil {
		return nil, err
	}
	return Run(program, work, o)
}

// Bubble is the part of all stages' time that is bubble, 0 to 1.
func (r *Result) Bubble() float64 {
	var sum unit.Seconds
	for _, s := range r.Stages {
		sum += s.Bubble
	}
	return float64(sum / (r.Step * unit.Seconds(len(r.Stages))))
}

// Exposed is the time in a step that a rank stands still for each axis, on average over the stages.
func (r *Result) Exposed() (mean [AxisCount]unit.Seconds) {
	for _, s := range r.Stages {
		for a, e := range s.Exposed {
			mean[a] += e / unit.Seconds(len(r.Stages))
		}
	}
	return mean
}

// MFU is the model's operations, with causal attention and no recomputation, over what the devices could do at the peak of the
// plan's precision meanwhile.
func (r *Result) MFU(p plan.Plan, m cost.Machine) float64 {
	useful := float64(p.Model.Config.TrainingFLOPs(p.Workload.Sequence, model.Causal).Total()) * float64(p.StepTokens())
	return useful / r.capacity(p, m)
}

// HFU is the same for the products and attention that the devices really carry out.
func (r *Result) HFU(p plan.Plan, m cost.Machine) float64 {
	var done float64
	for _, s := range r.Stages {
		done += float64(s.FLOPs)
	}
	return done * float64(p.Layout.World()/len(r.Stages)) / r.capacity(p, m)
}

// capacity is the operations of all devices at their peak in a step.
func (r *Result) capacity(p plan.Plan, m cost.Machine) float64 {
	return float64(m.Peak(parallel.DType(p.Precision))) * float64(r.Step) * float64(p.Layout.World())
}

// Throughput is tokens a second of one device.
func (r *Result) Throughput(p plan.Plan) float64 {
	return float64(p.StepTokens()) / float64(r.Step) / float64(p.Layout.World())
}
