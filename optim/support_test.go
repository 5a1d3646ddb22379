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
	"carve/unit"
)

// layout is how a run is split. Zero values mean 1, and fp32.
type layout struct {
	dp, tp, micro int
	dtype         tensor.DType
	mode          optim.Mode
	bucket        unit.Bytes
	fault         fault
	rows          bool // sequence parallelism
}

// job is what a run computes, whatever its layout.
type job struct {
	config    model.Config
	sequences int // of the global batch
	length    int
	steps     int
	optimizer func(*nn.Rank, *nn.Model) optim.Optimizer
	arena     tensor.ArenaOptions
	threads   int // of a rank
}

// result is what a run came to: global tensors by name.
type result struct {
	losses, norms []float64
	grads, params map[string][]float64
}

func newJob() job {
	c := model.New(model.Qwen3)
	c.Layers, c.Hidden, c.Heads, c.KVHeads, c.HeadDim = 2, 16, 4, 2, 4
	c.FFN, c.Vocab, c.Context, c.InitStd, c.TieEmbeddings = 24, 21, 16, 0.1, true
	return job{config: c, sequences: 8, length: 6, steps: 3, optimizer: adamW, arena: tensor.ArenaOptions{Poison: true}, threads: 1}
}

func adamW(r *nn.Rank, m *nn.Model) optim.Optimizer {
	return optim.NewAdamW(r, m, optim.AdamWOptions{Decay: 0.1})
}

func sgd(r *nn.Rank, m *nn.Model) optim.Optimizer {
	return optim.NewSGD(r, m, optim.SGDOptions{Momentum: 0.9, Decay: 0.1})
}

func muon(r *nn.Rank, m *nn.Model) optim.Optimizer {
	o, err := optim.NewMuon(r, m, optim.MuonOptions{Decay: 0.1})
	nn.Must(err)
	return o
}

// run trains under a layout.
func (j job) run(t testing.TB, l layout) result {
	t.Helper()
	l.dp, l.tp, l.micro = max(l.dp, 1), max(l.tp, 1), max(l.micro, 1)
	grid, err := mesh.New(mesh.Degrees{mesh.DP: l.dp, mesh.TP: l.tp}, mesh.DefaultOrder())
	if err != nil {
		t.Fatal(err)
	}
	world := comm.NewLocal(grid.World(), comm.LocalOptions{})
	workers := make([]*worker, grid.World())
	err = comm.Run(context.Background(), world.Endpoints(), func(e comm.Endpoint) error {
		return nn.Guard(func() {
			w := j.worker(e, grid, l)
			workers[e.Rank()] = w
			for step := range j.steps {
				w.step(step)
			}
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
	return j.collect(workers)
}

// worker is one rank of a run.
type worker struct {
	job       job
	layout    layout
	r         *nn.Rank
	m         *nn.Model
	reducer   *optim.Reducer
	norm      *optim.Norm
	optimizer optim.Optimizer
	batches   []*nn.Batch
	total     *tensor.Tensor // [1]
	losses    []float64
	norms     []float64
	grads     [][]float64 // of the first step, by parameter
}

// worker makes a rank.
func (j job) worker(e comm.Endpoint, grid mesh.Mesh, l layout) *worker {
	groups, err := nn.JoinGroups(e, grid)
	nn.Must(err)
	groups = l.fault.plant(groups)
	a := tensor.NewArena(j.arena)
	r := &nn.Rank{
		Dev: tensor.NewCPU(a, j.threads), Arena: a, Mesh: grid, At: grid.Coordinates(e.Rank()), Groups: groups,
		Token: e.Token(), DType: l.dtype, Seed: 3, SequenceParallel: l.rows,
	}
	m, err := nn.Build(r, j.config, nn.Options{})
	nn.Must(err)
	r.Groups = l.fault.plantTwins(r.Groups)
	m.Init(r)
	w := &worker{job: j, layout: l, r: r, m: m}
	w.reducer = optim.NewReducer(r, m, optim.ReducerOptions{Mode: l.mode, Bucket: max(l.bucket, 1)})
	w.norm = optim.NewNorm(r, m)
	w.optimizer = j.optimizer(r, m)
	w.total = a.New(tensor.Workspace, tensor.FP64, 1)
	for range l.micro {
		n := j.sequences / l.dp / l.micro
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
	n := j.sequences / w.layout.dp / w.layout.micro
	for k, b := range w.batches {
		first := (w.r.At[mesh.DP]*w.layout.micro + k) * n
		for i := range b.Tokens.I32() {
			s, at := first+i/j.length, i%j.length
			target := j.target(step, s, at)
			b.Tokens.I32()[i] = int32(nn.Key(uint64(step*1000+s), string(rune('a'+at))) % uint64(j.config.Vocab))
			b.Targets.I32()[i] = max(target, -1)
		}
		b.Scale, b.Step, b.Sample = 1/float64(valid), step, first
	}
}

// step is one step of training, as package optim describes it.
func (w *worker) step(step int) {
	w.load(step)
	w.m.Begin()
	loss := 0.0
	for i, b := range w.batches {
		var ready nn.Ready
		if i == len(w.batches)-1 {
			ready = w.reducer
		}
		w.m.Backward(w.r, w.m.Forward(w.r, b), ready)
		loss += b.Loss * b.Scale
	}
	w.reducer.Finish()
	norm := w.norm.Of()
	if step == 0 {
		for _, p := range w.m.Params() {
			w.grads = append(w.grads, values(p.Grad))
		}
	}
	w.optimizer.Step(1e-2, optim.ClipScale(norm, 0.5))
	w.record(loss, norm)
}

// record sums the loss over the data ranks.
func (w *worker) record(loss, norm float64) {
	w.r.Dev.Fill(w.total, loss)
	if g := w.r.Groups.Data; g != nil {
		nn.Must(g.AllReduce(w.total, tensor.Sum))
	}
	w.losses = append(w.losses, w.total.F64()[0])
	w.norms = append(w.norms, norm)
}

// collect assembles the global tensors from the ranks' parts.
func (j job) collect(workers []*worker) result {
	first := workers[0]
	out := result{losses: first.losses, norms: first.norms, grads: map[string][]float64{}, params: map[string][]float64{}}
	for _, w := range workers {
		for i, p := range w.m.Params() {
			place(out.params, p, values(p.Value))
			place(out.grads, p, w.grads[i])
		}
	}
	return out
}

// place writes a rank's part of a parameter into the global tensor.
func place(tensors map[string][]float64, p *nn.Param, part []float64) {
	n, cols := 1, 1
	for _, d := range p.Shape {
		n *= d
	}
	global := tensors[p.Name]
	if global == nil {
		global = make([]float64, n)
		tensors[p.Name] = global
	}
	rows, inner := p.Region[0], mesh.Range{Stop: 1}
	if len(p.Shape) == 2 {
		cols, inner = p.Shape[1], p.Region[1]
	}
	for i := range part {
		row, col := rows.Start+i/inner.Len(), inner.Start+i%inner.Len()
		global[row*cols+col] = part[i]
	}
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

// distance is the worst difference of two runs, each tensor relative to its largest element, and where it is.
func (a result) distance(b result) (worst float64, where string) {
	see := func(name string, x, y []float64) {
		size, diff := 1e-3, 0.0
		for i := range x {
			size = max(size, math.Abs(x[i]))
			diff = max(diff, math.Abs(x[i]-y[i]))
			if math.IsNaN(x[i] - y[i]) {
				diff = math.Inf(1)
			}
		}
		if diff/size > worst {
			worst, where = diff/size, name
		}
	}
	see("loss", a.losses, b.losses)
	see("gradient norm", a.norms, b.norms)
	for name := range a.grads {
		see("gradient of "+name, a.grads[name], b.grads[name])
		see("value of "+name, a.params[name], b.params[name])
	}
	return worst, where
}
