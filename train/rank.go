package train

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"carve/comm"
	"carve/data"
	"carve/mesh"
	"carve/nn"
	"carve/optim"
	"carve/plan"
	"carve/tensor"
	"carve/unit"
)

// worker is one rank: its memory, its device, its part of the model and its place among the others. One
// goroutine runs it from beginning to end.
type worker struct {
	job   *job
	plan  plan.Plan // the job's, with this rank's knowledge of the number of steps
	end   *comm.Observed
	world *comm.Group
	rank  *nn.Rank

	model     *nn.Model
	optimizer optim.Optimizer
	reducer   *optim.Reducer
	norm      *optim.Norm
	rates     optim.Schedule

	tokens, targets *tensor.Tensor // int32, this rank's samples of a step, one after the other
	batch           microBatch     // under way
	samples         *data.Loader
	held            *data.Evaluation // nil when nothing is held back
	board           *board
	owned           []held  // what this rank writes to checkpoints
	report          *report // on rank 0
	timeline        *timeline

	waited  time.Duration // for the samples of this step
	exposed unit.Seconds  // that communication kept the rank waiting before this step
	loss    float64       // of this step so far
	suspect int           // the first micro-batch of this step whose loss is not finite
	at      place
}

// place is where a worker is, for the error of what fails there.
type place struct {
	step      int // 0 before the first
	operation operation
}

// build makes the rank with the initial weights, its optimizer and the buffers of a step.
func (w *worker) build() error {
	w.enter(building)
	arena := tensor.NewArena(tensor.ArenaOptions{Limit: w.job.arenaLimit})
	w.rank = &nn.Rank{Arena: arena, Token: w.end.Token(), DType: dtypeOf(w.plan.Precision), Seed: w.plan.Seed}
	if err := w.join(); err != nil {
		return err
	}
	w.rank.Dev = tensor.NewCPU(arena, w.job.threads)
	return w.buildModel()
}

// join finds the rank's place on the mesh and its groups.
func (w *worker) join() error {
	m, err := w.plan.Layout.Mesh()
	if err != nil {
		return err
	}
	w.rank.Mesh, w.rank.At = m, m.Coordinates(w.end.Rank())
	if w.rank.Groups, err = nn.JoinGroups(w.end, m); err != nil {
		return err
	}
	w.world, err = w.end.Group("world", m.Group(0, mesh.Everything))
	return err
}

// buildModel makes the model, its optimizer and the buffers of a step.
func (w *worker) buildModel() error {
	p, r := w.plan, w.rank
	var err error
	if w.model, err = nn.Build(r, p.Model.Config, nn.Options{Sequence: p.Workload.Sequence}); err != nil {
		return err
	}
	w.model.Init(r)
	w.reducer = optim.NewReducer(r, w.model, optim.ReducerOptions{
		Mode: reduceMode(p.Layout.Zero.Reduce), Bucket: p.Layout.Zero.Bucket,
	})
	w.norm = optim.NewNorm(r, w.model)
	if w.optimizer, err = newOptimizer(r, w.model, p.Optimizer); err != nil {
		return err
	}
	w.rates = rates(p)
	n := p.MicroBatches() * p.MicroBatch * p.Workload.Sequence
	w.tokens = r.Arena.New(tensor.Activation, tensor.Int32, n)
	w.targets = r.Arena.New(tensor.Activation, tensor.Int32, n)
	w.board = newBoard(r, w.world)
	return nil
}

// close gives back what the worker holds of the machine. Operations of the others on this rank's tensors have ended.
func (w *worker) close() {
	if w.samples != nil {
		w.samples.Close()
	}
	if w.rank == nil {
		return
	}
	if w.rank.Dev != nil {
		w.rank.Dev.Close()
	}
	w.rank.Arena.Close()
}

// dtypeOf is the dtype of parameters, activations and gradients.
func dtypeOf(p plan.Precision) tensor.DType {
	switch p {
	case plan.BF16:
		return tensor.BF16
	case plan.FP32:
		return tensor.FP32
	case plan.FP64:
		return tensor.FP64
	}
	panic(fmt.Sprintf("train: precision %d is not known", uint8(p)))
}

// reduceMode is when gradients are summed.
func reduceMode(r plan.Reduce) optim.Mode {
	if r == plan.Naive {
		return optim.Naive
	}
	return optim.Bucketed
}

// newOptimizer makes the optimizer that the plan names.
func newOptimizer(r *nn.Rank, m *nn.Model, o plan.Optimizer) (optim.Optimizer, error) {
	adamw := optim.AdamWOptions{Beta1: o.Beta1, Beta2: o.Beta2, Epsilon: o.Epsilon, Decay: o.WeightDecay}
	switch o.Name {
	case plan.AdamW:
		return optim.NewAdamW(r, m, adamw), nil
	case plan.Muon:
		return optim.NewMuon(r, m, optim.MuonOptions{Momentum: o.Momentum, Decay: o.WeightDecay, Rest: adamw})
	case plan.SGD:
		return optim.NewSGD(r, m, optim.SGDOptions{Momentum: o.Momentum, Decay: o.WeightDecay}), nil
	}
	panic(fmt.Sprintf("train: optimizer %d is not known", uint8(o.Name)))
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
			err = &StepError{w.at.step, w.at.operation.String(), fmt.Errorf("panic: %v", v), debug.Stack()}
		}
	}()
	failed := nn.Guard(func() { err = work() })
	if failed != nil {
		err = failed
	}
	var explained *NonFiniteError
	if err != nil && !errors.As(err, &explained) {
		err = &StepError{Step: w.at.step, Operation: w.at.operation.String(), Err: err}
	}
	return err
}
