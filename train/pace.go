package train

import (
	"context"

	"carve/optim"
	"carve/plan"
	"carve/tensor"
	"carve/unit"
)

// looks is how often a run of a given time validates on the way, and saves how often it saves.
const (
	looks = 4
	saves = 2
)

// pace turns a time into a number of steps. The run then is the run of that number: a plan that has it gives the
// same bytes on every machine.
type pace struct {
	budget unit.Seconds
	steps  int // rehearsed, without the first, in which memory is touched for the first time
	spent  unit.Seconds
}

// observe is told the length of a rehearsed step.
func (p *pace) observe(step int, length unit.Seconds) {
	if step > 0 {
		p.steps++
		p.spent += length
	}
}

// enough tells whether the rehearsal has taken its share of the time.
func (p *pace) enough() bool {
	const share, least = 0.03, 2
	return p.steps >= least && p.spent >= share*p.budget
}

// fit is the number of steps that fill the time that is left after elapsed, if each other pause that comes with
// the steps takes reserve in all. A machine so busy that nearly nothing is left still trains for half of the budget, and
// so overruns it: a run of a step or two would teach nobody anything.
func (p *pace) fit(elapsed, reserve unit.Seconds) int {
	length := max(p.spent/unit.Seconds(max(p.steps, 1)), 1e-6)
	left := max(p.budget-elapsed-reserve, p.budget/2)
	return max(int(left/length), 1)
}

// WithSteps is a plan of that many steps, and what follows from their number: a warm-up of a tenth at most, and
// looks and saves spread over the run.
func WithSteps(p plan.Plan, steps int) plan.Plan {
	p.Workload.Steps, p.Workload.Tokens = steps, 0
	p.Optimizer.Warmup = min(p.Optimizer.Warmup, steps/10)
	if p.Workload.Validation.Interval > 0 {
		p.Workload.Validation.Interval = max(1, steps/looks)
	}
	if p.Checkpoint.Every > 0 {
		p.Checkpoint.Every = max(1, steps/saves)
	}
	return p
}

// rehearse runs steps with a learning rate of 0 to learn how long they take, and chooses the plan's number of steps.
// Afterwards the state is what it was, to the bit: a rate of 0 changes no parameter, and the optimizer forgets.
func (w *worker) rehearse(ctx context.Context) error {
	if err := w.openSamples(ctx, nil); err != nil {
		return err
	}
	p := &pace{budget: w.job.budget}
	for stop, n := false, 0; !stop; n++ {
		start := w.job.now()
		if _, _, err := w.step(ctx, 0); err != nil {
			return err
		}
		if err := w.publish(w.leads() && (p.enough() || w.asked()), 0); err != nil {
			return err
		}
		p.observe(n, seconds(w.job.now()-start))
		stop = w.board.first(stopSlot) != 0
	}
	w.forget()
	return w.agree(p)
}

// forget takes the optimizer back to before its first step. The parameters' masters are states too, but equal to what
// they were.
func (w *worker) forget() {
	for _, h := range w.holdings {
		if h.kind == optimizerFile && h.Kind != optim.Master {
			w.rank.Dev.Fill(h.Tensor, 0)
		}
	}
	w.state.Restore(0)
}

// agree tells every rank the number of steps that rank 0 found.
func (w *worker) agree(p *pace) error {
	steps := 0
	if w.leads() {
		elapsed := seconds(w.job.now() - w.job.began)
		steps = p.fit(elapsed, (looks+1)*w.report.valTime+(saves+1)*w.saveEstimate())
	}
	if err := w.publish(false, steps); err != nil {
		return err
	}
	w.plan = WithSteps(w.plan, int(w.board.first(stepsSlot)))
	w.rates = rates(w.plan)
	if w.leads() {
		return w.report.settle(w.plan)
	}
	return nil
}

// saveEstimate is the time of a checkpoint that was never made: the bytes of the state on a slow disk.
func (w *worker) saveEstimate() unit.Seconds {
	const disk unit.BytesPerSecond = 200e6
	live := w.rank.Arena.Live()
	return (live.Of(tensor.Parameter) + live.Of(tensor.Optimizer)).At(disk)
}
