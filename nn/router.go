package nn

import "carve/tensor"

// Router chooses the experts of every row and weighs them. It is whole on every rank, and so are its logits, in full
// precision whatever the model's: a product of the rows with the matrix [E H], accumulated and kept in fp32 (fp64).
type Router struct {
	weight *weight // [E H]
	gating tensor.Gating
	bias   *Param // [E], full precision, added to scores for the choice; nil for none
}

// routes is what a router says of one micro-batch's N rows.
type routes struct {
	scores *tensor.Tensor // [N E], full precision
	choice *tensor.Tensor // int32 [N k]
	gate   *tensor.Tensor // [N k], full precision
	push   *tensor.Tensor // [B E], the gradient of the auxiliary loss by a sequence's scores; nil for none
	span   span           // of the rows among those of sequences
}

// span says which sequence, or run of one, a row belongs to: row i to number (first+i)/length.
type span struct{ first, length int }

func (s *routes) free() {
	s.scores.Free()
	s.choice.Free()
	s.gate.Free()
	s.push.Free()
	*s = routes{}
}

func (s *routes) each(visit func(**tensor.Tensor)) {
	visit(&s.scores)
	visit(&s.choice)
	visit(&s.gate)
	visit(&s.push)
}

// experts is E.
func (l *Router) experts() int { return l.weight.value.Dim(0) }

// forward routes the rows of n [N H], which stays the caller's.
func (l *Router) forward(r *Rank, n *tensor.Tensor) routes {
	rows, k := n.Rows(), l.gating.PerToken
	s := routes{
		scores: r.statistics(rows, l.experts()),
		choice: r.Arena.New(tensor.Activation, tensor.Int32, rows, k),
		gate:   r.statistics(rows, k),
	}
	r.Dev.MatMul(tensor.MatMul{C: s.scores, A: n, B: l.weight.value, TransB: true})
	op := tensor.Route{Gating: l.gating, Scores: s.scores, Choice: s.choice, Gate: s.gate}
	if l.bias != nil {
		op.Bias = l.bias.Value
	}
	r.Dev.Route(op)
	return s
}

// backward adds the router's share to the gradient dn [N H] of the rows. pull holds the gradient of each slot's gate, times the
// gate, at the slot of each choice that at names; nil means in the order of choices. The gradient of the logits takes the
// place of the scores.
func (l *Router) backward(r *Rank, s *routes, dn, at, pull *tensor.Tensor) {
	r.Dev.RouteBackward(tensor.RouteBackward{
		Gating: l.gating, Scores: s.scores, Choice: s.choice, Gate: s.gate, At: at, Pull: pull,
		Push: s.push, First: s.span.first, Length: s.span.length,
	})
	r.Dev.MatMul(tensor.MatMul{C: dn, A: s.scores, B: l.weight.value, Accumulate: true})
}

// weightGrad adds to the matrix's gradient, after backward. n stays the caller's.
func (l *Router) weightGrad(r *Rank, s *routes, n *tensor.Tensor) {
	r.Dev.MatMul(tensor.MatMul{C: l.weight.grad, A: s.scores, B: n, TransA: true, Accumulate: l.weight.fresh()})
}
