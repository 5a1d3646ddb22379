package train

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"carve/internal/document"
	"carve/mesh"
	"carve/model"
	"carve/plan"
	"carve/unit"
)

// Shape is a model and a batch whose training speed is compared with other systems.
type Shape struct {
	Name                                          string
	Hidden, Layers, Heads, FFN, Vocab, Seq, Batch int // Batch is of one rank
}

// Shapes are the shapes that carve bench train knows: plain Llama-style decoders with separate embedding and head.
func Shapes() []Shape {
	return []Shape{
		{"tiny", 256, 4, 4, 688, 512, 256, 8},
		{"small", 512, 8, 8, 1376, 4096, 256, 4},
		{"gpt2", 768, 12, 12, 2048, 32000, 256, 2},
	}
}

// FindShape returns the shape of a name.
func FindShape(name string) (Shape, error) {
	var names []string
	for _, s := range Shapes() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Shape{}, fmt.Errorf("train: shape %q is not known%s", document.Clip(name), document.Suggest(name, names))
}

// Config is the shape's model.
func (s Shape) Config() model.Config {
	c := model.New(model.Llama)
	c.Layers, c.Hidden, c.FFN, c.Vocab, c.Context = s.Layers, s.Hidden, s.FFN, s.Vocab, s.Seq
	c.Heads, c.KVHeads, c.HeadDim = s.Heads, s.Heads, s.Hidden/s.Heads
	c.NormEpsilon, c.Rope.Theta, c.InitStd = 1e-5, 10_000, 0.02
	return c
}

// FLOPsPerToken are the operations of training on one token as the comparison counts them: six per parameter
// of a matrix, the look-up in the embedding not counted, and causal attention at half of a full one.
func (s Shape) FLOPsPerToken() unit.FLOPs {
	parameters := s.Config().Parameters().Total() - unit.Count(s.Vocab*s.Hidden)
	return 6*unit.FLOPs(parameters) + 6*unit.FLOPs(s.Layers)*unit.FLOPs(s.Hidden)*unit.FLOPs(s.Seq)
}

// Plan trains the shape over data-parallel ranks.
func (s Shape) Plan(ranks int, precision plan.Precision) plan.Plan {
	p := plan.Default()
	p.Model = plan.Model{Origin: plan.Inline, Config: s.Config()}
	p.Workload.Sequence, p.Workload.GlobalBatch = s.Seq, s.Batch*ranks
	p.Layout.Degrees[mesh.DP] = ranks
	p.MicroBatch, p.Precision = s.Batch, precision
	p.Workload.Steps = benchMost // the rate is constant: the number is of no consequence
	p.Optimizer.Schedule, p.Optimizer.Clip = plan.Constant, 0
	return p
}

// BenchOptions say how a shape's training is measured.
type BenchOptions struct {
	Shape     Shape
	Ranks     int
	Threads   int // of each rank
	Precision plan.Precision
	Time      unit.Seconds // that the measurement takes, about
}

// BenchResult is a measured speed.
type BenchResult struct {
	TokensPerSecond float64 // of the middle step
	FLOPsPerSecond  unit.FLOPsPerSecond
	Steps           int // measured
	Step            unit.Seconds
	Loss            float64 // of the last step
}

// The measurement: steps that are not counted, and how many are at least and at most.
const (
	benchSettling = 2
	benchLeast    = 5
	benchMost     = 20
)

// Bench measures how fast a shape trains on random tokens: data, forward, backward, reduction and optimizer.
func Bench(ctx context.Context, o BenchOptions) (BenchResult, error) {
	p := o.Shape.Plan(o.Ranks, o.Precision)
	if err := p.Validate(); err != nil {
		return BenchResult{}, err
	}
	b := &bench{options: o}
	j := &job{
		plan: p, threads: o.Threads, now: clock(),
		train: func(rank, _ int) (feed, error) { return newRandomFeed(o.Shape, rank), nil },
	}
	if err := j.launch(ctx, b.rank); err != nil {
		return BenchResult{}, err
	}
	return b.result(), nil
}

// bench collects the measurements of rank 0.
type bench struct {
	options BenchOptions
	steps   []unit.Seconds
	loss    float64
}

// rank measures on one rank; rank 0 decides when it is enough.
func (b *bench) rank(w *worker) error {
	if err := w.build(); err != nil {
		return err
	}
	w.train, _ = w.job.train(w.data(), 0)
	began := w.job.now()
	for stop := false; !stop; {
		start := w.job.now()
		w.at.step = w.optimizer.Steps() + 1
		_, finite, err := w.step(w.rates.Rate(w.optimizer.Steps()))
		if err != nil {
			return err
		}
		if !finite {
			return w.explain("the gradient norm is not finite")
		}
		end := w.job.now()
		if w.leads() {
			b.add(w.optimizer.Steps(), end-start)
		}
		if err := w.publish(w.leads() && b.enough(end-began), 0); err != nil {
			return err
		}
		stop = w.board.first(stopSlot) != 0
	}
	if w.leads() {
		b.loss = w.board.sum(lossSlot) / float64(w.plan.StepTokens())
	}
	return nil
}

func (b *bench) add(step int, nanoseconds int64) {
	if step > benchSettling {
		b.steps = append(b.steps, unit.Seconds(float64(nanoseconds)/1e9))
	}
}

func (b *bench) enough(nanoseconds int64) bool {
	n := len(b.steps)
	return n >= benchMost || n >= benchLeast && float64(nanoseconds)/1e9 > float64(b.options.Time)
}

func (b *bench) result() BenchResult {
	s, o := slices.Sorted(slices.Values(b.steps)), b.options
	middle := s[len(s)/2]
	tokens := float64(o.Shape.Batch * o.Shape.Seq * o.Ranks)
	return BenchResult{
		TokensPerSecond: tokens / float64(middle), Steps: len(s), Step: middle, Loss: b.loss,
		FLOPsPerSecond: (unit.FLOPs(tokens) * o.Shape.FLOPsPerToken()).Per(middle),
	}
}

// randomFeed deals out a few batches of random tokens in turn.
type randomFeed struct {
	batches [][]int32 // B rows of S+1 tokens
	seq     int
	next    int
}

func newRandomFeed(s Shape, rank int) *randomFeed {
	const batches = 4
	random := rand.New(rand.NewPCG(1, uint64(rank)))
	f := &randomFeed{batches: make([][]int32, batches), seq: s.Seq}
	for i := range f.batches {
		f.batches[i] = make([]int32, s.Batch*(s.Seq+1))
		for j := range f.batches[i] {
			f.batches[i][j] = int32(random.IntN(s.Vocab))
		}
	}
	return f
}

// Fill implements feed.
func (f *randomFeed) Fill(tokens, targets []int32) (int64, error) {
	b := f.batches[f.next%len(f.batches)]
	f.next++
	for row := 0; row*f.seq < len(tokens); row++ {
		line := b[row*(f.seq+1):]
		copy(tokens[row*f.seq:(row+1)*f.seq], line)
		copy(targets[row*f.seq:(row+1)*f.seq], line[1:])
	}
	return 0, nil
}
