package sim

import (
	"carve/trace"
)

// Timeline keeps the spans of a simulation as traces of the ranks that were simulated: give its Watch to [Run].
type Timeline struct {
	ranks []int
	spans [][]Span
}

// NewTimeline makes a timeline for stages whose ranks are given.
func NewTimeline(ranks []int) *Timeline {
	return &Timeline{ranks: ranks, spans: make([][]Span, len(ranks))}
}

// Watch keeps a span.
func (t *Timeline) Watch(s Span) { t.spans[s.Stage] = append(t.spans[s.Stage], s) }

// Len is the number of spans.
func (t *Timeline) Len() (n int) {
	for _, s := range t.spans {
		n += len(s)
	}
	return n
}

// Recorders are the spans as events of package trace, one recorder for each stage: computing on one lane, communication of every
// axis on another.
func (t *Timeline) Recorders() []*trace.Recorder {
	var all []*trace.Recorder
	for stage, spans := range t.spans {
		r := trace.NewRecorder(t.ranks[stage], trace.Options{Events: len(spans) + 1})
		compute := r.Lane("compute")
		var lanes [AxisCount]trace.Lane
		for a := range lanes {
			lanes[a] = r.Lane(Axis(a).String())
		}
		for _, s := range spans {
			e := trace.Span{Name: s.Name, Category: trace.Compute, Lane: compute, Start: tick(float64(s.Start)), End: tick(float64(s.End))}
			if s.Kind != Compute {
				e.Category, e.Lane = trace.Comm, lanes[s.Axis]
			}
			r.Span(e)
		}
		all = append(all, r)
	}
	return all
}

// tick is a time in whole nanoseconds.
func tick(seconds float64) trace.Tick { return trace.Tick(seconds * 1e9) }
