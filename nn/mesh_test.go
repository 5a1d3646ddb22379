package nn_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/model"
	"carve/nn"
	"carve/tensor"
)

// meshTolerance bounds the relative difference of losses and gradients on a mesh from those of one rank in fp64: the
// order of sums differs.
const meshTolerance = 1e-12

// job is what a mesh of ranks computes.
type job struct {
	config    model.Config
	options   nn.Options
	sequences int // of the global batch
	length    int
	documents documents
}

// documents say how sequences are packed.
type documents func(s int) (starts []int)

// layout is how a job is split. plant, if any, changes a rank before its model is built.
type layout struct {
	degrees mesh.Degrees
	context nn.Context
	dtype   tensor.DType
	arena   tensor.ArenaOptions
	plant   func(r *nn.Rank, e comm.Endpoint)
}

func (l layout) String() string {
	return fmt.Sprintf("%v/%v %v", l.degrees, l.context.Kind, l.context.Balance)
}

// worker is one rank of a layout.
type worker struct {
	r     *nn.Rank
	m     *nn.Model
	b     *nn.Batch
	grads [][]float64 // by parameter
}

// outcome is what a layout computes: the sums of losses, and global gradients by name.
type outcome struct {
	loss, auxiliary float64
	grads           map[string][]float64
}

// run computes loss and gradients of one micro-batch on a mesh.
func (j job) run(t testing.TB, l layout) outcome {
	t.Helper()
	o, err := j.try(t, l)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// try is run with its error.
func (j job) try(t testing.TB, l layout) (o outcome, err error) {
	t.Helper()
	var workers []*worker
	err = j.each(t, l, func(w *worker) {
		gradients(w.r, w.m, w.b)
		for _, p := range w.m.Params() {
			w.grads = append(w.grads, widened(w.r, p.Grad))
		}
	}, &workers)
	if err != nil {
		return o, err
	}
	o.grads = map[string][]float64{}
	for _, w := range workers {
		if w.r.At[mesh.TP] == 0 {
			o.loss += w.b.Loss
			o.auxiliary += w.b.Auxiliary
		}
		w.collect(o.grads)
	}
	return o, nil
}

// collect adds the rank's terms of the gradients to the global ones.
func (w *worker) collect(grads map[string][]float64) {
	for i, p := range w.m.Params() {
		first := true // of the ranks that hold the same part and compute the same gradient
		n := 1
		for _, d := range p.Shape {
			n *= d
		}
		for _, a := range mesh.All {
			if p.Spec[a].Kind == mesh.Replicated && !p.Terms.Has(a) && w.r.At[a] > 0 {
				first = false
			}
		}
		if !first {
			continue
		}
		if grads[p.Name] == nil {
			grads[p.Name] = make([]float64, n)
		}
		scatterRegion(grads[p.Name], w.grads[i], p)
	}
}

// scatterRegion adds a rank's part to a global tensor.
func scatterRegion(global, part []float64, p *nn.Param) {
	cols := p.Shape[len(p.Shape)-1]
	last := p.Region[len(p.Region)-1]
	row := 0
	if len(p.Shape) > 1 {
		row = p.Region[0].Start
	}
	for i, v := range part {
		global[(row+i/last.Len())*cols+last.Start+i%last.Len()] += v
	}
}

// each runs work as every rank of a layout.
func (j job) each(t testing.TB, l layout, work func(*worker), workers *[]*worker) error {
	t.Helper()
	grid, err := mesh.New(l.degrees, mesh.DefaultOrder())
	if err != nil {
		t.Fatal(err)
	}
	*workers = make([]*worker, grid.World())
	world := comm.NewLocal(grid.World(), comm.LocalOptions{})
	defer func() {
		for _, w := range *workers {
			w.close()
		}
	}()
	return comm.Run(context.Background(), world.Endpoints(), func(e comm.Endpoint) error {
		return nn.Guard(func() {
			w := j.worker(e, grid, l)
			(*workers)[e.Rank()] = w
			w.build(j)
			work(w)
		})
	})
}

func (j job) worker(e comm.Endpoint, grid mesh.Mesh, l layout) *worker {
	if l.arena == (tensor.ArenaOptions{}) {
		l.arena.Poison = true
	}
	groups, err := nn.JoinGroups(e, grid)
	nn.Must(err)
	a := tensor.NewArena(l.arena)
	r := &nn.Rank{
		Dev: tensor.NewCPU(a, 1), Arena: a, Mesh: grid, At: grid.Coordinates(e.Rank()), Groups: groups,
		Token: e.Token(), DType: l.dtype, Seed: 7, Context: l.context,
	}
	if l.plant != nil {
		l.plant(r, e)
	}
	return &worker{r: r}
}

func (w *worker) close() {
	if w != nil {
		w.r.Dev.Close()
		w.r.Arena.Close()
	}
}

func (w *worker) build(j job) {
	m, err := nn.Build(w.r, j.config, j.options)
	nn.Must(err)
	w.m = m
	m.Init(w.r)
	for _, p := range m.Params() {
		if p.Kind == nn.Vector {
			w.jitter(p)
		}
	}
	for _, p := range states(m) {
		w.jitter(p)
	}
	w.b = j.batch(w.r)
}

// jitter adds noise to a parameter that starts constant, the same under every layout.
func (w *worker) jitter(p *nn.Param) {
	noise := w.r.Arena.New(tensor.Workspace, p.Value.DType(), p.Value.Len())
	defer noise.Free()
	w.r.Dev.Normal(tensor.Normal{T: noise, Key: nn.Key(99, p.Name), Std: 0.2, Cols: p.Shape[0], Col: p.Region[0].Start})
	w.r.Dev.Add(p.Value, noise)
}

// batch is the rank's part of the global batch: its sequences, and of these its positions.
func (j job) batch(r *nn.Rank) *nn.Batch {
	tokens, targets, positions, docs, valid := j.global()
	samples := mesh.Split(j.sequences, r.Mesh.Size(mesh.Samples), r.Mesh.Index(r.Mesh.Rank(r.At), mesh.Samples))
	cut := func(whole []int32) *tensor.Tensor {
		cp := r.Mesh.Degree(mesh.CP)
		t := r.Arena.New(tensor.Workspace, tensor.Int32, samples.Len(), j.length/cp)
		r.Context.Balance.Cut(t.I32(), whole[samples.Start*j.length:samples.Stop*j.length], j.length, cp, r.At[mesh.CP])
		return t
	}
	b := &nn.Batch{Tokens: cut(tokens), Targets: cut(targets), Positions: cut(positions), Scale: 1 / float64(valid), Step: 3, Sample: samples.Start}
	if j.documents != nil {
		b.Documents = r.Arena.New(tensor.Workspace, tensor.Int32, samples.Len(), j.length)
		copy(b.Documents.I32(), docs[samples.Start*j.length:])
	}
	return b
}

// global is the whole batch, [B S] each, and the number of targets that count.
func (j job) global() (tokens, targets, positions, docs []int32, valid int) {
	for i := range j.sequences * j.length {
		key := func(seed uint64, n int) int32 { return int32(nn.Key(seed, fmt.Sprint(i)) % uint64(n)) }
		tokens = append(tokens, key(1, j.config.Vocab))
		targets = append(targets, key(2, j.config.Vocab+1)-1)
		if targets[i] >= 0 {
			valid++
		}
		at, doc := i%j.length, int32(0)
		if j.documents != nil {
			starts := j.documents(i / j.length)
			n, _ := slices.BinarySearch(starts, at+1)
			if doc = int32(n); n > 0 {
				at -= starts[n-1]
			}
		}
		positions, docs = append(positions, int32(at)), append(docs, doc)
	}
	return tokens, targets, positions, docs, valid
}

// distance is the worst relative difference of two outcomes, and where it is. A tensor's difference is relative to
// its largest element.
func (o outcome) distance(want outcome) (worst float64, where string) {
	worst, where = math.Abs(o.loss/want.loss-1), "loss"
	if want.auxiliary != 0 || o.auxiliary != 0 {
		if d := math.Abs(o.auxiliary/want.auxiliary - 1); !(d <= worst) {
			worst, where = d, "auxiliary loss"
		}
	}
	for name, grad := range want.grads {
		size, diff := 1e-3, 0.0 // some gradients are zero but for rounding
		for i, v := range grad {
			size, diff = max(size, math.Abs(v)), worse(diff, math.Abs(v-o.grads[name][i]))
		}
		if diff/size > worst {
			worst, where = diff/size, name
		}
	}
	if math.IsNaN(o.loss) {
		return math.Inf(1), "loss"
	}
	return worst, where
}

// alone is the layout of one rank.
func alone() layout { return layout{dtype: tensor.FP64} }

// compareWithOne runs a job under a layout and on one rank.
func (j job) compareWithOne(t *testing.T, l layout) {
	t.Helper()
	if worst, where := j.run(t, l).distance(j.run(t, alone())); worst > meshTolerance {
		t.Errorf("%v: %s differs from one rank by %.1e, tolerance %.0e", l, where, worst, meshTolerance)
	}
}
