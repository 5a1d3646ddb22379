package nn

import "carve/tensor"

// Two ways keep experts evenly loaded.
//
// The auxiliary loss (Shazeer et al. 2017, Fedus et al. 2021) pulls at the router. For a sequence of S rows it is
//
//	Σ_e f_e·P_e,  f_e = E/(k·S)·(rows that chose e),  P_e = 1/S·Σ scores of e (of sigmoid: divided by the row's sum)
//
// which is 1 when the load is even. It is taken by sequence, as DeepSeek-V2 does, so that it does not depend on who has
// which sequences, and a sequence weighs as its S tokens: coefficient·S·[Batch.Scale]. (Transformers' form for Mixtral
// and Qwen counts k times as much and mixes all sequences.)
//
// The bias (Wang et al., arXiv 2408.15664; DeepSeek-V3) is added to scores when experts are chosen, not when they are
// weighed. After every step it grows by a fixed amount for experts with less than the average load, and shrinks for
// the others.

// auxiliary is the balancing loss of a layer.
type auxiliary struct{ coefficient float64 }

// assess sets the gradient of the loss by the scores of s, and adds the loss to the batch. chosen is summed over everyone who
// has rows of a sequence, the scores only where the loss must be the same, over the tensor axis.
func (a auxiliary) assess(r *Rank, b *Batch, g tensor.Gating, s *routes, shared rowShare) {
	e, k := s.scores.Cols(), s.choice.Cols()
	n := b.rows() / b.sequence()
	both := r.statistics(2*n, e)
	s.push = r.statistics(n, e)
	chosen, mass := both.RowRange(0, n), both.RowRange(n, 2*n)
	r.Dev.Tally(tensor.Tally{
		Choice: s.choice, Scores: s.scores, Score: g.Score, Chosen: chosen, Mass: mass, First: s.span.first, Length: s.span.length,
	})
	if shared == ownRows {
		reduce(r.Groups.Tensor, both, tensor.Sum)
	}
	reduce(r.Groups.Context, chosen, tensor.Sum)
	r.Dev.Copy(s.push, chosen)
	length := b.sequence() * degree(r.Groups.Context)
	r.Dev.Scale(s.push, a.coefficient*b.Scale*float64(e)/float64(k*length))
	if b.Mode.Counts() {
		b.Auxiliary += r.product(s.push, mass)
	}
	for _, t := range [...]*tensor.Tensor{chosen, mass, both} {
		t.Free()
	}
	if shared == allRows && !leads(r.Groups.Tensor) { // one of those that route the same rows
		s.push.Free()
		s.push = nil
	}
}

// product is the inner product of two tensors of full precision.
func (r *Rank) product(a, b *tensor.Tensor) float64 {
	one, x, y := r.statistics(1), a.View(1, a.Len()), b.View(1, b.Len())
	r.Dev.DotRows(one, x, y)
	v := number(one)
	for _, t := range [...]*tensor.Tensor{one, x, y} {
		t.Free()
	}
	return v
}

// number is the only element of a tensor of full precision; a device that only records shapes has none.
func number(t *tensor.Tensor) float64 {
	switch {
	case t.Meta():
		return 0
	case t.DType() == tensor.FP64:
		return t.F64()[0]
	}
	return float64(t.F32()[0])
}

// ExpertLoad is the load of one layer's experts over a step.
type ExpertLoad struct {
	Layer   string
	Chosen  []int64 // how many rows of the global batch chose each expert
	Dropped int64   // choices that found no room
}

// Imbalance is the largest load of an expert relative to the average: 1 when all are equal, 0 without any load.
func (l ExpertLoad) Imbalance() float64 { return imbalance(l.Chosen, 1) }

// Straggler is the same of the ranks of an expert axis of the given degree, who wait for the slowest.
func (l ExpertLoad) Straggler(ranks int) float64 { return imbalance(l.Chosen, len(l.Chosen)/ranks) }

// imbalance is the largest sum of runs of size loads, relative to the average.
func imbalance(loads []int64, size int) float64 {
	var total, most int64
	for at := 0; at < len(loads); at += size {
		var run int64
		for _, n := range loads[at : at+size] {
			run += n
		}
		total += run
		most = max(most, run)
	}
	if total == 0 {
		return 0
	}
	return float64(most) * float64(len(loads)/size) / float64(total)
}

// SettleExperts ends a step for the experts: it adds up the loads since the last call over all ranks that have other tokens (on the
// tensor axis only where its ranks route different rows), moves the biases that balance them, and returns the loads of every
// layer with experts, also of other stages, which stay until the next call. All ranks of the job call it together, after
// the last micro-batch.
func (m *Model) SettleExperts(r *Rank) []ExpertLoad {
	if len(m.loads) == 0 {
		return nil
	}
	e := m.Config.Experts.Count
	all := r.Arena.NewZero(tensor.Communication, tensor.FP64, len(m.loads), e+1)
	defer all.Free()
	for _, l := range m.mixing {
		l.report(all, l.index*(e+1))
	}
	reduce(r.Groups.Data, all, tensor.Sum)
	reduce(r.Groups.Pipeline, all, tensor.Sum) // a layer may be on several stages, each with some micro-batches
	if m.rows == ownRows {
		reduce(r.Groups.Tensor, all, tensor.Sum)
	}
	if !all.Meta() {
		for i := range m.loads {
			m.loads[i].read(all.F64()[i*(e+1):])
		}
	}
	for _, l := range m.mixing {
		l.rebalance(r, m.loads[l.index])
	}
	return m.loads
}

// report writes this rank's load, and what was dropped, to t from element at on, and begins anew.
func (l *MoE) report(t *tensor.Tensor, at int) {
	if !t.Meta() {
		x := t.F64()[at:]
		for e, n := range l.chosen {
			x[e] = float64(n)
		}
		x[len(l.chosen)] = float64(l.dropped)
	}
	clear(l.chosen)
	l.dropped = 0
}

func (l *ExpertLoad) read(x []float64) {
	for e := range l.Chosen {
		l.Chosen[e] = int64(x[e])
	}
	l.Dropped = int64(x[len(l.Chosen)])
}

// note counts a micro-batch's choices.
func (l *MoE) note(d *dispatch) {
	for e, n := range d.chosen {
		l.chosen[e] += int64(n)
	}
	l.dropped += int64(sum(d.chosen) - d.slots)
}

// rebalance moves the bias by the rate towards an even load.
func (l *MoE) rebalance(r *Rank, load ExpertLoad) {
	if l.router.bias == nil {
		return
	}
	var total int64
	for _, n := range load.Chosen {
		total += n
	}
	step := r.Arena.NewZero(tensor.Workspace, tensor.FP64, len(load.Chosen))
	defer step.Free()
	if !step.Meta() {
		for e, n := range load.Chosen {
			switch even := total - n*int64(len(load.Chosen)); {
			case even > 0:
				step.F64()[e] = l.rate
			case even < 0:
				step.F64()[e] = -l.rate
			}
		}
	}
	r.Dev.Add(l.router.bias.Value, step)
}
