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

// Check runs forward and backward of a micro-batch and looks at every parameter, every layer's output, the loss,
// every layer's gradient and every parameter's gradient, in this order. It returns a *NonFiniteError for the first
// that is not finite, and nil when all are. It overwrites the gradients and b.Loss. On a mesh every rank
// calls it, and returns its own finding.
func (m *Model) Check(r *Rank, b *Batch) error {
	c := checker{r: r}
	for _, p := range m.params {
		c.look(p.Name, "value", p.Value)
	}
	m.Begin()
	m.begin(b, Train)
	saved := c.forward(m, b)
	c.backward(m, saved)
	for _, p := range slices.Backward(m.params) {
		c.look(p.Name, "gradient", p.Grad)
	}
	if c.first == nil {
		return nil
	}
	return c.first
}

// checker remembers the first finding; the passes go on, so that ranks stay together.
type checker struct {
	r     *Rank
	first *NonFiniteError
}

// look inspects a tensor, which may be nil.
func (c *checker) look(layer, what string, t *tensor.Tensor) {
	if t != nil && c.first == nil && !c.r.Dev.Finite(t) {
		c.first = &NonFiniteError{Layer: layer, What: what}
	}
}

func (c *checker) forward(m *Model, b *Batch) (saved []Saved) {
	var x *tensor.Tensor
	for _, u := range m.Units {
		for _, l := range u.Layers {
			var s Saved
			x, s = l.Forward(c.r, b, x)
			c.look(l.Name(), "output", x)
			saved = append(saved, s)
		}
	}
	if c.first == nil && (math.IsNaN(b.Loss) || math.IsInf(b.Loss, 0)) {
		c.first = &NonFiniteError{Layer: m.head().Name(), What: "loss"}
	}
	return saved
}

func (c *checker) backward(m *Model, saved []Saved) {
	var dx *tensor.Tensor
	for _, u := range slices.Backward(m.Units) {
		for _, l := range slices.Backward(u.Layers) {
			last := len(saved) - 1
			dx = l.Backward(c.r, dx, saved[last])
			saved = saved[:last]
			c.look(l.Name(), "input gradient", dx)
		}
	}
}
