package train

import (
	"math"

	"carve/model"
	"carve/nn"
	"carve/plan"
	"carve/tensor"
	"carve/unit"
)

// report is the run as rank 0 tells it: it turns results into events. It belongs to rank 0's goroutine.
type report struct {
	sink Sink
	plan plan.Plan
	peak unit.FLOPsPerSecond // of all cores of the run; 0 when not known
	keep func(plan.Plan) error

	training unit.Seconds
	resumed  int // steps done before this process
	world    int
	last     Step
	val      float64      // NaN before the first
	valTime  unit.Seconds // of the last validation
	saveTime unit.Seconds // of the last checkpoint
}

// stepResult is what the ranks found in one step.
type stepResult struct {
	step             int
	norm, loss, rate float64
	elapsed          unit.Seconds
	exposed, waited  unit.Seconds
	memory           tensor.Usage
}

// begin says what the run consists of, when every rank is ready for the first step.
func (r *report) begin(w *worker) {
	r.resumed, r.world = w.state.Steps(), w.world.Size()
	r.last.Step, r.last.Tokens = r.resumed, int64(r.resumed)*int64(r.plan.StepTokens())
	r.sink.Event(Started{
		Path: w.job.dir.Path, Resumed: r.resumed, Steps: r.plan.Steps(), World: w.world.Size(), Threads: w.rank.Dev.Threads(),
		Parameters: r.plan.Model.Config.Parameters().Total(), StepTokens: int(r.plan.StepTokens()), Memory: w.rank.Arena.Live(),
	})
}

// experts reports the load of experts in a step that is reported.
func (r *report) experts(step int, loads []nn.ExpertLoad, ranks int) {
	if len(loads) == 0 || !r.reports(step) {
		return
	}
	e := Experts{Step: step, Layers: loads}
	for _, l := range loads {
		e.Imbalance, e.Straggler = max(e.Imbalance, l.Imbalance()), max(e.Straggler, l.Straggler(ranks))
		e.Dropped += l.Dropped
	}
	r.sink.Event(e)
}

// reports tells whether a step is one of those that are told.
func (r *report) reports(step int) bool {
	return step == r.plan.Steps() || every(step, r.plan.Logging.Interval)
}

// step reports a step.
func (r *report) step(s stepResult) {
	r.training += s.elapsed
	speed := float64(r.plan.StepTokens()) / float64(s.elapsed)
	r.last = Step{
		Step: s.step, Steps: r.plan.Steps(), Loss: s.loss, GradNorm: s.norm, Rate: s.rate,
		Tokens: int64(s.step) * int64(r.plan.StepTokens()), Elapsed: s.elapsed,
		TokensPerSecond: speed, MFU: r.utilisation(speed),
		ExposedComm: s.exposed, DataWait: s.waited, Memory: s.memory, Remaining: r.remaining(s.step),
	}
	if r.reports(s.step) {
		r.sink.Event(r.last)
	}
}

// utilisation is the model FLOPs utilisation at a speed in tokens per second: without recomputation, over the peak of
// the cores in use.
func (r *report) utilisation(speed float64) float64 {
	if r.peak <= 0 {
		return 0
	}
	perToken := r.plan.Model.Config.TrainingFLOPs(r.plan.Workload.Sequence, model.Causal).Total()
	return speed * float64(perToken) / float64(r.peak)
}

// remaining estimates the time to the end from the mean step of this process and the last validation and checkpoint.
func (r *report) remaining(step int) unit.Seconds {
	left := r.plan.Steps() - step
	mean := r.training / unit.Seconds(max(step-r.resumed, 1))
	return unit.Seconds(left)*mean + r.pauses(step, r.plan)
}

// pauses estimates the time of the validations and checkpoints that come after a step.
func (r *report) pauses(step int, p plan.Plan) unit.Seconds {
	return times(step, p.Steps(), p.Workload.Validation.Interval)*r.valTime + times(step, p.Steps(), p.Checkpoint.Every)*r.saveTime
}

// times is how often something at an interval, and at the end, is due after a step.
func times(step, steps, interval int) unit.Seconds {
	if interval == 0 {
		return 1
	}
	n := steps/interval - step/interval
	if steps%interval != 0 {
		n++
	}
	return unit.Seconds(n)
}

// settle takes the plan with the number of steps that was chosen, and writes it down.
func (r *report) settle(p plan.Plan) error {
	r.plan = p
	return r.keep(p)
}

// validation reports the loss on held-back text.
func (r *report) validation(v Validation) {
	v.Perplexity = math.Exp(v.Loss)
	r.val, r.valTime = v.Loss, v.Elapsed
	r.sink.Event(v)
}

// saved reports a checkpoint.
func (r *report) saved(s Saved) {
	r.saveTime = s.Elapsed
	r.sink.Event(s)
}

// summary is how the run stands.
func (r *report) summary() Summary {
	s := Summary{
		Outcome: Completed, Steps: r.last.Step, FinalLoss: r.last.Loss, ValLoss: r.val, Tokens: r.last.Tokens,
		World: r.world, Peak: r.last.Memory,
	}
	if here := s.Steps - r.resumed; here > 0 {
		s.TokensPerSecond = float64(here) * float64(r.plan.StepTokens()) / float64(r.training)
		s.MFU = r.utilisation(s.TokensPerSecond)
	}
	if s.Steps < r.plan.Steps() {
		s.Outcome = Interrupted
	}
	return s
}
