package train

import (
	"carve/parallel"
	"carve/trace"
)

// operation is what a rank does, for its timeline and for the error of what fails.
type operation uint8

// The operations.
const (
	building operation = iota
	restoring
	validating
	loading
	stepping
	exchanging
	saving
	searching
)

// String is the name in errors and on the timeline.
func (o operation) String() string {
	return [...]string{
		building: "building of the model", restoring: "reading of the checkpoint", validating: "validation",
		loading: "data", stepping: "step", exchanging: "exchange of results", saving: "checkpoint",
		searching: "search for the first non-finite number",
	}[o]
}

// category is what the operation's time goes into.
func (o operation) category() trace.Category {
	switch o {
	case loading:
		return trace.Data
	case exchanging:
		return trace.Comm
	case restoring, saving:
		return trace.Checkpoint
	case building, validating, stepping, searching:
		return trace.Compute
	}
	return trace.Compute
}

// categoryOf is what a phase's time goes into.
func categoryOf(p parallel.Phase) trace.Category {
	if p.Communicates() {
		return trace.Comm
	}
	return trace.Compute
}

// timeline records a rank's operations one after the other. A nil timeline records nothing.
type timeline struct {
	recorder *trace.Recorder
	now      func() int64
	lane     trace.Lane
	steps    trace.Lane
	open     string
	into     trace.Category
	since    trace.Tick
	stepped  trace.Tick
}

// newTimeline makes the recorder of a rank.
func newTimeline(rank int, now func() int64) *timeline {
	r := trace.NewRecorder(rank, trace.Options{})
	t := &timeline{recorder: r, now: now}
	t.steps, t.lane = r.Lane("steps"), r.Lane("rank")
	t.since = trace.Tick(now())
	t.stepped = t.since
	return t
}

// enter ends the operation under way and begins another.
func (t *timeline) enter(name string, into trace.Category) {
	if t == nil {
		return
	}
	at := trace.Tick(t.now())
	if t.open != "" {
		t.recorder.Span(trace.Span{Name: t.open, Category: t.into, Lane: t.lane, Start: t.since, End: at})
	}
	t.open, t.into, t.since = name, into, at
}

// step ends a step and begins the next.
func (t *timeline) step(number int, tokens int64) {
	if t == nil {
		return
	}
	at := trace.Tick(t.now())
	t.recorder.Span(trace.Span{
		Name: "step", Category: trace.Step, Lane: t.steps, Start: t.stepped, End: at,
		Args: trace.Args{{Key: "step", Value: int64(number)}, {Key: "tokens", Value: tokens}},
	})
	t.stepped = at
}
