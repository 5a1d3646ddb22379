package parallel

import (
	"errors"
	"fmt"

	"carve/comm"
	"carve/mesh"
	"carve/nn"
	"carve/optim"
	"carve/plan"
	"carve/schedule"
	"carve/tensor"
)

// Options say how a rank runs. Zero values choose defaults.
type Options struct {
	// Device makes the rank's device; nil means the cpu with Threads threads.
	Device  func(*tensor.Arena) tensor.Device
	Threads int
	// Arena is how the rank's memory behaves: a limit, or none at all for a run that is only recorded.
	Arena tensor.ArenaOptions
	// Enter is told what the rank does from now on; nil means nobody is.
	Enter func(Phase)
	// Act is told of every action of the schedule before it; nil means nobody is.
	Act func(schedule.Action)
	// Reduced is called in every step when the gradients are complete, before the norm and the update; nil means nobody is.
	Reduced func()
	// Observer is shown what passes between the layers; nil means that nobody looks.
	Observer nn.Observer
}

// Engine is one rank's part of a job. One goroutine uses it, the one that holds the rank's compute token.
type Engine struct {
	plan    plan.Plan
	options Options
	end     comm.Endpoint
	rank    *nn.Rank
	model   *nn.Model
	world   *comm.Group

	batches  *batches
	pipeline *pipeline
	state    *optim.State
}

// New makes the engine of a rank with the initial weights. When it fails, [Engine.Close] gives back what was made;
// the engine is never nil.
func New(end comm.Endpoint, p plan.Plan, o Options) (*Engine, error) {
	if o.Enter == nil {
		o.Enter = func(Phase) {}
	}
	if o.Act == nil {
		o.Act = func(schedule.Action) {}
	}
	if o.Reduced == nil {
		o.Reduced = func() {}
	}
	if o.Device == nil {
		o.Device = func(a *tensor.Arena) tensor.Device { return tensor.NewCPU(a, max(1, o.Threads)) }
	}
	e := &Engine{plan: p, options: o, end: end}
	if err := Check(p); err != nil {
		return e, err
	}
	arena := tensor.NewArena(o.Arena)
	e.rank = &nn.Rank{
		Arena: arena, Token: end.Token(), DType: DType(p.Precision), Seed: p.Seed, Observer: o.Observer,
		TensorKind: tensorKindOf(p.Layout.Tensor.Kind), Chunks: p.Layout.Tensor.Chunks,
		SequenceParallel: p.Layout.SequenceParallel, Context: contextOf(p.Layout.Context),
	}
	if err := e.join(); err != nil {
		return e, err
	}
	if p.Offload == plan.OffloadActivations {
		e.rank.Host = &nn.Host{Arena: tensor.NewArena(tensor.ArenaOptions{Meta: o.Arena.Meta})}
	}
	e.rank.Dev = o.Device(arena)
	return e, e.build()
}

// join finds the rank's place on the mesh and its groups.
func (e *Engine) join() error {
	m, err := e.plan.Layout.Mesh()
	if err != nil {
		return err
	}
	if have := e.end.Size(); have != m.World() {
		return fmt.Errorf("parallel: a world of %d ranks for a layout of %d; start as many", have, m.World())
	}
	e.rank.Mesh, e.rank.At = m, m.Coordinates(e.end.Rank())
	if e.rank.Groups, err = nn.JoinGroups(e.end, m); err != nil {
		return err
	}
	e.world, err = e.end.Group("world", m.Group(0, mesh.Everything))
	return err
}

// build makes the model, its optimizer and the buffers of a step.
func (e *Engine) build() error {
	p, r := e.plan, e.rank
	pipe, err := newPipeline(e)
	if err != nil {
		return err
	}
	e.pipeline = pipe
	state := stateOf(p)
	state.Twins = pipe.twins
	e.model, err = nn.Build(r, p.Model.Config, nn.Options{
		Sequence: p.Workload.Sequence, Chunks: pipe.stages(p.StageLayers()), Bare: bare(p.StageLayers()), Head: pipe.head(),
		Recompute: recomputeOf(p.Recompute), Experts: expertsOf(p.Layout.Experts), Storage: state.Storage(),
	})
	if err != nil {
		return err
	}
	if e.state, err = optim.NewState(r, e.model, state); err != nil {
		return err
	}
	e.state.Init()
	e.batches = newBatches(r, p)
	return nil
}

// Close gives back the engine's memory and threads. Operations of other ranks on its tensors must have ended.
func (e *Engine) Close() {
	if e.rank == nil {
		return
	}
	if e.rank.Dev != nil {
		e.rank.Dev.Close()
	}
	e.rank.Arena.Close()
	if e.rank.Host != nil {
		e.rank.Host.Arena.Close()
	}
}

// Rank is where the layers run.
func (e *Engine) Rank() *nn.Rank { return e.rank }

// Model is this rank's part of the model.
func (e *Engine) Model() *nn.Model { return e.model }

// World is the group of all ranks.
func (e *Engine) World() *comm.Group { return e.world }

// State is this rank's share of parameters, gradients and the optimizer's memory.
func (e *Engine) State() *optim.State { return e.state }

// Tokens and Targets are the samples of the rank's data share of a step, [M·B, S], whole sequences; the caller fills
// them before every Step.
func (e *Engine) Tokens() []int32 { return e.batches.tokens.I32() }

// Targets are the tokens to predict; see [Engine.Tokens].
func (e *Engine) Targets() []int32 { return e.batches.targets.I32() }

// Positions are the tokens' positions in their documents, and Documents the numbers of these in their sample; see
// [Engine.Tokens]. They are nil unless the plan packs by document.
func (e *Engine) Positions() []int32 { return ids(e.batches.positions) }

// Documents are the numbers of the tokens' documents; see [Engine.Positions].
func (e *Engine) Documents() []int32 { return ids(e.batches.documents) }

func ids(t *tensor.Tensor) []int32 {
	if t == nil {
		return nil
	}
	return t.I32()
}

// SetTargets says how many targets the next steps' global batches have, over all ranks: what losses and gradients are means
// over. Unless told, that is every token.
func (e *Engine) SetTargets(n int64) { e.batches.scale(n) }

// SetFirst says which number the rank's first sample has among all of a step: what dropout draws by. Unless told, it follows from
// the rank's data share.
func (e *Engine) SetFirst(sample int) { e.batches.number(sample) }

// Data is the rank's position among those that the samples are split over.
func (e *Engine) Data() int { return e.rank.Mesh.Index(e.end.Rank(), mesh.Samples) }

// Counts tells whether this rank's losses of a step count in the sum over the world: of those with the same positions of the
// same samples, the ones with a head. Of an evaluation see [Engine.Judges].
func (e *Engine) Counts() bool { return e.rank.At[mesh.TP] == 0 && e.pipeline.hasHead() }

// Check returns everything in a valid plan that the engine cannot run.
func Check(p plan.Plan) error {
	var faults []error
	for _, g := range nn.Gaps(p.Model.Config) {
		name, remedy := "model", g.Remedy+`, or price it with "carve plan"`
		if p.Model.Name != "" {
			name, remedy = "model "+p.Model.Name, `"carve plan" prices it`
		}
		faults = append(faults, fmt.Errorf("parallel: %s has %s, which carve's layers do not have yet; %s", name, g.What, remedy))
	}
	return errors.Join(faults...)
}

// DType is the dtype of parameters, activations and gradients.
func DType(p plan.Precision) tensor.DType {
	switch p {
	case plan.BF16:
		return tensor.BF16
	case plan.FP32:
		return tensor.FP32
	case plan.FP64:
		return tensor.FP64
	}
	panic(fmt.Sprintf("parallel: precision %d is not known", uint8(p)))
}
