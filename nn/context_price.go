package nn

import (
	"carve/comm"
	"carve/tensor"
	"carve/unit"
)

// ContextShape is what the traffic of one layer over the context axis depends on, for one rank and micro-batch.
type ContextShape struct {
	Degree          int // CP
	Sequences       int // B
	Rows            int // B·S/CP
	Heads, KeyHeads int // A and K of one tensor rank
	Width           int // D
	DType           tensor.DType
}

// Traffic is what a layer does with one kind of operation.
type Traffic struct {
	Op    comm.Op
	Calls int
	Bytes unit.Bytes // in all, counted as [comm.Cost] does; a Send has a Recv of the same size beside it
	// Behind is the share of the layer's attention that goes on meanwhile; 0 means that every rank waits for all of it.
	Behind float64
}

// Forward is what kind k does in the forward of a layer.
func (s ContextShape) Forward(k ContextKind) []Traffic {
	n, block := s.Degree, s.block(s.DType)
	own := 1 / float64(n)
	switch k {
	case ContextRing:
		return []Traffic{{comm.Send, n - 1, unit.Bytes(n-1) * block, 1 - own}}
	case ContextAllGather:
		return []Traffic{{comm.AllGather, 1, unit.Bytes(n) * block, own}}
	case ContextAllToAll:
		return []Traffic{{comm.AllToAll, 2 * s.Sequences, s.swapped(1), 0}}
	}
	return nil
}

// Backward is what kind k does in the backward of a layer.
func (s ContextShape) Backward(k ContextKind) []Traffic {
	n, block, sums := s.Degree, s.block(s.DType), s.block(wide(s.DType))
	own := 1 / float64(n)
	switch k {
	case ContextRing: // the last sum's way home is exposed
		return []Traffic{
			{comm.Send, 2 * (n - 1), unit.Bytes(n-1) * (block + sums), 1 - own},
			{comm.Send, 1, sums, 0},
		}
	case ContextAllGather:
		return []Traffic{
			{comm.AllGather, 1, unit.Bytes(n) * block, own},
			{comm.ReduceScatter, 1, unit.Bytes(n) * block, 0},
		}
	case ContextAllToAll:
		return []Traffic{{comm.AllToAll, 2 * s.Sequences, s.swapped(2), 0}}
	}
	return nil
}

// block is a rank's keys and values.
func (s ContextShape) block(d tensor.DType) unit.Bytes {
	return unit.Bytes(s.Rows * 2 * s.KeyHeads * s.Width * d.Size())
}

// swapped is what is exchanged of query, key and value, with copies of key-value heads where there are fewer than ranks, and
// so many times of the result.
func (s ContextShape) swapped(results int) unit.Bytes {
	features := (1+results)*s.Heads + 2*max(s.KeyHeads, s.Degree)
	return unit.Bytes(s.Rows * features * s.Width * s.DType.Size())
}

// sent is the bytes of t that leave this rank.
func (s ContextShape) sent(t Traffic) unit.Bytes {
	if t.Op == comm.Send {
		return t.Bytes
	}
	return t.Bytes / unit.Bytes(s.Degree) * unit.Bytes(s.Degree-1)
}

// Sent is the bytes that leave this rank in forward and backward of a layer.
func (s ContextShape) Sent(k ContextKind) (sent unit.Bytes) {
	for _, t := range append(s.Forward(k), s.Backward(k)...) {
		sent += s.sent(t)
	}
	return sent
}

// Legal tells whether kind k can split the heads.
func (s ContextShape) Legal(k ContextKind) bool {
	return k != ContextAllToAll || s.Heads%s.Degree == 0 && (s.KeyHeads%s.Degree == 0 || s.Degree%s.KeyHeads == 0)
}

// ContextRates are what a choice between kinds depends on beside the shape.
type ContextRates struct {
	Latency           unit.Seconds // of an operation
	PerByte           unit.Seconds // β
	Forward, Backward unit.Seconds // attention of one layer on this rank
}

// Exposed is the time that a layer's forward and backward wait for the context axis.
func (s ContextShape) Exposed(k ContextKind, c ContextRates) (wait unit.Seconds) {
	add := func(all []Traffic, attention unit.Seconds) {
		for _, t := range all {
			took := unit.Seconds(t.Calls)*c.Latency + unit.Seconds(s.sent(t))*c.PerByte
			wait += max(0, took-unit.Seconds(t.Behind)*attention)
		}
	}
	add(s.Forward(k), c.Forward)
	add(s.Backward(k), c.Backward)
	return wait
}

// Cheapest is the legal kind with the least exposed time; of equals the first in the order of [ContextKind], which is the
// order of the memory they need.
func (s ContextShape) Cheapest(c ContextRates) (best ContextKind) {
	for _, k := range []ContextKind{ContextAllGather, ContextAllToAll} {
		if s.Legal(k) && s.Exposed(k, c) < s.Exposed(best, c) {
			best = k
		}
	}
	return best
}
