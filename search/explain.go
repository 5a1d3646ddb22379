package search

import (
	"fmt"
	"strings"

	"carve/model"
	"carve/plan"
	"carve/price"
	"carve/unit"
)

// Alternative is the choice with one decision changed.
type Alternative struct {
	Candidate
	Change string // "zero 3", "tp 4"
	Fits   bool
	Legal  bool
	Why    string // it was not chosen, with numbers
}

// Describe is a layout in a line.
func Describe(l price.Layout) string {
	var parts []string
	for _, d := range []struct {
		name   string
		degree int
	}{{"dp", l.DP}, {"tp", l.TP}, {"pp", l.PP}, {"cp", l.CP}, {"ep", l.EP}} {
		if d.degree > 1 {
			parts = append(parts, fmt.Sprintf("%s %d", d.name, d.degree))
		}
	}
	if parts == nil {
		parts = []string{"1 rank"}
	}
	text := strings.Join(parts, " × ")
	if l.SequenceParallel {
		text += ", sp"
	}
	if l.PP > 1 {
		text += ", " + scheduleName(l)
	}
	text += fmt.Sprintf(", zero %d, micro-batch %d", l.Zero, l.MicroBatch)
	if l.Recompute == price.FullBlock {
		text += ", full recompute"
	}
	return text
}

// scheduleName is the name of a layout's schedule.
func scheduleName(l price.Layout) string {
	switch l.Schedule {
	case price.OneForwardOneBackward:
		return "1f1b"
	case price.AllForwardAllBackward:
		return "afab"
	case price.Interleaved:
		return fmt.Sprintf("interleaved by %d", l.Virtual)
	case price.ZeroBubble:
		return "zb-h1"
	case price.VShape:
		return "zb-v"
	case price.DualPipe:
		return "dualpipe"
	}
	return "?"
}

// change is a decision that a neighbour takes otherwise.
type change struct {
	name string
	make func(l *price.Layout) bool // false where there is no such neighbour
}

// swap moves a factor of two between an axis and the data axis.
func swap(name string, axis func(*price.Layout) *int, up bool) change {
	return change{name, func(l *price.Layout) bool {
		a := axis(l)
		switch {
		case up && l.DP%2 == 0:
			*a, l.DP = *a*2, l.DP/2
		case !up && *a%2 == 0:
			*a, l.DP = *a/2, l.DP*2
		default:
			return false
		}
		return true
	}}
}

// changes are the neighbours in the order of the explanation.
func changes(l price.Layout) (all []change) {
	for zero := range 4 {
		all = append(all, change{fmt.Sprintf("zero %d", zero), func(l *price.Layout) bool { l.Zero = zero; return true }})
	}
	axes := []struct {
		name string
		of   func(*price.Layout) *int
	}{
		{"tp", func(l *price.Layout) *int { return &l.TP }},
		{"pp", func(l *price.Layout) *int { return &l.PP }},
		{"cp", func(l *price.Layout) *int { return &l.CP }},
		{"ep", func(l *price.Layout) *int { return &l.EP }},
	}
	for _, a := range axes {
		all = append(all, swap(fmt.Sprintf("%s %d", a.name, *a.of(&l)*2), a.of, true), swap(fmt.Sprintf("%s %d", a.name, *a.of(&l)/2), a.of, false))
	}
	for _, b := range []int{l.MicroBatch / 2, l.MicroBatch * 2} {
		all = append(all, change{fmt.Sprintf("micro-batch %d", b), func(l *price.Layout) bool { l.MicroBatch = b; return b > 0 }})
	}
	all = append(all,
		change{"full recompute", func(l *price.Layout) bool { l.Recompute = price.FullBlock; return true }},
		change{"no recompute", func(l *price.Layout) bool { l.Recompute = price.KeepAll; return true }})
	for _, s := range []price.Layout{{Schedule: price.OneForwardOneBackward, Virtual: 1}, {Schedule: price.Interleaved, Virtual: 2}, {Schedule: price.ZeroBubble, Virtual: 1}, {Schedule: price.VShape, Virtual: 1}, {Schedule: price.DualPipe, Virtual: 1}} {
		all = append(all, change{scheduleName(s), func(l *price.Layout) bool {
			l.Schedule, l.Virtual = s.Schedule, s.Virtual
			return l.PP > 1
		}})
	}
	return all
}

// explain prices the neighbours of the best and says why it is the best.
func (s *finder) explain() {
	q, best := s.question, s.answer.Best
	for _, c := range changes(best.Layout) {
		l := best.Layout
		if strings.HasPrefix(c.name, "ep ") && q.Plan.Model.Config.Experts.Count == 0 {
			continue
		}
		if !c.make(&l) || l == best.Layout {
			continue
		}
		l.SequenceParallel = l.TP > 1 && (l.MicroBatch*q.Plan.Workload.Sequence/l.CP)%l.TP == 0
		s.answer.Alternatives = append(s.answer.Alternatives, q.alternative(c.name, l, best))
	}
	s.answer.Reasons = s.reasons()
}

// alternative prices a neighbour.
func (q *Question) alternative(name string, l price.Layout, best Candidate) Alternative {
	a := Alternative{Candidate: Candidate{Layout: l}, Change: name}
	if _, err := q.plan(l); err != nil {
		a.Why, _, _ = strings.Cut(strings.TrimPrefix(err.Error(), "plan: "), "\n")
		return a
	}
	j := q.job(l)
	var err error
	if a.Time, a.Memory, err = price.Of(&j, &q.Machine, &q.Profile); err != nil {
		a.Why = err.Error()
		return a
	}
	a.Legal, a.Fits = true, a.Memory.Peak <= q.room()
	if a.Why = q.ruled(l); a.Why == "" {
		a.Why = q.why(a.Candidate, best)
	}
	return a
}

// ruled says which of the rules of the search leaves a legal layout out, or nothing.
func (q *Question) ruled(l price.Layout) string {
	j := q.job(l)
	switch {
	case l.TP > q.domain():
		return fmt.Sprintf("leaves the fast domain of %d devices, which is tried only when nothing fits within", q.domain())
	case l.CP > 1 && q.Plan.Workload.Sequence < long*l.CP:
		return fmt.Sprintf("splits sequences into less than %d tokens", long)
	case l.Zero > 1 && l.PP > 1:
		return "gathers or reduces for every micro-batch of a pipeline"
	case l.Schedule == price.VShape && j.Micros() < 2*l.PP-1:
		return fmt.Sprintf("has %d micro-batches, too few to fill the V of %d ranks", j.Micros(), l.PP)
	}
	return ""
}

// why says what is wrong with a legal neighbour.
func (q *Question) why(a, best Candidate) string {
	if a.Memory.Peak > q.room() {
		line, bytes := a.Memory.Largest()
		return fmt.Sprintf("does not fit: %v of %v, %v of it %s", a.Memory.Peak, q.room(), bytes, line)
	}
	slower := a.Time.Step - best.Time.Step
	if -slower < best.Time.Step/10000 && slower <= 0 {
		return fmt.Sprintf("fits with %v to spare and is as fast: the choice is simpler", q.room()-a.Memory.Peak)
	}
	if slower <= 0 {
		return fmt.Sprintf("fits with %v to spare and is %v faster: less than its complication is worth (%.1f %%)",
			q.room()-a.Memory.Peak, -slower, 100*(simplicity(a.Layout)/simplicity(best.Layout)-1))
	}
	name, more := most(a.Time, best.Time)
	return fmt.Sprintf("fits with %v to spare and is %v (%.1f %%) slower: %v more %s", q.room()-a.Memory.Peak, slower, 100*float64(slower/best.Time.Step), more, name)
}

// most is what grew most between two times.
func most(a, b price.Time) (name string, more unit.Seconds) {
	for _, part := range []struct {
		name string
		more unit.Seconds
	}{
		{"computing", a.Compute - b.Compute},
		{"bubble", a.Bubble - b.Bubble},
		{"exposed tensor-parallel communication", a.TP - b.TP},
		{"exposed context-parallel communication", a.CP - b.CP},
		{"exposed expert dispatch", a.EP - b.EP},
		{"messages between stages", a.PP - b.PP},
		{"exposed data-parallel communication", a.DP - b.DP},
		{"optimizer", a.Update - b.Update},
	} {
		if part.more > more {
			name, more = part.name, part.more
		}
	}
	return name, more
}

// reasons are the decisions in their order, each with its numbers.
func (s *finder) reasons() []string {
	q, l, m, t := s.question, s.answer.Best.Layout, s.answer.Best.Memory, s.answer.Best.Time
	list := []string{
		fmt.Sprintf("memory: %v of %v a device on stage %d: parameters %v, gradients %v, optimizer %v, activations %v",
			m.Peak, q.room(), m.Stage, m.Parameters, m.Gradients, m.Optimizer, m.Activations),
		fmt.Sprintf("zero %d: %s", l.Zero, s.lower("zero ")),
		fmt.Sprintf("data: %d ranks share %d sequences, %d micro-batches of %d each; %v of its communication is exposed",
			l.DP*l.EP, q.Plan.Workload.GlobalBatch, q.Plan.Workload.GlobalBatch/(l.MicroBatch*l.DP*l.EP), l.MicroBatch, t.DP),
		fmt.Sprintf("tensor %d on domains of %d devices: %v exposed", l.TP, q.domain(), t.TP),
	}
	if l.PP > 1 {
		list = append(list, fmt.Sprintf("pipeline %d, %s: bubble of %.1f %%", l.PP, scheduleName(l), 100*float64(t.Bubble/t.Step)))
	} else {
		list = append(list, "no pipeline: "+s.neighbour("pp 2"))
	}
	if l.CP > 1 {
		list = append(list, fmt.Sprintf("context %d: sequences of %d tokens; %v exposed", l.CP, q.Plan.Workload.Sequence, t.CP))
	} else {
		list = append(list, "no context axis: "+s.neighbour("cp 2"))
	}
	if q.Plan.Model.Config.Experts.Count > 0 {
		list = append(list, fmt.Sprintf("experts %d of %d a rank: dispatch exposes %v", q.Plan.Model.Config.Experts.Count/l.EP, q.Plan.Model.Config.Experts.Count, t.EP))
	}
	if l.Recompute == price.FullBlock {
		list = append(list, "full recompute: without it, "+s.neighbour("no recompute"))
	}
	return list
}

// domain is the size of the fastest domain of links.
func (q *Question) domain() int {
	if levels := q.Machine.Cluster.Levels; len(levels) > 0 {
		return levels[0].Size
	}
	return 1
}

// neighbour is why a neighbour was not chosen.
func (s *finder) neighbour(name string) string {
	for _, a := range s.answer.Alternatives {
		if a.Change == name {
			return name + " " + a.Why
		}
	}
	return name + " has no place"
}

// lower says why the stage below was not taken, or the one above.
func (s *finder) lower(prefix string) string {
	zero := s.answer.Best.Layout.Zero
	if zero > 0 {
		return s.neighbour(prefix + fmt.Sprint(zero-1))
	}
	return s.neighbour(prefix + "1")
}

// ScheduleName is the name of a layout's schedule, with its chunks.
func ScheduleName(l price.Layout) string { return scheduleName(l) }

// MFU is the model's operations over what the devices could do at the peak of the plan's precision in a step.
func MFU(q Question, c Candidate) float64 {
	useful := float64(q.Plan.Model.Config.TrainingFLOPs(q.Plan.Workload.Sequence, model.Causal).Total()) * float64(q.Plan.StepTokens())
	peak := q.Machine.Cluster.Device.Peak.BF16
	if q.Plan.Precision != plan.BF16 || peak == 0 {
		peak = q.Machine.Cluster.Device.Peak.FP32
	}
	return useful / (float64(peak) * float64(c.Time.Step) * float64(c.Layout.World()))
}
