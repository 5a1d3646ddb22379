package optim

import "carve/nn"

// span is a run [lo, hi) of the flat buffers that an operation can treat as one.
type span struct {
	lo, hi int
	decay  bool
}

// sameRun joins all neighbours.
func sameRun(*nn.Param, *nn.Param) bool { return true }

// sameDecay joins neighbours of one weight-decay group.
func sameDecay(p, q *nn.Param) bool { return p.Decay == q.Decay }

// spansOf covers the chosen parameters, which are in the order of the flat buffers, with the fewest runs of neighbours that
// may be joined.
func spansOf(params []*nn.Param, choose func(*nn.Param) bool, join func(p, q *nn.Param) bool) (spans []span) {
	var before *nn.Param
	for _, p := range params {
		switch {
		case !choose(p):
			before = nil
			continue
		case before != nil && join(before, p):
			spans[len(spans)-1].hi = p.Offset + p.Len()
		default:
			spans = append(spans, span{p.Offset, p.Offset + p.Len(), p.Decay})
		}
		before = p
	}
	return spans
}
