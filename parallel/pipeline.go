package parallel

import (
	"fmt"

	"carve/comm"
	"carve/mesh"
	"carve/nn"
	"carve/plan"
	"carve/schedule"
	"carve/tensor"
)

// pipeline carries out the actions that a schedule gives a rank.
type pipeline struct {
	engine  *Engine
	route   *schedule.Route
	at      int // this rank's coordinate on the pipeline axis
	actions []schedule.Action
	final   []int // by chunk: index of the action that completes its gradients
	taken   []int // by action: of a send, the index of the action that tells that it was received

	// second has the groups of the backward of a pair, which runs in a goroutine of its own; nil where the halves of a pair
	// have no communication to hide behind each other.
	second *nn.Groups
	other  chan error // the backward's end

	activations, gradients *comm.Group // two streams of messages between the stages; nil for a pipeline of one rank

	flights  [][]flight // by chunk and micro-batch
	rank     *nn.Rank   // where the layers of this run are
	listener nn.Ready
	posted   int // actions before this one have their receives posted
	sends    []sending
}

// flight is a micro-batch in a chunk: what it waits for or leaves.
type flight struct {
	x, y   *tensor.Tensor // input and output of the stage
	dy, dx *tensor.Tensor // their gradients, the other way round
	pass   *nn.Pass

	xWork, dyWork comm.Work // that bring x and dy
}

// sending is a message that the neighbour may not have taken yet.
type sending struct {
	t     *tensor.Tensor
	work  comm.Work
	until int // index of the action that tells that it was taken
}

// Program is the schedule of a plan's pipelines.
func Program(p plan.Plan) (*schedule.Program, error) {
	kind, err := schedule.ParseKind(p.Layout.Pipeline.Schedule.String())
	if err != nil {
		return nil, err
	}
	spec := schedule.Spec{Kind: kind, Ranks: p.Layout.Degrees[mesh.PP], Micro: p.MicroBatches()}
	if kind == schedule.Interleaved {
		spec.Chunks = p.Layout.Pipeline.Virtual
	}
	if spec.Ranks == 1 && p.Layout.Chunks() == 1 {
		// Nothing is between the forward and the backward of a micro-batch on one rank but memory.
		spec.Kind = schedule.OneForwardOneBackward
	}
	if p.Layout.Experts.Overlap && spec.Kind == schedule.OneForwardOneBackward {
		spec.Pairs = schedule.Paired
	}
	return schedule.Generate(spec)
}

// newPipeline makes the list of a rank; the model is built after it.
func newPipeline(e *Engine) (*pipeline, error) {
	program, err := Program(e.plan)
	if err != nil {
		return nil, err
	}
	l := &pipeline{engine: e, at: e.rank.At[mesh.PP], actions: program.Ranks[e.rank.At[mesh.PP]]}
	l.taken = schedule.Taken(program)[l.at]
	if l.route, err = program.Route(); err != nil {
		return nil, err
	}
	chunks := len(program.Stages[l.at])
	l.flights, l.final = make([][]flight, chunks), make([]int, chunks)
	for c := range l.flights {
		l.flights[c] = make([]flight, program.Micros())
	}
	for i, a := range l.actions {
		if chunk, ok := completes(a); ok {
			l.final[chunk] = i
		}
	}
	return l, l.join()
}

// completes tells which chunk an action adds the last gradients of a micro-batch to, if it does.
func completes(a schedule.Action) (chunk int, ok bool) {
	switch a.Op {
	case schedule.Backward, schedule.Weight:
		return a.Chunk, true
	case schedule.Pair:
		return a.With.Chunk, a.With.Op == schedule.Backward
	case schedule.Forward, schedule.Input, schedule.SendActivation, schedule.RecvActivation, schedule.SendGradient, schedule.RecvGradient:
	}
	return 0, false
}

// join makes the groups of the two streams, and of the backward of pairs.
func (l *pipeline) join() (err error) {
	r := l.engine.rank
	if err := l.joinSecond(); err != nil || r.Groups.Pipeline == nil {
		return err
	}
	ranks := r.Groups.Pipeline.Ranks()
	if l.activations, err = l.engine.end.Group("pipeline activations", ranks); err != nil {
		return err
	}
	l.gradients, err = l.engine.end.Group("pipeline gradients", ranks)
	return err
}

// stages are the blocks of this rank's chunks, given the number of layers of every stage.
func (l *pipeline) stages(layers []int) []nn.Stage {
	starts := make([]int, len(layers)+1)
	for i, n := range layers {
		starts[i+1] = starts[i] + n
	}
	stages := make([]nn.Stage, len(l.flights))
	for c := range stages {
		i := l.route.Stage(schedule.Place{Rank: l.at, Chunk: c}).Index
		stages[c] = nn.Stage{Lo: starts[i], Hi: starts[i+1]}
	}
	return stages
}

// bare says which ends of the model are stages without blocks, given the number of layers of every stage.
func bare(layers []int) (ends nn.Ends) {
	if layers[0] == 0 {
		ends |= nn.EmbeddingEnd
	}
	if layers[len(layers)-1] == 0 {
		ends |= nn.HeadEnd
	}
	return ends
}

// head says where the head's backward runs: in the backward action when weight gradients are put off, so that what comes
// before is as short as the schedule thinks.
func (l *pipeline) head() nn.HeadWork {
	for _, a := range l.actions {
		if a.Op == schedule.Input || a.Op == schedule.Pair {
			return nn.Split
		}
	}
	return nn.Fused
}

// hasHead tells whether the rank holds a last stage.
func (l *pipeline) hasHead() bool {
	for _, c := range l.engine.model.Chunks {
		if c.Last {
			return true
		}
	}
	return false
}

// loss is the sum over the micro-batches whose loss this rank counts.
func (l *pipeline) loss() (sum float64) {
	if l.engine.Counts() {
		for i := range l.engine.batches.micro {
			sum += l.engine.batches.micro[i].Loss
		}
	}
	return sum
}

// run carries out the list. The listener hears of complete gradients; nil means that nobody does.
func (l *pipeline) run(r *nn.Rank, listener nn.Ready) error {
	l.rank, l.listener, l.posted = r, listener, 0
	for i, a := range l.actions {
		l.engine.options.Act(a)
		err := l.act(i, a)
		if err == nil && a.Op.Communicates() {
			err = l.reap(i)
		}
		if err != nil {
			return fmt.Errorf("parallel: %v of pipeline rank %d: %w", a, l.at, err)
		}
	}
	return l.drain()
}

// act carries out one action.
func (l *pipeline) act(i int, a schedule.Action) error {
	switch a.Op {
	case schedule.Forward:
		l.post(i)
		l.engine.enter(Forward)
		l.forward(a.Micro, a.Chunk)
	case schedule.Backward, schedule.Input, schedule.Weight:
		l.post(i)
		l.engine.enter(phaseOf(a.Op))
		l.backward(l.rank, schedule.Half{Op: a.Op, Micro: a.Micro, Chunk: a.Chunk}, l.ready(i, a.Chunk))
	case schedule.Pair:
		l.post(i)
		return l.pair(a, l.ready(i, a.With.Chunk))
	case schedule.SendActivation:
		f := l.flight(a)
		l.send(i, l.activations, f.y, a.Peer)
		f.y = nil
	case schedule.SendGradient:
		f := l.flight(a)
		l.send(i, l.gradients, f.dx, a.Peer)
		f.dx = nil
	case schedule.RecvActivation:
		l.post(i) // in case the list begins with it
		l.engine.enter(Receiving)
		return l.flight(a).xWork.Wait()
	case schedule.RecvGradient:
		l.engine.enter(Receiving)
		return l.flight(a).dyWork.Wait()
	}
	return nil
}

func (l *pipeline) flight(a schedule.Action) *flight { return &l.flights[a.Chunk][a.Micro] }

// ready is who hears of complete gradients, if the action is the last of the step on its chunk.
func (l *pipeline) ready(action, chunk int) nn.Ready {
	if l.final[chunk] == action {
		return l.listener
	}
	return nil
}

// phaseOf is the phase of a backward or one of its halves.
func phaseOf(op schedule.Op) Phase {
	if op == schedule.Weight {
		return WeightGradient
	}
	return Backward
}

// forward runs a stage on a micro-batch and hands the result on.
func (l *pipeline) forward(micro, chunk int) {
	f := &l.flights[chunk][micro]
	f.y, f.pass = l.engine.model.Chunks[chunk].Forward(l.rank, &l.engine.batches.micro[micro], f.x)
	f.x = nil
	if next, ok := l.route.Next(schedule.Place{Rank: l.at, Chunk: chunk}); ok && next.Rank == l.at {
		l.flights[next.Chunk][micro].x, f.y = f.y, nil
	}
}

// backward runs a stage's backward, or one of its halves, and hands the gradient of the input on.
func (l *pipeline) backward(r *nn.Rank, h schedule.Half, ready nn.Ready) {
	f, c := &l.flights[h.Chunk][h.Micro], l.engine.model.Chunks[h.Chunk]
	switch h.Op {
	case schedule.Backward:
		f.dx = c.Backward(r, f.dy, f.pass, ready)
	case schedule.Input:
		f.dx = c.BackwardInput(r, f.dy, f.pass)
	case schedule.Weight:
		c.BackwardWeight(r, f.pass, ready)
		return
	case schedule.Forward, schedule.Pair, schedule.SendActivation, schedule.RecvActivation, schedule.SendGradient, schedule.RecvGradient:
		return
	}
	f.dy = nil
	if before, ok := l.route.Previous(schedule.Place{Rank: l.at, Chunk: h.Chunk}); ok && before.Rank == l.at {
		l.flights[before.Chunk][h.Micro].dy, f.dx = f.dx, nil
	}
}
