package optim_test

import (
	"slices"
	"testing"

	"carve/comm"
	"carve/mesh"
	"carve/nn"
	"carve/optim"
	"carve/tensor"
	"carve/unit"
)

// slowLink is a carrier on which an element takes a nanosecond of a fake clock, one operation after the other.
type slowLink struct {
	clock *int64
	free  int64 // when the link has sent what was started
	sent  []int // elements
	until []int64
}

func (s *slowLink) Start(c comm.Call) comm.Work {
	n := 0
	for _, t := range []*tensor.Tensor{c.Src, c.Dst} {
		if t != nil {
			n = max(n, t.Len())
		}
	}
	s.sent = append(s.sent, n)
	s.free = max(s.free, *s.clock) + int64(n)
	s.until = append(s.until, s.free)
	return comm.NewWork(s, uint64(len(s.until)-1))
}

func (s *slowLink) Await(ticket uint64) error {
	*s.clock = max(*s.clock, s.until[ticket])
	return nil
}

func (s *slowLink) Done(ticket uint64) bool { return *s.clock >= s.until[ticket] }

func (s *slowLink) Do(c comm.Call) error { return s.Start(c).Wait() }

// linked is the first of two data-parallel ranks; every group is a slow link of its own.
type linked struct {
	comm.Endpoint
	clock int64
	links map[string]*slowLink
}

func (e *linked) Rank() int { return 0 }

func (e *linked) Group(name string, ranks []int) (*comm.Group, error) {
	e.links[name] = &slowLink{clock: &e.clock}
	return comm.NewGroup(name, ranks, 0, e.links[name]), nil
}

// newLinked is such a rank with a model.
func newLinked(t *testing.T, j job, o optim.Options) (*linked, *nn.Rank, *nn.Model, *optim.State) {
	t.Helper()
	e := &linked{links: map[string]*slowLink{}}
	grid, err := mesh.New(mesh.Degrees{mesh.DP: 2}, mesh.DefaultOrder())
	if err != nil {
		t.Fatal(err)
	}
	r := lonely(t, tensor.FP32)
	r.Mesh = grid
	if r.Groups, err = nn.JoinGroups(e, grid); err != nil {
		t.Fatal(err)
	}
	o.Algorithm = optim.SGDOptions{}
	m, err := nn.Build(r, j.config, nn.Options{Storage: o.Storage()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := optim.NewState(r, m, o)
	if err != nil {
		t.Fatal(err)
	}
	return e, r, m, s
}

// TestOverlap lets the backward of every unit take as long as the reduction of the largest. All but the last bucket are
// then hidden, and in naive mode nothing is.
func TestOverlap(t *testing.T) {
	for stage := optim.Replicated; stage <= optim.ShardOptimizer; stage++ {
		measure := func(o optim.Options) (exposed int64, _ *nn.Model, sent []int) {
			o.Stage = stage
			e, _, m, s := newLinked(t, newJob(), o)
			s.Begin()
			for i := range slices.Backward(m.Units) {
				e.clock += int64(m.Units[1].Grad.Len()) // a block
				s.Ready(i)
			}
			start := e.clock
			s.Finish()
			return e.clock - start, m, e.links["data"].sent
		}
		if naive, m, _ := measure(optim.Options{Mode: optim.Naive}); naive != int64(m.Grad.Len()) {
			t.Errorf("stage %d, naive: %v exposed, want %v", stage, naive, m.Grad.Len())
		}
		bucketed, m, sent := measure(optim.Options{Bucket: 1})
		if want := int64(m.Units[0].Grad.Len()); bucketed != want {
			t.Errorf("stage %d, bucketed: %v exposed, want the %v of the last bucket", stage, bucketed, want)
		}
		if len(sent) != len(m.Units) || sum(sent) != m.Grad.Len() {
			t.Errorf("stage %d: %d buckets of %d elements, want %d of %d", stage, len(sent), sum(sent), len(m.Units), m.Grad.Len())
		}
	}
}

func sum(list []int) (total int) {
	for _, n := range list {
		total += n
	}
	return total
}

// computing is a keeper between which and the layers every phase of a unit takes a fixed time.
type computing struct {
	nn.Keeper
	clock *int64
	took  int64 // by each
	total int64
}

func (c *computing) Leave(u *nn.Unit, p nn.Phase) {
	*c.clock += c.took
	c.total += c.took
	c.Keeper.Leave(u, p)
}

// TestPrefetchOverlap lets every unit run as long as gathering the largest takes. With one unit gathered ahead, what is
// exposed is the first unit's values and the last one's gradients; without, all values are.
func TestPrefetchOverlap(t *testing.T) {
	j := jobs()["plain"]
	for _, c := range []struct {
		name     string
		prefetch int
		mode     optim.Mode
		want     func(gathered, first int) int
	}{
		{"one ahead", 1, optim.Bucketed, func(_, first int) int { return 2 * first }},
		{"none ahead", 0, optim.Bucketed, func(gathered, first int) int { return gathered + first }},
	} {
		e, r, m, s := newLinked(t, j, optim.Options{Stage: optim.ShardParameters, Prefetch: c.prefetch, Mode: c.mode})
		s.Init()
		k := &computing{Keeper: s, clock: &e.clock}
		for _, u := range m.Units {
			k.took = max(k.took, int64(u.Hi-u.Lo))
		}
		r.Keeper = k
		w := &worker{job: j, layout: layout{micro: 1}, r: r, m: m, state: s, batches: []*nn.Batch{newBatch(r, j, 2)}}
		start := e.clock
		w.gradients()
		gathered := sum(e.links["data parameters"].sent)
		if want := int64(c.want(gathered, m.Units[0].Hi)); e.clock-start-k.total != want {
			t.Errorf("%s: %d exposed, want %d", c.name, e.clock-start-k.total, want)
		}
		// Every unit is gathered for the forward and for the backward, but for the head, which has one of them.
		if want := 2*m.Units[len(m.Units)-1].Lo + (m.Units[len(m.Units)-1].Hi - m.Units[len(m.Units)-1].Lo); gathered != want {
			t.Errorf("%s: %d elements gathered, want %d", c.name, gathered, want)
		}
	}
}

// TestReshardAfterBackward gathers every unit once a micro-batch.
func TestReshardAfterBackward(t *testing.T) {
	j := jobs()["plain"]
	e, r, m, s := newLinked(t, j, optim.Options{Stage: optim.ShardParameters, Reshard: optim.AfterBackward, Prefetch: 1})
	s.Init()
	w := &worker{job: j, layout: layout{micro: 2}, r: r, m: m, state: s}
	w.batches = []*nn.Batch{newBatch(r, j, 2), newBatch(r, j, 1)}
	w.gradients()
	if got, want := sum(e.links["data parameters"].sent), 2*m.Units[len(m.Units)-1].Hi; got != want {
		t.Errorf("%d elements gathered, want %d", got, want)
	}
}

// TestTraffic counts the elements that a step moves, by what of a unit they are, for a model of P parameters: collectives
// name the whole of what they gather or scatter.
func TestTraffic(t *testing.T) {
	j := jobs()["plain"]
	const micro = 3
	for _, c := range []struct {
		name              string
		options           optim.Options
		gradients, values int // multiples of P
	}{
		{"stage 0", optim.Options{}, 1, 0},
		{"stage 1", optim.Options{Stage: optim.ShardOptimizer}, 1, 1},
		{"stage 2", optim.Options{Stage: optim.ShardGradients}, micro, 1},
		{"stage 3, gathered once a micro-batch", optim.Options{Stage: optim.ShardParameters, Reshard: optim.AfterBackward}, micro, micro},
		{"whole tensors", optim.Options{Stage: optim.ShardOptimizer, Ownership: optim.WholeTensor}, 1, 1},
	} {
		e, r, m, s := newLinked(t, j, c.options)
		s.Init()
		w := &worker{job: j, r: r, m: m, state: s}
		for range micro {
			w.batches = append(w.batches, newBatch(r, j, 1))
		}
		w.gradients()
		s.Step(1, 1)
		gradients, values, total := sum(e.links["data"].sent), 0, m.Units[len(m.Units)-1].Hi
		if link := e.links["data parameters"]; link != nil {
			values = sum(link.sent)
		}
		if gradients != c.gradients*total || values != c.values*total {
			t.Errorf("%s: %d elements of gradients and %d of values move, want %d and %d times %d",
				c.name, gradients, values, c.gradients, c.values, total)
		}
	}
	e, r, m, s := newLinked(t, j, optim.Options{Mode: optim.Server})
	s.Init()
	w := &worker{job: j, r: r, m: m, state: s, batches: []*nn.Batch{newBatch(r, j, 1)}}
	w.gradients()
	s.Step(1, 1)
	if got, want := sum(e.links["data"].sent), 2*m.Grad.Len(); got != want {
		t.Errorf("server: %d elements move, want %d to it and as many back", got, want)
	}
}

// newBatch is a micro-batch of zeros.
func newBatch(r *nn.Rank, j job, n int) *nn.Batch {
	return &nn.Batch{
		Tokens:  r.Arena.NewZero(tensor.Workspace, tensor.Int32, n, j.length),
		Targets: r.Arena.NewZero(tensor.Workspace, tensor.Int32, n, j.length), Scale: 1,
	}
}

// TestBucketSizes wants buckets of whole units, none but the last below the size asked for.
func TestBucketSizes(t *testing.T) {
	for _, least := range []unit.Bytes{1, 5000, 9000, 1 << 30} {
		e, _, m, s := newLinked(t, newJob(), optim.Options{Bucket: least})
		s.Begin()
		for i := range slices.Backward(m.Units) {
			s.Ready(i)
		}
		s.Finish()
		sent := e.links["data"].sent
		for i, n := range sent {
			if unit.Bytes(4*n) < least && i < len(sent)-1 {
				t.Errorf("bucket %d has %d bytes, less than %d", i, 4*n, least)
			}
		}
		if sum(sent) != m.Grad.Len() {
			t.Errorf("buckets of %d hold %d elements of %d", least, sum(sent), m.Grad.Len())
		}
	}
}

// TestAccumulationDelaysTheCollective counts: however many micro-batches, each bucket is reduced once where a rank has
// room for all gradients, and where it has not, with every micro-batch.
func TestAccumulationDelaysTheCollective(t *testing.T) {
	j := jobs()["plain"]
	for stage := optim.Replicated; stage <= optim.ShardParameters; stage++ {
		for _, micro := range []int{1, 4} {
			e, r, m, s := newLinked(t, j, optim.Options{Bucket: 1, Stage: stage})
			s.Init()
			w := &worker{job: j, r: r, m: m, state: s}
			for range micro {
				w.batches = append(w.batches, newBatch(r, j, 1))
			}
			w.gradients()
			want := len(m.Units)
			if stage >= optim.ShardGradients {
				want *= micro
			}
			if got := len(e.links["data"].sent); got != want {
				t.Errorf("stage %d, %d micro-batches: %d collectives for %d units", stage, micro, got, len(m.Units))
			}
		}
	}
}

// TestNormCountsOnce compares the norm of a split model with the sum over the global tensors.
func TestNormCountsOnce(t *testing.T) {
	j := newJob()
	j.steps = 1
	for _, l := range []layout{{}, {tp: 2}, {dp: 2, tp: 2}, {dp: 3, state: optim.Options{Stage: optim.ShardGradients}}, {pipes: 2}, {stages: 2}} {
		l.dtype = tensor.FP64
		got := j.run(t, l)
		sum := 0.0
		for _, g := range got.grads {
			for _, v := range g {
				sum += v * v
			}
		}
		if d := got.norms[0]*got.norms[0]/sum - 1; d > fp64Tolerance || d < -fp64Tolerance {
			t.Errorf("%v: squared norm %v, want %v", l, got.norms[0]*got.norms[0], sum)
		}
	}
}
