package nn

import "carve/tensor"

// Observer is shown what passes between the layers of a rank while they run: who looks for the place where a layout goes
// wrong. What it is shown stays the layers'.
type Observer interface {
	// Observe is shown a layer's output, or the gradient of its input, of the micro-batch that begins with the given
	// sample of the global batch ([Batch.Sample]). The rank holds its compute token.
	Observe(sample int, layer string, what Seen, t *tensor.Tensor)
}

// Seen is what an [Observer] is shown.
type Seen string

// What is seen, in the words of [NonFiniteError].
const (
	Output        Seen = "output"         // of a layer, [T H] as this rank has it
	InputGradient Seen = "input gradient" // of a layer, likewise
)

// look shows a tensor, which may be nil, to whoever looks.
func (r *Rank) look(b *Batch, layer string, what Seen, t *tensor.Tensor) {
	r.inspector.look(layer, string(what), t)
	if r.Observer != nil && t != nil {
		r.Observer.Observe(b.Sample, layer, what, t)
	}
}
