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
	sent  []*tensor.Tensor
	until []int64
}

func (s *slowLink) clock() int64 { return s.now }

func (s *slowLink) Start(c comm.Call) comm.Work {
	s.sent = append(s.sent, c.Src)
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

// TestOverlap lets the backward of every unit take as long as the reduction of the largest. All but the last bucket are
// then hidden, and in naive mode nothing is.
func TestOverlap(t *testing.T) {
	r, m := alone(t, tensor.FP32)
	measure := func(o optim.ReducerOptions) (unit.Seconds, *slowLink) {
		link := &slowLink{}
		o.Clock = link.clock
		r.Groups.Data = comm.NewGroup("data", []int{0, 1}, 0, link)
		d := optim.NewReducer(r, m, o)
		for i := range slices.Backward(m.Units) {
			link.now += int64(m.Units[1].Grad.Len()) // a block
			d.Ready(i)
		}
		d.Finish()
		return d.Exposed(), link
	}
	naive, _ := measure(optim.ReducerOptions{Mode: optim.Naive})
	if want := unit.Seconds(float64(m.Grad.Len()) / 1e9); naive != want {
		t.Errorf("naive: %v exposed, want %v", naive, want)
	}
	bucketed, link := measure(optim.ReducerOptions{Bucket: 1})
	if want := unit.Seconds(float64(m.Units[0].Grad.Len()) / 1e9); bucketed != want {
		t.Errorf("bucketed: %v exposed, want the %v of the last bucket", bucketed, want)
	}
	total := 0
	for _, s := range link.sent {
		total += s.Len()
	}
	if len(link.sent) != len(m.Units) || total != m.Grad.Len() {
		t.Errorf("%d buckets of %d elements, want %d of %d", len(link.sent), total, len(m.Units), m.Grad.Len())
	}
}

// TestBucketSizes wants buckets of whole units, none but the last below the size asked for.
func TestBucketSizes(t *testing.T) {
	r, m := alone(t, tensor.FP32)
	for _, least := range []unit.Bytes{1, 5000, 9000, 1 << 30} {
		link := &slowLink{}
		r.Groups.Data = comm.NewGroup("data", []int{0, 1}, 0, link)
		d := optim.NewReducer(r, m, optim.ReducerOptions{Bucket: least})
		for i := range slices.Backward(m.Units) {
			d.Ready(i)
		}
		d.Finish()
		total := 0
		for i, s := range link.sent {
			total += s.Len()
			if unit.Bytes(s.Bytes()) < least && i < len(link.sent)-1 {
				t.Errorf("bucket %d has %d bytes, less than %d", i, s.Bytes(), least)
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
			link := &slowLink{}
			w.r.Groups.Data = comm.NewGroup("data", []int{0, 1}, 0, link)
			w.reducer = optim.NewReducer(w.r, w.m, optim.ReducerOptions{Bucket: 1})
			w.bare()
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
	for _, l := range []layout{{}, {tp: 2}, {dp: 2, tp: 2}} {
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

var _ nn.Ready = (*optim.Reducer)(nil)
