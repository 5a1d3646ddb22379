package nn

import "carve/tensor"

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
	index   int // among the model's layers with experts
	norm    norm
	router  Router
	experts experts
	shared  *sharedExperts // nil for none
	// rows says which of the micro-batch's rows this rank of the tensor axis routes.
	rows rowShare

	drop      dropout   // of what is added to x
	capacity  float64   // of an expert, relative to an even share; 0 for no limit
	auxiliary auxiliary // no loss with a coefficient of 0
	rate      float64   // of the router's bias
	// chosen and dropped are this rank's load since the last call of [Model.SettleExperts].
	chosen  []int64
	dropped int64

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
	batch    *Batch
	total    int            // T
	x        *tensor.Tensor // [T H], this rank's rows
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

// Each implements [Saved].
func (s *moeSaved) Each(visit func(**tensor.Tensor)) {
	visit(&s.x)
	s.stats.each(visit)
	s.routes.each(visit)
	for _, t := range [...]**tensor.Tensor{
		&s.dispatch.at, &s.dispatch.from, &s.dispatch.regroup, &s.dispatch.order,
		&s.experts.x, &s.experts.u, &s.experts.gate, &s.shared.u,
	} {
		visit(t)
	}
	s.shared.gate.each(visit)
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

// alone tells whether the rows that this rank routes are those of its residual stream, no more and no fewer, so that what comes back
// is no term of a sum over the tensor axis.
func (l *MoE) alone(r *Rank) bool { return l.rows == ownRows && r.scattered() }

// gather returns all T rows of t, which has those of the residual stream, if they are needed here; else t.
func (l *MoE) gather(r *Rank, t *tensor.Tensor, rows int) *tensor.Tensor {
	if l.alone(r) && l.shared == nil {
		return t
	}
	return r.gather(t, rows)
}

// routed is a view of the rows that this rank routes, of t or of all, which gather made of it.
func (l *MoE) routed(r *Rank, t, all *tensor.Tensor) *tensor.Tensor {
	switch {
	case l.alone(r):
		all = t
	case l.rows == ownRows:
		rows := r.block(all.Rows(), position(r.Groups.Tensor))
		return all.RowRange(rows.Start, rows.Stop)
	}
	return all.RowRange(0, all.Rows())
}

// Forward implements [Layer]. What it keeps across a wait is in s and in locals: another micro-batch may run meanwhile.
func (l *MoE) Forward(r *Rank, b *Batch, x *tensor.Tensor) (*tensor.Tensor, Saved) {
	r.Arena.At(l.name)
	s := l.begin(x)
	s.batch, s.total = b, b.rows()
	n := r.activation(x.Rows(), x.Cols())
	s.stats = l.norm.forward(r, whole(n), whole(x))
	all := l.gather(r, n, s.total)
	rows, gates := l.send(r, b, s, n, all)
	y := l.first(r, s, all, x)
	drop(all, n)
	n.Free()
	s.experts.x, s.experts.gate = s.dispatch.arrived(r, rows), s.dispatch.arrived(r, gates)
	out := l.experts.forward(r, s.dispatch.own, &s.experts)
	y = l.receive(r, s, s.dispatch.back(r, r.Groups.Expert, out), y)
	switch {
	case l.drop.on(b):
		l.drop.apply(r, b, y, y, x)
	case l.last(r, b):
		r.Dev.Add(y, x)
	}
	if !b.Mode.Keeps() {
		s.Free()
		return y, nil
	}
	return y, s
}

// send routes this rank's rows and starts their way to the experts.
func (l *MoE) send(r *Rank, b *Batch, s *moeSaved, n, all *tensor.Tensor) (rows, gates exchange) {
	own := l.routed(r, n, all)
	defer own.Free()
	s.routes = l.router.forward(r, own)
	first := 0
	if l.rows == ownRows {
		first = r.block(s.total, position(r.Groups.Tensor)).Start
	}
	s.routes.span = span{first, b.sequence()}
	d, g := s.dispatch, r.Groups.Expert
	sorted := d.deal(r, s.routes, l.router.experts(), l.admission(r, b, first))
	if b.Mode.Counts() {
		l.note(d)
	}
	if b.Mode.Trains() && l.auxiliary.coefficient > 0 {
		l.auxiliary.assess(r, b, l.router.gating, &s.routes, l.rows)
	}
	d.meet(r, g)
	gates = d.forth(r, g, sorted)
	return d.forth(r, g, d.gather(r, g, own)), gates
}

// last tells whether the residual stream is added when the rest of the sum is complete, and not as part of one term.
func (l *MoE) last(r *Rank, b *Batch) bool { return l.drop.on(b) || r.scattered() && !l.alone(r) }

// first is what does not depend on the experts, for receive to add to: the shared experts' result, and the residual stream x
// unless that comes last.
func (l *MoE) first(r *Rank, s *moeSaved, all, x *tensor.Tensor) (y *tensor.Tensor) {
	residual := x
	if l.last(r, s.batch) || !l.alone(r) && !leads(r.Groups.Tensor) {
		residual = nil
	}
	switch {
	case l.shared != nil && l.alone(r):
		y = r.scatterSum(l.shared.forward(r, &s.shared, all, nil))
		if residual != nil {
			r.Dev.Add(y, residual)
		}
	case l.shared != nil:
		y = l.shared.forward(r, &s.shared, all, residual)
	case residual != nil:
		y = r.activation(x.Rows(), x.Cols())
		r.Dev.Copy(y, residual)
	default:
		y = r.activation(all.Rows(), x.Cols())
		r.Dev.Fill(y, 0)
	}
	return y
}

// receive waits for slots and adds them to the rows of y that they came from. It returns this rank's rows of the sum.
func (l *MoE) receive(r *Rank, s *moeSaved, x exchange, y *tensor.Tensor) *tensor.Tensor {
	l.collect(r, s, x, y)
	if l.alone(r) {
		return y
	}
	return r.scatterSum(y)
}

// collect waits for slots and adds them to the rows of y that they came from.
func (l *MoE) collect(r *Rank, s *moeSaved, x exchange, y *tensor.Tensor) {
	slots, own := x.wait(), l.routed(r, y, y)
	s.dispatch.scatter(r, own, slots)
	own.Free()
	slots.Free()
}

// Backward implements [Layer]. It waits as Forward does.
func (l *MoE) Backward(r *Rank, dy *tensor.Tensor, saved Saved) *tensor.Tensor {
	r.Arena.At(l.name)
	s := saved.(*moeSaved)
	d, g := s.dispatch, r.Groups.Expert
	dropped := l.drop.backward(r, s.batch, dy)
	all := l.gather(r, dropped, s.total)
	own := l.routed(r, dropped, all)
	sent := d.forth(r, g, d.gather(r, g, own))
	own.Free()
	dn := l.firstBackward(r, s, all, dropped)
	drop(dropped, dy)
	dx, pull := l.experts.backward(r, d.own, d.arrived(r, sent), &s.experts)
	pulls := d.back(r, g, pull)
	l.collect(r, s, d.back(r, g, dx), dn)
	l.routerBackward(r, s, pulls, dn)
	if !l.alone(r) {
		dn = r.scatterSum(dn)
	}
	n := l.norm.residual(r, dy, dn, s.x, s.stats)
	s.stats = normStats{}
	l.weightGrad(r, s, n)
	s.Free()
	return dy
}

// firstBackward is the shared experts' share of the gradient of n, or zero, for collect to add to. It takes over all where
// that is a copy of dy.
func (l *MoE) firstBackward(r *Rank, s *moeSaved, all, dy *tensor.Tensor) (dn *tensor.Tensor) {
	if l.shared == nil {
		dn = r.activation(all.Rows(), all.Cols())
		drop(all, dy)
		r.Dev.Fill(dn, 0)
		return dn
	}
	dn = l.shared.backward(r, &s.shared, all, dy)
	if l.alone(r) {
		return r.scatterSum(dn)
	}
	return dn
}

// routerBackward waits for the gradients of the gates and adds the router's share to dn.
func (l *MoE) routerBackward(r *Rank, s *moeSaved, pulls exchange, dn *tensor.Tensor) {
	pull, own := pulls.wait(), l.routed(r, dn, dn)
	l.router.backward(r, &s.routes, own, s.dispatch.at, pull)
	own.Free()
	pull.Free()
}

// weightGrad is the gradients of the matrices that read n: the router's, and the shared experts' first. It takes over n.
func (l *MoE) weightGrad(r *Rank, s *moeSaved, n *tensor.Tensor) {
	all := l.gather(r, n, s.total)
	own := l.routed(r, n, all)
	l.router.weightGrad(r, &s.routes, own)
	own.Free()
	if l.shared == nil {
		drop(all, n)
		n.Free()
		return
	}
	if all != n {
		n.Free()
	}
	l.shared.weightGrad(r, &s.shared, all)
}
