package optim_test

import (
	"slices"
	"testing"

	"carve/comm"
	"carve/nn"
	"carve/optim"
	"carve/tensor"
	"carve/unit"
)

// slowLink is a carrier on which an element takes a nanosecond of a fake clock, one operation after the other.
type slowLink struct {
	now   int64
	free  int64 // when the link has sent what was started
	sent  []int // elements
	until []int64
}

func (s *slowLink) clock() int64 { return s.now }

func (s *slowLink) Start(c comm.Call) comm.Work {
	s.sent = append(s.sent, c.Src.Len())
	s.free = max(s.free, s.now) + int64(c.Src.Len())
	s.until = append(s.until, s.free)
	return comm.NewWork(s, uint64(len(s.until)-1))
}

func (s *slowLink) Await(ticket uint64) error {
	s.now = max(s.now, s.until[ticket])
	return nil
}

func (s *slowLink) Done(ticket uint64) bool { return s.now >= s.until[ticket] }

func (s *slowLink) Do(c comm.Call) error { return s.Start(c).Wait() }

// overlapped is the state of a model with a neighbour behind a slow link.
func overlapped(t *testing.T, r *nn.Rank, m *nn.Model, o optim.Options) (*optim.State, *slowLink) {
	t.Helper()
	link := &slowLink{}
	r.Groups.Data = comm.NewGroup("data", []int{0, 1}, 0, link)
	o.Algorithm = optim.SGDOptions{}
	s, err := optim.NewState(r, m, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, link
}

// TestOverlap lets the backward of every unit take as long as the reduction of the largest. All but the last bucket are
// then hidden, and in naive mode nothing is.
func TestOverlap(t *testing.T) {
	r, m := alone(t, tensor.FP32)
	measure := func(o optim.Options) (exposed int64, _ *slowLink) {
		s, link := overlapped(t, r, m, o)
		s.Begin()
		for i := range slices.Backward(m.Units) {
			link.now += int64(m.Units[1].Grad.Len()) // a block
			s.Ready(i)
		}
		start := link.now
		s.Finish()
		return link.now - start, link
	}
	if naive, _ := measure(optim.Options{Mode: optim.Naive}); naive != int64(m.Grad.Len()) {
		t.Errorf("naive: %v exposed, want %v", naive, m.Grad.Len())
	}
	bucketed, link := measure(optim.Options{Bucket: 1})
	if want := int64(m.Units[0].Grad.Len()); bucketed != want {
		t.Errorf("bucketed: %v exposed, want the %v of the last bucket", bucketed, want)
	}
	total := 0
	for _, n := range link.sent {
		total += n
	}
	if len(link.sent) != len(m.Units) || total != m.Grad.Len() {
		t.Errorf("%d buckets of %d elements, want %d of %d", len(link.sent), total, len(m.Units), m.Grad.Len())
	}
}

// TestBucketSizes wants buckets of whole units, none but the last below the size asked for.
func TestBucketSizes(t *testing.T) {
	r, m := alone(t, tensor.FP32)
	for _, least := range []unit.Bytes{1, 5000, 9000, 1 << 30} {
		s, link := overlapped(t, r, m, optim.Options{Bucket: least})
		s.Begin()
		for i := range slices.Backward(m.Units) {
			s.Ready(i)
		}
		s.Finish()
		total := 0
		for i, n := range link.sent {
			total += n
			if unit.Bytes(4*n) < least && i < len(link.sent)-1 {
				t.Errorf("bucket %d has %d bytes, less than %d", i, 4*n, least)
			}
		}
		if total != m.Grad.Len() {
			t.Errorf("buckets of %d hold %d elements of %d", least, total, m.Grad.Len())
		}
	}
}

// TestAccumulationDelaysTheCollective counts: however many micro-batches, each bucket is reduced once.
func TestAccumulationDelaysTheCollective(t *testing.T) {
	j := newJob()
	for _, micro := range []int{1, 4} {
		j.inWorld(t, layout{micro: micro}, func(w *worker) {
			s, link := overlapped(t, w.r, w.m, optim.Options{Bucket: 1})
			w.state = s
			w.gradients()
			if len(link.sent) != len(w.m.Units) {
				t.Errorf("%d micro-batches: %d collectives for %d units", micro, len(link.sent), len(w.m.Units))
			}
		})
	}
}

// TestNormCountsOnce compares the norm of a split model with the sum over the global tensors.
func TestNormCountsOnce(t *testing.T) {
	j := newJob()
	j.steps = 1
	for _, l := range []layout{{}, {tp: 2}, {dp: 2, tp: 2}, {dp: 3, state: optim.Options{Stage: optim.ShardGradients}}, {pipes: 2}} {
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
