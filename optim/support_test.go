package optim_test

import (
	"context"
	"math"
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/model"
	"carve/nn"
	"carve/optim"
	"carve/tensor"
)

// layout is how a run is split. Zero values mean 1, and fp32.
type layout struct {
	dp, tp, ep int
	micro      int
	stages     int // of a pipeline that holds a block each
	pipes      int // ranks of the pipeline axis, each of which holds all units and has samples of its own
	dtype      tensor.DType
	rows       bool // sequence parallelism
	chunks     int
	kind       nn.TensorKind
	state      optim.Options // but for the algorithm
	fault      fault
}

// job is what a run computes, whatever its layout.
type job struct {
	config    model.Config
	sequences int // of the global batch
	length    int
	steps     int
	algorithm optim.Algorithm
	clip      float64
	resume    *result // a run of two steps to go on from
	arena     tensor.ArenaOptions
	threads   int // of a rank
}

// result is what a run came to: global tensors by name.
type result struct {
	losses, norms         []float64
	grads, params, states map[string][]float64
}

func newJob() job {
	c := model.New(model.Qwen3)
	c.Layers, c.Hidden, c.Heads, c.KVHeads, c.HeadDim = 2, 16, 4, 2, 4
	c.FFN, c.Vocab, c.Context, c.InitStd, c.TieEmbeddings = 24, 21, 16, 0.1, true
	return job{config: c, sequences: 12, length: 6, steps: 3, algorithm: adamW(), clip: 0.5, arena: tensor.ArenaOptions{Poison: true}, threads: 1}
}

func adamW() optim.Algorithm { return optim.AdamWOptions{Decay: 0.1} }

func sgd() optim.Algorithm { return optim.SGDOptions{Momentum: 0.9, Decay: 0.1} }

func muon() optim.Algorithm { return optim.MuonOptions{Decay: 0.1} }

// mesh is the grid of a layout.
func (l *layout) mesh(t testing.TB) mesh.Mesh {
	t.Helper()
	l.dp, l.tp, l.ep, l.micro = max(l.dp, 1), max(l.tp, 1), max(l.ep, 1), max(l.micro, 1)
	l.pipes, l.stages = max(l.pipes, 1), max(l.stages, 1)
	grid, err := mesh.New(mesh.Degrees{mesh.DP: l.dp, mesh.TP: l.tp, mesh.EP: l.ep, mesh.PP: l.pipes * l.stages}, mesh.DefaultOrder())
	if err != nil {
		t.Fatal(err)
	}
	return grid
}

// shares is the number of parts of the global batch, and share the one of a rank.
func (l *layout) shares() int { return l.dp * l.ep * l.pipes }

func (l *layout) share(at mesh.Coordinates) int {
	share := at[mesh.DP]*l.ep + at[mesh.EP]
	if l.pipes > 1 {
		share = share*l.pipes + at[mesh.PP]
	}
	return share
}

// run trains under a layout.
func (j job) run(t testing.TB, l layout) result {
	t.Helper()
	grid := l.mesh(t)
	world := comm.NewLocal(grid.World(), comm.LocalOptions{})
	workers := make([]*worker, grid.World())
	err := comm.Run(context.Background(), world.Endpoints(), func(e comm.Endpoint) error {
		return nn.Guard(func() {
			w := j.worker(e, grid, l)
			workers[e.Rank()] = w
			first := 0
			if j.resume != nil {
				w.resume()
				first = w.state.Steps()
			}
			for step := first; step < j.steps; step++ {
				w.step(step)
			}
			w.params, w.states = blocks(w.state.Parameters()), blocks(w.state.States())
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		for _, w := range workers {
			w.close()
		}
	}()
	return j.collect(t, workers)
}

// worker is one rank of a run.
type worker struct {
	job     job
	layout  layout
	r       *nn.Rank
	m       *nn.Model
	state   *optim.State
	batches []*nn.Batch
	total   *tensor.Tensor // [1]
	world   *comm.Group
	losses  []float64
	norms   []float64
	grads   []block // of the first step
	params  []block // after the last
	states  []block
}

// worker makes a rank.
func (j job) worker(e comm.Endpoint, grid mesh.Mesh, l layout) *worker {
	groups, err := nn.JoinGroups(faultyEndpoint{e, l.fault}, grid)
	nn.Must(err)
	a := tensor.NewArena(j.arena)
	r := &nn.Rank{
		Dev: tensor.NewCPU(a, j.threads), Arena: a, Mesh: grid, At: grid.Coordinates(e.Rank()), Groups: groups,
		Token: e.Token(), DType: l.dtype, Seed: 3, SequenceParallel: l.rows, Chunks: l.chunks, TensorKind: l.kind,
	}
	o := l.state
	o.Algorithm, o.Bucket = j.algorithm, max(o.Bucket, 1)
	if l.pipes > 1 {
		o.Twins = func(string) []int { return []int{0, 1} }
	}
	build := nn.Options{Storage: o.Storage()}
	if l.stages > 1 {
		at := r.At[mesh.PP]
		build.Chunks = []nn.Stage{{Lo: at, Hi: at + 1}}
		o.Twins = func(name string) []int {
			if j.config.TieEmbeddings && (name == "model.embed_tokens" || name == "transformer.wte") {
				return []int{0, l.stages - 1}
			}
			return nil
		}
	}
	m, err := nn.Build(r, j.config, build)
	nn.Must(err)
	w := &worker{job: j, layout: l, r: r, m: m}
	w.state, err = optim.NewState(r, m, o)
	nn.Must(err)
	w.state.Init()
	if grid.World() > 1 {
		w.world, err = r.Groups.Join("test", grid.Group(0, mesh.Everything))
		nn.Must(err)
	}
	w.total = a.New(tensor.Workspace, tensor.FP64, 1)
	for range l.micro {
		n := j.sequences / l.shares() / l.micro
		w.batches = append(w.batches, &nn.Batch{
			Tokens:  a.New(tensor.Workspace, tensor.Int32, n, j.length),
			Targets: a.New(tensor.Workspace, tensor.Int32, n, j.length),
		})
	}
	return w
}

func (w *worker) close() {
	w.r.Dev.Close()
	w.r.Arena.Close()
}

// target is the token to predict at a place of the global batch; some are left out.
func (j job) target(step, sequence, at int) int32 {
	return int32(nn.Key(uint64(step*1000+sequence), string(rune('A'+at)))%uint64(j.config.Vocab+2)) - 2
}

// load fills the rank's micro-batches with its part of the global batch.
func (w *worker) load(step int) {
	j, valid := w.job, 0
	for s := range j.sequences {
		for i := range j.length {
			if j.target(step, s, i) >= 0 {
				valid++
			}
		}
	}
	n := j.sequences / w.layout.shares() / w.layout.micro
	for k, b := range w.batches {
		first := (w.layout.share(w.r.At)*w.layout.micro + k) * n
		for i := range b.Tokens.I32() {
			s, at := first+i/j.length, i%j.length
			target := j.target(step, s, at)
			b.Tokens.I32()[i] = int32(nn.Key(uint64(step*1000+s), string(rune('a'+at))) % uint64(j.config.Vocab))
			b.Targets.I32()[i] = max(target, -1)
		}
		b.Scale, b.Step, b.Sample = 1/float64(valid), step, first
	}
}

// resume writes the state of another run into this rank's pieces.
func (w *worker) resume() {
	read := func(pieces []optim.Piece, from map[string][]float64) {
		for i, b := range blocks(pieces) {
			for k := range b.values {
				pieces[i].Tensor.F64()[k] = from[b.name][b.at(k)]
			}
		}
	}
	read(w.state.Parameters(), w.job.resume.params)
	read(w.state.States(), w.job.resume.states)
	w.state.Restore(2)
}

// step is one step of training, as package optim describes it.
func (w *worker) step(step int) {
	w.load(step)
	loss := w.gradients()
	norm := w.state.Norm()
	if w.grads == nil {
		w.grads = blocks(w.state.Gradients())
	}
	w.state.Step(1e-2, optim.ClipScale(norm, w.job.clip))
	w.record(loss, norm)
}

// gradients runs the micro-batches.
func (w *worker) gradients() (loss float64) {
	w.state.Begin()
	for i, b := range w.batches {
		var ready nn.Ready
		if i == len(w.batches)-1 {
			ready = w.state
		}
		w.pass(b, ready)
		loss += b.Loss * b.Scale
	}
	w.state.Finish()
	return loss
}

// pass runs one micro-batch forward and backward; stages hand it on.
func (w *worker) pass(b *nn.Batch, ready nn.Ready) {
	c, line, at := w.m.Chunks[0], w.r.Groups.Pipeline, w.r.At[mesh.PP]
	hidden := func() *tensor.Tensor {
		return w.r.Arena.New(tensor.Activation, w.r.DType, w.r.Rows(b.Tokens.Len()), w.job.config.Hidden)
	}
	var x, dy *tensor.Tensor
	if !c.First {
		x = hidden()
		nn.Must(line.Recv(x, at-1))
	}
	y, p := c.Forward(w.r, b, x)
	if !c.Last {
		nn.Must(line.Send(y, at+1))
		y.Free()
		dy = hidden()
		nn.Must(line.Recv(dy, at+1))
	}
	dx := c.Backward(w.r, dy, p, ready)
	if !c.First {
		nn.Must(line.Send(dx, at-1))
		dx.Free()
	}
}

// record sums the loss over the ranks with other samples.
func (w *worker) record(loss, norm float64) {
	w.r.Dev.Fill(w.total, loss)
	if w.world != nil {
		nn.Must(w.world.AllReduce(w.total, tensor.Sum))
	}
	w.losses = append(w.losses, w.total.F64()[0]/float64(w.layout.tp))
	w.norms = append(w.norms, norm)
}

// collect assembles the global tensors from the ranks' owned pieces, which must cover each once.
func (j job) collect(t testing.TB, workers []*worker) result {
	t.Helper()
	first := workers[0]
	out := result{losses: first.losses, norms: first.norms, grads: map[string][]float64{}, params: map[string][]float64{}, states: map[string][]float64{}}
	for _, w := range workers {
		for i, n := range w.norms {
			if n != first.norms[i] && !math.IsNaN(n) {
				t.Errorf("step %d: norm %v on one rank, %v on another", i, first.norms[i], n)
			}
		}
	}
	cover(t, workers, out.params, func(w *worker) []block { return w.params })
	cover(t, workers, out.states, func(w *worker) []block { return w.states })
	cover(t, workers, out.grads, func(w *worker) []block { return w.grads })
	for _, w := range workers {
		for _, p := range w.m.Params() {
			if len(out.params[p.Name]) == 0 || len(out.grads[p.Name]) == 0 {
				t.Errorf("%s belongs to nobody", p.Name)
			}
		}
	}
	return out
}

// values is a copy of a tensor's elements.
func values(t *tensor.Tensor) []float64 {
	out := make([]float64, t.Len())
	for i := range out {
		switch t.DType() {
		case tensor.FP64:
			out[i] = t.F64()[i]
		case tensor.FP32:
			out[i] = float64(t.F32()[i])
		case tensor.BF16:
			out[i] = float64(math.Float32frombits(uint32(t.BF16()[i]) << 16))
		case tensor.Int32:
			out[i] = float64(t.I32()[i])
		}
	}
	return out
}
