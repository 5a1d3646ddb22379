package price

import (
	"math"

	"carve/unit"
)

// memory is that of the fuller of the first and the last stage.
func (p *pricer) memory(b *Blocks) Memory {
	first := p.stage(b, 0)
	if p.job.Layout.PP == 1 {
		return first
	}
	if last := p.stage(b, p.job.Layout.PP-1); last.Peak > first.Peak {
		return last
	}
	return first
}

// stage is the memory of a pipeline stage.
func (p *pricer) stage(b *Blocks, at int) Memory {
	l, f := p.job.Layout, p.profile
	layers := math.Ceil(b.count / float64(l.PP))
	tables := 0.0
	if at == 0 {
		tables++
	}
	last := at == l.PP-1
	if last && (!p.job.Model.TieEmbeddings || l.PP > 1) {
		tables++
	}
	dense, routed := layers*b.mean.parameters+tables*b.table, layers*b.mean.experts
	if l.Schedule == DualPipe && l.PP > 1 {
		dense, routed = 2*dense, 2*routed
	}
	m := Memory{Stage: at}
	m.Parameters = p.state(dense, routed, f.Parameter, 3)
	m.Gradients = p.state(dense, routed, f.Gradient, 2)
	m.Optimizer = p.state(dense, routed, f.Optimizer, 1)
	m.Activations = unit.Bytes(p.inFlight(at) * layers * b.mean.saved)
	if last {
		m.Head = unit.Bytes(b.head.saved)
	}
	if l.Recompute != KeepAll {
		m.Transient += unit.Bytes(max(0, b.mean.working-b.mean.saved))
	}
	if l.Zero >= 3 {
		m.Transient += unit.Bytes(f.GatheredUnits*(b.mean.parameters+b.mean.experts)*f.GatherBytes + b.mean.parameters*f.ReduceBytes)
	}
	m.Transient += unit.Bytes(4 * b.local * float64(p.job.Model.Hidden))
	if last {
		// Logits live when no other block works.
		m.Peak = m.Parameters + m.Gradients + m.Optimizer + m.Activations + max(m.Head, m.Transient)
		return m
	}
	m.Peak = m.Parameters + m.Gradients + m.Optimizer + m.Activations + m.Transient
	return m
}

// state is the bytes of one kind of state, which is sharded from a stage on.
func (p *pricer) state(dense, routed, perParameter float64, from int) unit.Bytes {
	if p.job.Layout.Zero >= from {
		dense /= float64(p.shard.Size())
		routed /= float64(min(p.experts.Size(), p.shard.Size()))
	}
	return unit.Bytes((dense + routed) * perParameter)
}

// inFlight is how many micro-batches a stage keeps, in units of all its layers.
func (p *pricer) inFlight(at int) float64 {
	l, m := p.job.Layout, float64(p.job.Micros())
	pp, left, v := float64(l.PP), float64(l.PP-at), float64(l.Virtual)
	switch l.Schedule {
	case AllForwardAllBackward:
		return m
	case OneForwardOneBackward:
		return min(left, m)
	case Interleaved:
		return min((2*(left-1)+(v-1)*pp+1)/v, m)
	case ZeroBubble, VShape:
		return min(pp, m)
	case DualPipe:
		return min(pp+1, m)
	}
	return m
}
