package main

import (
	"fmt"
	"io"
	"strings"

	"carve/cmd/carve/internal/terminal"
	"carve/price"
	"carve/search"
	"carve/unit"
)

// layoutEvent is a layout in carve plan --json.
type layoutEvent struct {
	DP         int    `json:"dp"`
	TP         int    `json:"tp"`
	PP         int    `json:"pp"`
	CP         int    `json:"cp"`
	EP         int    `json:"ep"`
	SP         bool   `json:"sequence_parallel"`
	Zero       int    `json:"zero"`
	Schedule   string `json:"schedule"`
	Virtual    int    `json:"virtual"`
	MicroBatch int    `json:"micro_batch"`
	Recompute  string `json:"recompute"`
}

// choiceEvent is the first line of carve plan --json; alternatives follow as alternativeEvent.
type choiceEvent struct {
	Event      string                  `json:"event"` // "choice"
	Layout     layoutEvent             `json:"layout"`
	Step       unit.Seconds            `json:"step_seconds"`
	MFU        float64                 `json:"mfu"`
	Throughput float64                 `json:"tokens_per_second_per_device"`
	Peak       unit.Bytes              `json:"peak_bytes"`
	Bubble     float64                 `json:"bubble"`
	Exposed    map[string]unit.Seconds `json:"exposed"`
	Run        unit.Seconds            `json:"run_seconds"`
	Evaluated  int                     `json:"evaluated"`
	Seconds    unit.Seconds            `json:"seconds"`
	Reasons    []string                `json:"reasons"`
}

// alternativeEvent is a neighbour of the choice, or a point of the front of time and memory.
type alternativeEvent struct {
	Event  string       `json:"event"` // "alternative" or "pareto"
	Change string       `json:"change,omitempty"`
	Layout layoutEvent  `json:"layout"`
	Step   unit.Seconds `json:"step_seconds"`
	Peak   unit.Bytes   `json:"peak_bytes"`
	Fits   bool         `json:"fits"`
	Legal  bool         `json:"legal"`
	Reason string       `json:"reason,omitempty"`
}

// found is a search and its answer.
type found struct {
	question search.Question
	answer   *search.Answer
	seconds  unit.Seconds
}

// event is a layout's.
func (f found) layout(l price.Layout) layoutEvent {
	schedule := "1f1b"
	if p := f.answer.Plan; l == f.answer.Best.Layout {
		schedule = p.Layout.Pipeline.Schedule.String()
	} else if l.PP > 1 {
		schedule = search.ScheduleName(l)
	}
	recompute := "none"
	if l.Recompute == price.FullBlock {
		recompute = "full"
	}
	return layoutEvent{l.DP, l.TP, l.PP, l.CP, l.EP, l.SequenceParallel, l.Zero, schedule, l.Virtual, l.MicroBatch, recompute}
}

// exposedTimes names the parts of a time that a rank stands still.
func exposedTimes(t price.Time) map[string]unit.Seconds {
	return map[string]unit.Seconds{"dp": t.DP, "tp": t.TP, "pp": t.PP, "cp": t.CP, "ep": t.EP}
}

// rates are MFU and tokens a second of a device.
func (f found) rates() (mfu, throughput float64) {
	t := float64(f.answer.Best.Time.Step)
	return search.MFU(f.question, f.answer.Best), float64(f.answer.Plan.StepTokens()) / t / float64(f.answer.Plan.Layout.World())
}

// printJSON writes the choice, its neighbours and the front.
func (f found) printJSON(out io.Writer) error {
	b := f.answer.Best
	mfu, throughput := f.rates()
	e := choiceEvent{
		"choice", f.layout(b.Layout), b.Time.Step, mfu, throughput, b.Memory.Peak, float64(b.Time.Bubble / b.Time.Step), exposedTimes(b.Time),
		b.Time.Step * unit.Seconds(f.answer.Plan.Steps()), f.answer.Evaluated, f.seconds, f.answer.Reasons,
	}
	if err := printJSON(out, e); err != nil {
		return err
	}
	for _, a := range f.answer.Alternatives {
		if err := printJSON(out, alternativeEvent{"alternative", a.Change, f.layout(a.Layout), a.Time.Step, a.Memory.Peak, a.Fits, a.Legal, a.Why}); err != nil {
			return err
		}
	}
	for _, c := range f.answer.Pareto {
		if err := printJSON(out, alternativeEvent{"pareto", "", f.layout(c.Layout), c.Time.Step, c.Memory.Peak, true, true, ""}); err != nil {
			return err
		}
	}
	return nil
}

// print writes the choice for people.
func (f found) print(out io.Writer, path string) error {
	var b strings.Builder
	best := f.answer.Best
	mfu, throughput := f.rates()
	fmt.Fprintf(&b, "layout   %s\n", search.Describe(best.Layout))
	fmt.Fprintf(&b, "step     %v: %.0f tokens/s a device, MFU %.1f %%, bubble %.1f %%; %d steps take %s\n", best.Time.Step, throughput, 100*mfu,
		100*float64(best.Time.Bubble/best.Time.Step), f.answer.Plan.Steps(), days(best.Time.Step*unit.Seconds(f.answer.Plan.Steps())))
	fmt.Fprintf(&b, "memory   %v of %v\n", best.Memory.Peak, f.question.Machine.Cluster.Device.Memory)
	fmt.Fprintf(&b, "search   %s layouts in %v, priced as %s runs them\n\nwhy\n", terminal.Thousands(int64(f.answer.Evaluated)), f.seconds, f.question.Profile.Name)
	for i, reason := range f.answer.Reasons {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, reason)
	}
	b.WriteString("\nneighbours\n")
	var rows [][]string
	for _, a := range f.answer.Alternatives {
		step := "-"
		if a.Legal {
			step = a.Time.Step.String()
		}
		rows = append(rows, []string{a.Change, step, a.Why})
	}
	b.WriteString(terminal.Table([]string{"instead", " step", "why not"}, rows))
	if path != "" {
		fmt.Fprintf(&b, "\nwritten to %s\n", path)
	}
	_, err := io.WriteString(out, b.String())
	return err
}
