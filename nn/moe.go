package nn

import (
	"carve/mesh"
	"carve/tensor"
)

// MoE is the second branch of a block with a mixture of experts:
//
//	y = x + Σ gate_e·expert_e(n) + shared(n),  n = norm(x), over the k experts e that the router chose for the row
//
// Experts lie whole on the ranks of the expert axis, E/EP each. Rows travel to their experts and back by variable
// all-to-all, after the ranks have told each other how many will come.
//
// Of one micro-batch it keeps x [T H], the rows of its experts [R H], their projections [R 2F], the router's scores, choices and
// gates, the lists of who went where, and of the shared experts what [FeedForward] keeps. R is about T·k.
type MoE struct {
	name    string
	norm    norm
	router  Router
	experts experts
	shared  *sharedExperts // nil for none
	// rows says which of the micro-batch's rows this rank of the tensor axis routes.
	rows rowShare

	saved pool[moeSaved]
	lists []*dispatch // spare ones
}

// rowShare is how the tensor axis shares the experts' work.
type rowShare uint8

const (
	allRows rowShare = iota // each rank has a part of every expert, and routes all rows
	ownRows                 // each rank has whole experts, and routes its share of the rows
)

// moeSaved is what one micro-batch leaves for the backward.
type moeSaved struct {
	layer    *MoE
	x        *tensor.Tensor // [T H]
	stats    normStats
	routes   routes
	dispatch *dispatch
	experts  expertsSaved
	shared   sharedSaved
}

// Free gives the memory back.
func (s *moeSaved) Free() {
	s.x.Free()
	s.stats.free()
	s.routes.free()
	s.dispatch.free()
	s.experts.free()
	s.shared.free()
	s.layer.lists = append(s.layer.lists, s.dispatch)
	s.layer.saved.put(s)
}

// begin takes what a micro-batch needs.
func (l *MoE) begin(x *tensor.Tensor) *moeSaved {
	s := l.saved.get()
	s.layer, s.x = l, x
	if last := len(l.lists) - 1; last >= 0 {
		s.dispatch, l.lists = l.lists[last], l.lists[:last]
	} else {
		s.dispatch = new(dispatch)
	}
	return s
}

// Name is the module's name.
func (l *MoE) Name() string { return l.name }

// Params lists the layer's parameters.
func (l *MoE) Params() []*Param {
	params := collect(l.norm.scale, l.norm.shift, l.router.weight)
	if l.shared != nil {
		params = append(params, l.shared.params()...)
	}
	return append(params, l.experts.params()...)
}

// share is the run of rows that this rank routes.
func (l *MoE) share(r *Rank, rows int) mesh.Range {
	if l.rows == allRows {
		return mesh.Range{Stop: rows}
	}
	return mesh.Split(rows, degree(r.Groups.Tensor), position(r.Groups.Tensor))
}

// Forward implements [Layer]. What it keeps across a wait is in s and in locals: another micro-batch may run meanwhile.
func (l *MoE) Forward(r *Rank, b *Batch, x *tensor.Tensor) (*tensor.Tensor, Saved) {
	r.Arena.At(l.name)
	s := l.begin(x)
	n := r.activation(x.Rows(), x.Cols())
	s.stats = l.norm.forward(r, whole(n), whole(x))
	share := l.share(r, x.Rows())
	rows, gates := l.send(r, s, n, share)
	y := l.first(r, s, n, x)
	n.Free()
	s.experts.x, s.experts.gate = s.dispatch.arrived(r, rows), s.dispatch.arrived(r, gates)
	out := l.experts.forward(r, s.dispatch.own, &s.experts)
	l.receive(r, s.dispatch, s.dispatch.back(r, r.Groups.Expert, out), y, share)
	reduce(r.Groups.Tensor, y, tensor.Sum)
	if b.Mode == Evaluate {
		s.Free()
		return y, nil
	}
	return y, s
}

// send routes this rank's share of the rows n and starts their way to the experts.
func (l *MoE) send(r *Rank, s *moeSaved, n *tensor.Tensor, share mesh.Range) (rows, gates exchange) {
	own := n.RowRange(share.Start, share.Stop)
	defer own.Free()
	s.routes = l.router.forward(r, own)
	d, g := s.dispatch, r.Groups.Expert
	sorted := d.deal(r, s.routes, l.router.experts())
	d.meet(r, g)
	gates = d.forth(r, g, sorted)
	return d.forth(r, g, d.gather(r, own)), gates
}

// first is what does not depend on the experts: the residual stream x and the shared experts' result. Ranks of the
// tensor axis have terms of it.
func (l *MoE) first(r *Rank, s *moeSaved, n, x *tensor.Tensor) (y *tensor.Tensor) {
	if !leads(r.Groups.Tensor) {
		x = nil
	}
	if l.shared != nil {
		return l.shared.forward(r, &s.shared, n, x)
	}
	y = r.activation(n.Rows(), n.Cols())
	if x == nil {
		r.Dev.Fill(y, 0)
		return y
	}
	r.Dev.Copy(y, x)
	return y
}

// receive waits for slots and adds them to the rows that they came from.
func (l *MoE) receive(r *Rank, d *dispatch, x exchange, y *tensor.Tensor, share mesh.Range) {
	slots := x.wait()
	own := y.RowRange(share.Start, share.Stop)
	d.scatter(r, own, slots)
	own.Free()
	slots.Free()
}

// Backward implements [Layer].
func (l *MoE) Backward(r *Rank, dy *tensor.Tensor, saved Saved) *tensor.Tensor {
	r.Arena.At(l.name)
	s := saved.(*moeSaved)
	d, g := s.dispatch, r.Groups.Expert
	share := l.share(r, dy.Rows())
	own := dy.RowRange(share.Start, share.Stop)
	sent := d.forth(r, g, d.gather(r, own))
	own.Free()
	dn := l.firstBackward(r, s, dy)
	dx, pull := l.experts.backward(r, d.own, d.arrived(r, sent), &s.experts)
	pulls := d.back(r, g, pull)
	l.receive(r, d, d.back(r, g, dx), dn, share)
	l.routerBackward(r, s, dn, pulls, share)
	reduce(r.Groups.Tensor, dn, tensor.Sum)
	n := l.norm.residual(r, dy, dn, s.x, s.stats)
	s.stats = normStats{}
	own = n.RowRange(share.Start, share.Stop)
	l.router.weightGrad(r, &s.routes, own)
	own.Free()
	l.lastGrad(r, s, n)
	s.Free()
	return dy
}

// firstBackward is the shared experts' share of the gradient of n, or zero.
func (l *MoE) firstBackward(r *Rank, s *moeSaved, dy *tensor.Tensor) (dn *tensor.Tensor) {
	if l.shared != nil {
		return l.shared.backward(r, &s.shared, dy)
	}
	dn = r.activation(dy.Rows(), dy.Cols())
	r.Dev.Fill(dn, 0)
	return dn
}

// routerBackward waits for the gradients of the gates and adds the router's share to dn.
func (l *MoE) routerBackward(r *Rank, s *moeSaved, dn *tensor.Tensor, pulls exchange, share mesh.Range) {
	pull := pulls.wait()
	own := dn.RowRange(share.Start, share.Stop)
	l.router.backward(r, &s.routes, own, s.dispatch.at, pull)
	own.Free()
	pull.Free()
}

// lastGrad is the gradient of the shared experts' first matrix. It takes over n.
func (l *MoE) lastGrad(r *Rank, s *moeSaved, n *tensor.Tensor) {
	if l.shared == nil {
		n.Free()
		return
	}
	l.shared.weightGrad(r, &s.shared, n)
}
