package train

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"carve/checkpoint"
	"carve/comm"
	"carve/data"
	"carve/nn"
	"carve/optim"
	"carve/parallel"
	"carve/plan"
	"carve/tensor"
	"carve/unit"
)

// worker is one rank: its memory, its device, its part of the model and its place among the others. One
// goroutine runs it from beginning to end.
type worker struct {
	job    *job
	plan   plan.Plan // the job's, with this rank's knowledge of the number of steps
	end    *comm.Observed
	world  *comm.Group
	engine *parallel.Engine

	// Of the engine:
	rank  *nn.Rank
	state *optim.State

	rates    optim.Schedule
	samples  *data.Loader
	held     *data.Evaluation // nil when nothing is held back
	board    *board
	pending  *checkpoint.Pending // being written, on rank 0
	holdings []held              // what this rank has of the state
	report   *report             // on rank 0
	timeline *timeline

	waited  time.Duration // for the samples of this step
	exposed unit.Seconds  // that communication kept the rank waiting before this step
	loss    float64       // of this step
	loads   []nn.ExpertLoad
	at      place
}

// place is where a worker is, for the error of what fails there.
type place struct {
	step      int // 0 before the first
	operation string
}

// build makes the rank with the initial weights, its optimizer and the buffers of a step.
func (w *worker) build() (err error) {
	w.enter(building)
	w.engine, err = parallel.New(w.end, w.plan, parallel.Options{
		Threads: w.job.threads, Arena: tensor.ArenaOptions{Limit: w.job.arenaLimit}, Enter: w.enterPhase,
	})
	if err != nil {
		return err
	}
	w.rank, w.world, w.state = w.engine.Rank(), w.engine.World(), w.engine.State()
	w.holdings = holdingsOf(w.engine)
	w.rates = rates(w.plan)
	w.board = newBoard(w.rank, w.world)
	return nil
}

// close gives back what the worker holds of the machine. Operations of the others on this rank's tensors have ended.
func (w *worker) close() {
	if w.samples != nil {
		w.samples.Close()
	}
	if w.pending != nil {
		_ = w.pending.Abort() // not while others write into its folder; what is left is swept by the next checkpoint
	}
	if w.engine != nil {
		w.engine.Close()
	}
}

// rates is the learning rate of every step.
func rates(p plan.Plan) optim.Schedule {
	o, steps := p.Optimizer, p.Steps()
	s := optim.Schedule{Peak: o.LearningRate, Floor: o.MinRatio, Warmup: o.Warmup, Steps: steps}
	switch o.Schedule {
	case plan.Cosine:
		s.Shape = optim.Cosine
	case plan.Linear:
		s.Shape = optim.Linear
	case plan.Constant:
		s.Shape = optim.Constant
	case plan.WarmupStableDecay:
		s.Shape, s.Decay = optim.WSD, max(1, int(o.Decay*float64(steps)))
	}
	return s
}

// StepError says at which step, and in which operation, a rank failed.
type StepError struct {
	Step      int // counted from 1; 0 before the first
	Operation string
	Err       error
	Stack     []byte // where a panic came from; nil for other errors
}

func (e *StepError) Error() string {
	if e.Step == 0 {
		return fmt.Sprintf("train: before the first step, in %s: %v", e.Operation, e.Err)
	}
	return fmt.Sprintf("train: step %d, in %s: %v", e.Step, e.Operation, e.Err)
}

func (e *StepError) Unwrap() error { return e.Err }

// guard runs a rank's work and says of every failure where it happened: an error, one that unwound the layers, or
// a panic.
func (w *worker) guard(work func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &StepError{w.at.step, w.at.operation, fmt.Errorf("panic: %v", v), debug.Stack()}
		}
	}()
	failed := nn.Guard(func() { err = work() })
	if failed != nil {
		err = failed
	}
	var explained *NonFiniteError
	if err != nil && !errors.As(err, &explained) {
		err = &StepError{Step: w.at.step, Operation: w.at.operation, Err: err}
	}
	return err
}
