package optim

import (
	"carve/nn"
	"carve/tensor"
)

// Algorithm is a rule by which parameters are updated: [AdamWOptions], [SGDOptions] or [MuonOptions].
type Algorithm interface {
	// check tells why the rule cannot work under the options.
	check(r *nn.Rank, o Options) error
	// whole tells whether the update of a parameter needs all of it at once.
	whole(p *nn.Param) bool
	// kinds are the moments that the rule remembers of a parameter.
	kinds(p *nn.Param) []StateKind
	// update makes one step of a slot.
	update(r *nn.Rank, s *slot, c change)
}

// change is what the updates of one step have in common.
type change struct {
	rate  float64
	scale float64 // of the gradients
	step  int     // counted from 1
}

// StateKind is what a tensor of the state holds.
type StateKind string

// The kinds, named as in PyTorch's checkpoints where that has them.
const (
	Value    StateKind = "value"           // a parameter
	Gradient StateKind = "gradient"        // of a step, reduced
	Master   StateKind = "master"          // the parameter in full precision
	First    StateKind = "exp_avg"         // first moment
	Second   StateKind = "exp_avg_sq"      // second moment
	Momentum StateKind = "momentum_buffer" // of SGD and Muon
)

// wide is the dtype of masters, moments and sums for parameters of dtype d.
func wide(d tensor.DType) tensor.DType {
	if d == tensor.FP64 {
		return tensor.FP64
	}
	return tensor.FP32
}

// slot is a run of elements that this rank updates in one go, of parameters that are treated alike.
type slot struct {
	lo, hi      int // in the flat buffers of the model
	decay       bool
	value, grad *tensor.Tensor
	master      *tensor.Tensor // value itself unless that is bf16
	kinds       []StateKind
	moments     []*tensor.Tensor // one per kind
	params      []*nn.Param
	whole       *nn.Param // not nil for a whole tensor; then all have its shape
	owned       bool      // this rank is the first of those that keep it
}

// copyOut is the parameter that receives the rounded master, or nil when the master is the parameter.
func (s *slot) copyOut() *tensor.Tensor {
	if s.master == s.value {
		return nil
	}
	return s.value
}

// remember makes zero moments and room for the master.
func (s *slot) remember(r *nn.Rank) {
	shape := s.value.Shape()
	for range s.kinds {
		t := r.Arena.New(tensor.Optimizer, wide(r.DType), shape...)
		r.Dev.Fill(t, 0)
		s.moments = append(s.moments, t)
	}
	s.master = s.value
	if r.DType == tensor.BF16 {
		s.master = r.Arena.New(tensor.Optimizer, tensor.FP32, shape...)
	}
}
