package record

import (
	"errors"
	"fmt"

	"carve/comm"
	"carve/mesh"
	"carve/nn"
	"carve/parallel"
	"carve/plan"
	"carve/schedule"
	"carve/tensor"
)

// Options say what is recorded. The zero value is one step on one thread of this CPU, of which only the memory is kept.
type Options struct {
	Steps   int            // 0 means 1
	Threads int            // of the device whose workspace counts; 0 means 1
	Kernels tensor.Kernels // of that device
	Sink    Sink           // nil means nobody hears
}

// Rank is what one rank holds, and the peaks of its memory.
type Rank struct {
	Rank   int
	At     mesh.Coordinates
	DType  tensor.DType
	Params []*nn.Param  // in the order of the flat buffers; their tensors are gone
	Built  tensor.Usage // bytes in use before the first step
	Peak   tensor.Peak  // the moment of the most bytes in all
	Most   tensor.Usage // the most of each category, at whatever moments
	Ops    int          // computing operations in all
}

// Run runs the steps of a plan on one rank. The plan must be valid and one that the engine runs ([parallel.Check]).
func Run(p plan.Plan, rank int, o Options) (out Rank, err error) {
	r := &recorder{sink: o.Sink, at: Moment{Step: Building}}
	if r.sink == nil {
		r.sink = Nothing{}
	}
	end, err := comm.NewMeta(rank, p.Layout.World(), comm.MetaOptions{Now: r.now, Issue: r.issue, Wait: r.wait})
	if err != nil {
		return Rank{}, fmt.Errorf("record: %w", err)
	}
	failed := nn.Guard(func() { out, err = r.run(end, p, o) })
	if err := errors.Join(failed, err, end.Close()); err != nil {
		return Rank{}, fmt.Errorf("record: rank %d: %w", rank, err)
	}
	return out, nil
}

// recorder tells a sink what happens, with the moment.
type recorder struct {
	sink  Sink
	at    Moment
	arena *tensor.Arena
}

func (r *recorder) run(end *comm.Meta, p plan.Plan, o Options) (Rank, error) {
	e, err := parallel.New(end, p, parallel.Options{
		Arena: tensor.ArenaOptions{Meta: true, Watch: r},
		Device: func(a *tensor.Arena) tensor.Device {
			r.arena = a
			return tensor.NewMeta(a, tensor.MetaOptions{Threads: o.Threads, Kernels: o.Kernels, Record: r.compute})
		},
		Enter: func(phase parallel.Phase) { r.at.Phase = phase },
		Act:   func(a schedule.Action) { r.at.Action = a },
	})
	defer e.Close() //nolint:staticcheck // an engine that could not be made is closed as well
	if err != nil {
		return Rank{}, err
	}
	arena := e.Rank().Arena
	out := Rank{Rank: end.Rank(), At: e.Rank().At, DType: e.Rank().DType, Params: e.Model().Params(), Built: arena.Live()}
	for r.at.Step = 0; r.at.Step < max(o.Steps, 1); r.at.Step++ {
		if _, err := e.Step(r.at.Step, p.Optimizer.LearningRate); err != nil {
			return Rank{}, err
		}
	}
	out.Peak, out.Most, out.Ops = arena.Peak(), arena.Most(), r.at.Ops
	return out, nil
}

func (r *recorder) now() int { return r.at.Ops }

func (r *recorder) compute(o tensor.Operation) {
	r.at.Owner = o.Owner
	r.sink.Compute(r.at, o)
	r.at.Ops++
}

func (r *recorder) issue(t comm.Transfer) {
	r.at.Owner = r.arena.Owner()
	r.sink.Issue(r.at, t)
}

func (r *recorder) wait(t comm.Transfer) {
	r.at.Owner = r.arena.Owner()
	r.sink.Wait(r.at, t)
}

// Took implements [tensor.Watcher].
func (r *recorder) Took(a tensor.Allocation) {
	r.at.Owner = a.Owner
	r.sink.Took(r.at, a)
}

// Gave implements [tensor.Watcher].
func (r *recorder) Gave(a tensor.Allocation) {
	r.at.Owner = a.Owner
	r.sink.Gave(r.at, a)
}

// Representatives are ranks that together show what all do: the first coordinate of every axis but the pipeline's, of which
// every coordinate is there, in its order.
func Representatives(p plan.Plan) ([]int, error) {
	m, err := p.Layout.Mesh()
	if err != nil {
		return nil, err
	}
	return m.Group(0, mesh.Of(mesh.PP)), nil
}
