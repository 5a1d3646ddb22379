package verify

import (
	"math"
	"slices"

	"carve/mesh"
	"carve/nn"
	"carve/parallel"
	"carve/tensor"
)

// reference keeps what one rank computes. It is the visitor of that run.
type reference struct {
	names   []string             // of the parameters, in the model's order
	states  []string             // of what changes beside them
	axes    map[string]mesh.Axes // of data, that the terms of a gradient are summed over
	initial map[string]*whole
	moments []moment
}

// moment is a step of the one rank.
type moment struct {
	loss, norm float64
	grads      map[string]*whole
	params     map[string]*whole
}

// whole is a global tensor.
type whole struct {
	shape []int
	data  []float64
	size  float64 // largest element
	scale float64 // what errors are relative to
}

func (r *reference) began(e *parallel.Engine) {
	r.initial, r.axes = keep(parameters(e)), map[string]mesh.Axes{}
	for _, p := range e.Model().Params() {
		r.axes[p.Name] = p.Terms & mesh.DenseData
		r.names = append(r.names, p.Name)
	}
	for _, p := range states(e) {
		r.states = append(r.states, p.Name)
	}
}

func (r *reference) reduced(e *parallel.Engine, step int) {
	r.moments[step].grads = keep(gradients(e))
}

func (r *reference) updated(e *parallel.Engine, step int, result parallel.Result) {
	m := &r.moments[step]
	m.params = keep(parameters(e))
	m.loss, m.norm = result.Loss, result.Norm
}

// keep copies the pieces of a rank that holds all.
func keep(pieces []piece) map[string]*whole {
	all := map[string]*whole{}
	for _, p := range pieces {
		w := all[p.param.Name]
		if w == nil {
			w = &whole{shape: p.param.Shape, data: make([]float64, regionOf(p.param.Shape).Elements())}
			all[p.param.Name] = w
		}
		data := floats(p.tensor)
		w.each(0, 0, p.region, func(i, n int) { data = data[copy(w.data[i:i+n], data):] })
	}
	return all
}

// regionOf is all of a tensor.
func regionOf(shape []int) mesh.Region {
	r := make(mesh.Region, len(shape))
	for dim, n := range shape {
		r[dim].Stop = n
	}
	return r
}

// finish computes what errors are relative to.
func (r *reference) finish() {
	weigh(r.initial)
	for i := range r.moments {
		weigh(r.moments[i].grads)
		weigh(r.moments[i].params)
	}
}

// before is the parameters at the beginning of a step.
func (r *reference) before(step int) map[string]*whole {
	if step == 0 {
		return r.initial
	}
	return r.moments[step-1].params
}

// weigh sets the scale of tensors of one kind.
func weigh(all map[string]*whole) {
	largest := 0.0
	for _, w := range all {
		for _, v := range w.data {
			w.size = max(w.size, math.Abs(v))
		}
		largest = max(largest, w.size)
	}
	for _, w := range all {
		w.scale = max(w.size, Floor*largest)
	}
}

// part is a copy of a region, in the order of its elements.
func (w *whole) part(r mesh.Region) []float64 {
	out := make([]float64, 0, r.Elements())
	w.each(0, 0, r, func(i, n int) { out = append(out, w.data[i:i+n]...) })
	return out
}

// each visits the runs of adjacent elements that lie in the region of the dims from dim on, given the index of the dims
// before.
func (w *whole) each(dim, index int, r mesh.Region, visit func(start, n int)) {
	index *= w.shape[dim]
	if dim == len(r)-1 {
		visit(index+r[dim].Start, r[dim].Len())
		return
	}
	for i := r[dim].Start; i < r[dim].Stop; i++ {
		w.each(dim+1, index+i, r, visit)
	}
}

// piece is what a rank holds of a parameter, or of its gradient.
type piece struct {
	param  *nn.Param
	region mesh.Region // of the global tensor
	tensor *tensor.Tensor
}

// gradients are the reduced gradients that a rank holds.
func gradients(e *parallel.Engine) (pieces []piece) {
	for _, p := range e.State().Gradients() {
		pieces = append(pieces, piece{p.Param, p.Region, p.Tensor})
	}
	return pieces
}

// parameters are the parameters that a rank holds, and what else training changes of a model.
func parameters(e *parallel.Engine) (pieces []piece) {
	if e.Model().Value == nil { // lent for a unit's work only
		for _, p := range e.State().Parameters() {
			pieces = append(pieces, piece{p.Param, p.Region, p.Tensor})
		}
		return pieces
	}
	for _, p := range slices.Concat(e.Model().Params(), states(e)) {
		pieces = append(pieces, piece{p, p.Region, p.Value})
	}
	return pieces
}

// states are what training changes beside the parameters.
func states(e *parallel.Engine) (list []*nn.Param) {
	for _, u := range e.Model().Units {
		list = append(list, u.States...)
	}
	return list
}

// floats is a copy of a tensor's elements.
func floats(t *tensor.Tensor) []float64 { return append([]float64(nil), t.F64()...) }
