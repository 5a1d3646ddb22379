package train

import (
	"context"
	"fmt"
	"slices"

	"carve/data"
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
	Memory    unit.Bytes   // that this machine has available; 0 when it is not known
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
	if err := (Options{Memory: o.Memory}).fits(p); err != nil {
		return BenchResult{}, input(err)
	}
	b := &bench{options: o}
	j := &job{
		plan: p, threads: o.Threads, now: clock(),
		loader: func(rank int, _ *data.State) (*data.Loader, error) { return randomLoader(p, rank) },
	}
	if err := j.launch(ctx, b.rank); err != nil {
		return BenchResult{}, err
	}
	return b.result(), nil
}

// randomLoader hands out random tokens.
func randomLoader(p plan.Plan, rank int) (*data.Loader, error) {
	noise, err := data.NewSynthetic(p.Model.Config.Vocab, p.Seed)
	if err != nil {
		return nil, err
	}
	return data.NewLoader(noise, data.LoaderOptions{
		Sequence: p.Workload.Sequence, GlobalBatch: p.Workload.GlobalBatch, Ranks: p.Layout.DataParallel(), Rank: rank, Seed: p.Seed,
	})
}

// bench collects the measurements of rank 0.
type bench struct {
	options BenchOptions
	steps   []unit.Seconds
	loss    float64
}

// rank measures on one rank; rank 0 decides when it is enough.
func (b *bench) rank(ctx context.Context, w *worker) error {
	if err := w.build(); err != nil {
		return err
	}
	if err := w.openSamples(ctx, nil); err != nil {
		return err
	}
	began := w.job.now()
	for stop := false; !stop; {
		start := w.job.now()
		w.at.step = w.state.Steps() + 1
		_, finite, err := w.step(ctx, w.rates.Rate(w.state.Steps()))
		if err != nil {
			return err
		}
		if !finite {
			return w.explain("the gradient norm is not finite")
		}
		end := w.job.now()
		if w.leads() {
			b.add(w.state.Steps(), end-start)
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
