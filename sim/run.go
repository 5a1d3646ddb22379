package sim

import (
	"fmt"

	"carve/schedule"
	"carve/unit"
)

// Straggler is a rank that computes more slowly than the others of its stage.
type Straggler struct {
	Stage  int
	Factor float64 // of its time, from 1 up
}

// Options say what is unlike on some ranks, and who watches.
type Options struct {
	Stragglers []Straggler
	// Watch is told of everything that takes time, in the order of each stage; nil means nobody is.
	Watch func(Span)
}

// Span is a stretch of time on a stage's rank.
type Span struct {
	Stage      int
	Name       string
	Kind       Kind // Compute for an action of the schedule, Blocking for a collective or a message on its way
	Axis       Axis
	Start, End unit.Seconds
}

// Result is one step.
type Result struct {
	Step   unit.Seconds // until the last stage has ended
	Stages []Stage
}

// Stage is where the time of a stage's ranks went.
type Stage struct {
	End     unit.Seconds
	Compute unit.Seconds
	FLOPs   unit.FLOPs
	Exposed [AxisCount]unit.Seconds
	Bubble  unit.Seconds // waiting for others to begin
}

// Run executes a program with the work of each of its ranks.
func Run(program *schedule.Program, work []*Work, o Options) (*Result, error) {
	if len(work) != len(program.Ranks) {
		return nil, fmt.Errorf("sim: work of %d stages for a program of %d", len(work), len(program.Ranks))
	}
	s := &simulation{program: program, options: o, arrivals: map[message][]arrival{}, meetings: map[meeting]*met{}}
	for i, w := range work {
		p := &process{simulation: s, stage: i, work: w, factor: 1, counts: count(program.Ranks[i]), seen: map[key]int{}, started: map[int][]flight{}, numbers: map[int]int{}}
		s.processes = append(s.processes, p)
	}
	for _, x := range o.Stragglers {
		if x.Stage < 0 || x.Stage >= len(work) || !(x.Factor >= 1 && x.Factor <= 1e6) {
			return nil, fmt.Errorf("sim: a straggler of %v times on stage %d; use stage 0 to %d and a factor from 1 up", x.Factor, x.Stage, len(work)-1)
		}
		s.processes[x.Stage].factor *= x.Factor
	}
	return s.run()
}

// simulation is what the stages share.
type simulation struct {
	program   *schedule.Program
	options   Options
	processes []*process
	arrivals  map[message][]arrival // in the order of sending, not yet received
	meetings  map[meeting]*met
}

// message is a stream of messages from one stage to another.
type message struct {
	from, to int
	op       schedule.Op // of the send
}

// arrival is a message on its way.
type arrival struct{ at, length unit.Seconds }

// meeting is one collective of several stages: its group and number there.
type meeting struct {
	group  string
	number int
}

// met is who has come to a meeting.
type met struct {
	come int
	last unit.Seconds
}

// run lets every stage go as far as it can until all have ended.
func (s *simulation) run() (*Result, error) {
	for moved := true; moved; {
		moved = false
		for _, p := range s.processes {
			went, err := p.advance()
			if err != nil {
				return nil, err
			}
			moved = moved || went
		}
	}
	r := &Result{}
	for _, p := range s.processes {
		if !p.ended() {
			return nil, fmt.Errorf("sim: stage %d waits for ever at action %d of %d", p.stage, p.next, len(s.program.Ranks[p.stage]))
		}
		p.account.End = p.now
		r.Step = max(r.Step, p.now)
		r.Stages = append(r.Stages, p.account)
	}
	for i := range r.Stages { // who has ended waits for the others before the next step
		r.Stages[i].Bubble += r.Step - r.Stages[i].End
	}
	return r, nil
}

// count is how many actions of each kind a list has.
func count(list []schedule.Action) map[key]int {
	n := map[key]int{}
	for _, a := range list {
		n[keyOf(a)]++
	}
	return n
}
