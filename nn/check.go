package nn

import (
	"fmt"
	"math"
	"slices"

	"carve/tensor"
)

// NonFiniteError names the first place where a NaN or an infinity shows.
type NonFiniteError struct {
	Layer string // module, or parameter for What "value" and "gradient"
	What  string // "value", "output", "loss", "input gradient" or "gradient"
}

func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("nn: first non-finite number in the %s of %s; "+
		"use a lower learning rate, a longer warm-up, clipping, or fp32", e.What, e.Layer)
}

// Order is the place of the finding in a step: values come before outputs, outputs before the loss, and so on. Findings
// of ranks of a pipeline are compared by it.
func (e *NonFiniteError) Order() int {
	return slices.Index([]string{"value", "output", "loss", "input gradient", "gradient"}, e.What)
}

// Inspector looks at what passes through a rank and remembers the first thing that is not finite. The passes go on, so
// that ranks stay together.
type Inspector struct {
	rank  *Rank
	first *NonFiniteError
}

// Inspect returns a rank like r, whose passes through chunks show the inspector every layer's output, the loss, and
// the gradient of every layer's input.
func (r *Rank) Inspect() (*Rank, *Inspector) {
	i := &Inspector{rank: r}
	watched := *r
	watched.inspector = i
	return &watched, i
}

// Values looks at the parameters of a model.
func (i *Inspector) Values(m *Model) {
	for _, u := range m.Units {
		u.enter(i.rank, Run)
		for _, p := range u.Params {
			i.look(p.Name, "value", p.Value)
		}
		u.leave(i.rank, Run)
	}
}

// Gradients looks at the gradients of a model that has memory for them, from the last parameter to the first.
func (i *Inspector) Gradients(m *Model) {
	if m.Grad == nil {
		return
	}
	for _, p := range slices.Backward(m.params) {
		i.look(p.Name, "gradient", p.Grad)
	}
}

// Gradient looks at a block of a parameter's gradient.
func (i *Inspector) Gradient(name string, t *tensor.Tensor) { i.look(name, "gradient", t) }

// First is the first finding, or nil.
func (i *Inspector) First() *NonFiniteError { return i.first }

// look inspects a tensor, which may be nil. A nil inspector sees nothing.
func (i *Inspector) look(layer, what string, t *tensor.Tensor) {
	if i != nil && t != nil && i.first == nil && !i.rank.Dev.Finite(t) {
		i.first = &NonFiniteError{Layer: layer, What: what}
	}
}

// loss inspects the loss of a head.
func (i *Inspector) loss(layer string, loss float64) {
	if i != nil && i.first == nil && (math.IsNaN(loss) || math.IsInf(loss, 0)) {
		i.first = &NonFiniteError{Layer: layer, What: "loss"}
	}
}

// Check runs forward and backward of a micro-batch on a model that is one chunk, and looks at every parameter, every
// layer's output, the loss, every layer's gradient and every parameter's gradient, in this order. It returns a
// *NonFiniteError for the first that is not finite, and nil when all are. It overwrites the gradients and b.Loss. On
// a mesh every rank calls it, and returns its own finding.
func (m *Model) Check(r *Rank, b *Batch) error {
	watched, i := r.Inspect()
	i.Values(m)
	m.Begin()
	m.Backward(watched, m.Forward(watched, b), nil)
	i.Gradients(m)
	if i.first == nil {
		return nil
	}
	return i.first
}
