package search

import (
	"errors"
	"fmt"

	"carve/cost"
	"carve/model"
	"carve/plan"
	"carve/price"
	"carve/unit"
)

// Question is what a layout is sought for.
type Question struct {
	Plan     plan.Plan // model, workload, cluster, precision: the layout in it does not matter
	Machine  cost.Machine
	Profile  price.Profile
	Headroom float64 // part of the device's memory that is left alone, 0 to 1
}

// Candidate is a layout with its price.
type Candidate struct {
	Layout price.Layout
	Time   price.Time
	Memory price.Memory
}

// Answer is what was found.
type Answer struct {
	Best         Candidate
	Plan         plan.Plan   // of the best, valid
	Pareto       []Candidate // time against memory, fastest first
	Alternatives []Alternative
	Reasons      []string
	Evaluated    int // layouts that were priced
}

// ErrNothingFits is the error of a model that no layout fits on the cluster.
var ErrNothingFits = errors.New("search: nothing fits")

// job is the job of a question under a layout.
func (q *Question) job(l price.Layout) price.Job {
	f := price.BF16
	if q.Plan.Precision != plan.BF16 {
		f = price.FP32
	}
	return price.Job{Model: q.Plan.Model.Config, Sequence: q.Plan.Workload.Sequence, GlobalBatch: q.Plan.Workload.GlobalBatch, Format: f, Layout: l}
}

// room is the memory that a layout may take.
func (q *Question) room() unit.Bytes {
	return unit.Bytes(float64(q.Machine.Cluster.Device.Memory)*(1-q.Headroom)/q.Profile.Reserved - q.Profile.Context)
}

// check returns what is wrong with a question.
func (q *Question) check() error {
	w := q.Plan.Workload
	switch {
	case w.Sequence < 1 || w.Sequence > 1<<28 || w.GlobalBatch < 1 || w.GlobalBatch > 1<<28:
		return fmt.Errorf("search: sequences of %d tokens, %d of them in a step; use 1 to %d of both", w.Sequence, w.GlobalBatch, 1<<28)
	case !(q.Headroom >= 0 && q.Headroom < 1):
		return fmt.Errorf("search: a headroom of %v; use 0 up to 1", q.Headroom)
	}
	return q.Plan.Model.Config.Validate()
}

// visit calls f with every layout that keeps the rules and has a tensor degree of at most fast, those with the same price of a layer next to each other.
func (q *Question) visit(fast int, f func(l price.Layout, fresh bool)) {
	c, world := &q.Plan.Model.Config, q.Machine.Cluster.Devices()
	for _, tp := range q.tensors(fast) {
		for _, cp := range powers(min(world/tp, q.Plan.Workload.Sequence/long)) {
			if world%(tp*cp) != 0 || cp > 1 && q.Plan.Workload.Sequence%(2*cp) != 0 {
				continue
			}
			for _, ep := range experts(c, world/(tp*cp)) {
				q.inner(price.Layout{TP: tp, CP: cp, EP: ep, ExpertTP: 1, Virtual: 1}, f)
			}
		}
	}
}

// long is the tokens of a sequence that a context rank has at least: shorter ones gain nothing from being split.
const long = 8192

// tensors are the tensor degrees that the heads, widths and the cluster allow.
func (q *Question) tensors(most int) (list []int) {
	c, machine := &q.Plan.Model.Config, &q.Machine.Cluster
	for tp := 1; tp <= min(most, 64, machine.Devices()); tp++ {
		whole := c.KVHeads%tp == 0 || tp%c.KVHeads == 0
		if machine.Devices()%tp == 0 && c.Heads%tp == 0 && whole && c.FFN%tp == 0 && c.Experts.SharedFFN%tp == 0 && tp <= c.Vocab {
			list = append(list, tp)
		}
	}
	return list
}

// powers are the powers of two from 1 up to a number.
func powers(most int) (list []int) {
	for n := 1; n <= max(1, most); n *= 2 {
		list = append(list, n)
	}
	return list
}

// experts are the degrees over which the experts lie evenly.
func experts(c *model.Config, most int) (list []int) {
	list = []int{1}
	for ep := 2; ep <= min(c.Experts.Count, most); ep++ {
		if c.Experts.Count%ep == 0 && most%ep == 0 {
			list = append(list, ep)
		}
	}
	return list
}

// inner goes through what does not need the groups of layers to be found anew.
func (q *Question) inner(l price.Layout, f func(price.Layout, bool)) {
	batch, world := q.Plan.Workload.GlobalBatch, q.Machine.Cluster.Devices()
	rest := world / (l.TP * l.CP * l.EP)
	for l.MicroBatch = 1; l.MicroBatch <= min(16, batch); l.MicroBatch *= 2 {
		rows := l.MicroBatch * q.Plan.Workload.Sequence / l.CP
		l.SequenceParallel = l.TP > 1 && rows%l.TP == 0
		for _, l.Recompute = range []price.Recompute{price.KeepAll, price.FullBlock} {
			fresh := true
			for pp := 1; pp <= min(rest, q.Plan.Model.Config.Layers); pp++ {
				l.PP, l.DP = pp, rest/pp
				if rest%pp != 0 || batch%(l.MicroBatch*l.DP*l.EP) != 0 {
					continue
				}
				q.schedules(l, func(l price.Layout) {
					f(l, fresh)
					fresh = false
				})
			}
		}
	}
}

// schedules goes through the orders of a pipeline and the stages of state sharding.
func (q *Question) schedules(l price.Layout, f func(price.Layout)) {
	layers, micros := q.Plan.Model.Config.Layers, q.Plan.Workload.GlobalBatch/(l.MicroBatch*l.DP*l.EP)
	try := func(s price.Schedule, virtual int) {
		l.Schedule, l.Virtual = s, virtual
		last := 3
		if l.PP > 1 {
			last = 1 // gathering or reducing for every micro-batch of a pipeline costs more than it saves
		}
		for l.Zero = 0; l.Zero <= last; l.Zero++ {
			if l.Zero == 0 || l.DP*l.CP*l.EP > 1 {
				f(l)
			}
		}
	}
	try(price.OneForwardOneBackward, 1)
	if l.PP == 1 {
		return
	}
	for v := 2; v <= 8 && l.PP*v <= layers && micros%l.PP == 0; v *= 2 {
		try(price.Interleaved, v)
	}
	try(price.ZeroBubble, 1)
	if 2*l.PP <= layers && micros >= 2*l.PP-1 {
		try(price.VShape, 1)
	}
	if l.PP%2 == 0 && micros%2 == 0 && micros >= 2*l.PP {
		try(price.DualPipe, 1)
	}
}
