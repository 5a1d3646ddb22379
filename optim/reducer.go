package optim

import (
	"carve/comm"
	"carve/nn"
	"carve/tensor"
	"carve/unit"
)

// ReducerOptions say how gradients are reduced. Zero values choose defaults.
type ReducerOptions struct {
	Mode   Mode
	Bucket unit.Bytes   // least size of a bucket; 0 means DefaultBucket
	Clock  func() int64 // nanoseconds, to measure the exposed time; nil means not measured
}

// Reducer sums gradients over the data-parallel ranks. It implements [nn.Ready].
//
// A bucket is a run of whole units at least as large as asked for, made from the last unit to the first, in the
// order in which the backward completes them. Its all-reduce runs in place on the flat gradient.
type Reducer struct {
	grad    *tensor.Tensor
	group   *comm.Group
	mode    Mode
	clock   func() int64
	buckets []*tensor.Tensor // by the unit that completes it; nil for none
	shared  []shared         // gradients that are also terms of a sum over the tensor axis, or a part of it
	works   []comm.Work
	exposed int64
}

// NewReducer makes the reducer of a model's gradients.
func NewReducer(r *nn.Rank, m *nn.Model, o ReducerOptions) *Reducer {
	if o.Bucket == 0 {
		o.Bucket = DefaultBucket
	}
	if o.Clock == nil {
		o.Clock = func() int64 { return 0 }
	}
	d := &Reducer{
		grad: m.Grad, group: r.Groups.Data, mode: o.Mode, clock: o.Clock,
		buckets: make([]*tensor.Tensor, len(m.Units)), works: make([]comm.Work, 0, len(m.Units)),
	}
	for i, hi := range bucketEnds(m.Units, m.Grad.DType(), o.Bucket) {
		if hi >= 0 {
			d.buckets[i] = m.Grad.Slice(m.Units[i].Lo, hi)
		}
	}
	for _, p := range m.Params() {
		if g := r.Groups.Shared(p); g != nil {
			d.shared = append(d.shared, shared{g, p.Grad})
		}
	}
	return d
}

// shared is a gradient whose terms are summed over a group.
type shared struct {
	group *comm.Group
	grad  *tensor.Tensor
}

// bucketEnds returns, by unit, the end of the bucket that the unit completes, or -1.
func bucketEnds(units []*nn.Unit, d tensor.DType, least unit.Bytes) []int {
	ends := make([]int, len(units))
	end := units[len(units)-1].Hi
	for i := len(units) - 1; i >= 0; i-- {
		ends[i] = -1
		if size := unit.Bytes((end - units[i].Lo) * d.Size()); size >= least || i == 0 {
			ends[i] = end
			end = units[i].Lo
		}
	}
	return ends
}

// alone reports whether there is nobody to sum with.
func (d *Reducer) alone() bool { return d.group == nil || d.group.Size() == 1 }

// Ready starts the all-reduce of the bucket that the unit completes.
func (d *Reducer) Ready(unit int) {
	if bucket := d.buckets[unit]; bucket != nil && d.mode == Bucketed && !d.alone() {
		d.works = append(d.works, d.group.AllReduceStart(bucket, tensor.Sum))
	}
}

// Finish returns when the whole gradient is the sum over all ranks.
func (d *Reducer) Finish() {
	start := d.clock()
	for _, w := range d.works {
		nn.Must(w.Wait())
	}
	d.works = d.works[:0]
	if d.mode == Naive && !d.alone() {
		nn.Must(d.group.AllReduce(d.grad, tensor.Sum))
	}
	for _, s := range d.shared {
		nn.Must(s.group.AllReduce(s.grad, tensor.Sum))
	}
	d.exposed = d.clock() - start
}

// Exposed is the time that the last Finish took: communication that the backward did not hide.
func (d *Reducer) Exposed() unit.Seconds { return unit.Seconds(float64(d.exposed) / 1e9) }
