package main

import (
	"fmt"
	"io"
	"strings"

	"carve/cmd/carve/internal/terminal"
	"carve/sim"
	"carve/unit"
	"carve/verify"
)

// simulateEvent is what carve simulate --json prints.
type simulateEvent struct {
	Event      string                  `json:"event"` // "simulation"
	Layout     string                  `json:"layout"`
	World      int                     `json:"world"`
	Step       unit.Seconds            `json:"step_seconds"`
	Bubble     float64                 `json:"bubble"`
	MFU        float64                 `json:"mfu"`
	HFU        float64                 `json:"hfu"`
	Throughput float64                 `json:"tokens_per_second_per_device"`
	Exposed    map[string]unit.Seconds `json:"exposed"`
	Stages     []stageTime             `json:"stages"`
	Events     int                     `json:"events"`
	Goodput    float64                 `json:"goodput"`
	Interval   unit.Seconds            `json:"checkpoint_interval_seconds"`
	Best       unit.Seconds            `json:"best_checkpoint_interval_seconds"`
	BestPart   float64                 `json:"best_goodput"`
	Failures   unit.Seconds            `json:"seconds_between_failures"`
	Steps      int                     `json:"steps"`
	Run        unit.Seconds            `json:"run_seconds"` // with failures
	Energy     float64                 `json:"energy_joules"`
	RunEnergy  float64                 `json:"run_energy_joules"`
}

// stageTime is where a stage's time went.
type stageTime struct {
	Compute unit.Seconds            `json:"compute"`
	Bubble  unit.Seconds            `json:"bubble"`
	Exposed map[string]unit.Seconds `json:"exposed"`
}

// exposedMap names the axes that cost anything.
func exposedMap(e [sim.AxisCount]unit.Seconds) map[string]unit.Seconds {
	m := map[string]unit.Seconds{}
	for a, s := range e {
		if s > 0 {
			m[sim.Axis(a).String()] = s
		}
	}
	return m
}

// runTime is how long the whole run takes, with failures.
func (s simulated) runTime() unit.Seconds {
	return s.result.Step * unit.Seconds(s.plan.Steps()) / unit.Seconds(s.goodput.Part)
}

// power is that of all devices at their limits, in watts.
func (s simulated) power() float64 {
	return float64(s.machine.Cluster.Device.Power) * float64(s.plan.Layout.World())
}

func (s simulated) event() simulateEvent {
	r := s.result
	e := simulateEvent{
		Event: "simulation", Layout: verify.Describe(s.plan), World: s.plan.Layout.World(), Step: r.Step, Bubble: r.Bubble(),
		MFU: r.MFU(s.plan, s.machine), HFU: r.HFU(s.plan, s.machine), Throughput: r.Throughput(s.plan), Exposed: exposedMap(r.Exposed()),
		Events: s.timeline.Len(), Goodput: s.goodput.Part, Interval: s.goodput.Every, Best: s.best.Every, BestPart: s.best.Part, Failures: s.goodput.Between, Steps: s.plan.Steps(),
		Run: s.runTime(), Energy: s.power() * float64(r.Step), RunEnergy: s.power() * float64(s.runTime()),
	}
	for _, stage := range r.Stages {
		e.Stages = append(e.Stages, stageTime{stage.Compute, stage.Bubble, exposedMap(stage.Exposed)})
	}
	return e
}

// print writes the simulation for people.
func (s simulated) print(out io.Writer) error {
	var b strings.Builder
	r := s.result
	fmt.Fprintf(&b, "plan     %s on %s\n", verify.Describe(s.plan), s.machine.Cluster.Device.Name)
	fmt.Fprintf(&b, "step     %v: %.0f tokens/s a device, MFU %.1f %%, HFU %.1f %%, bubble %.1f %%\n",
		r.Step, r.Throughput(s.plan), 100*r.MFU(s.plan, s.machine), 100*r.HFU(s.plan, s.machine), 100*r.Bubble())
	fmt.Fprintf(&b, "run      %d steps in %s; %d devices fail every %s, checkpoints every %s leave %.1f %% of the time, every %s %.1f %%\n",
		s.plan.Steps(), days(s.runTime()), s.plan.Layout.World(), days(s.goodput.Between), days(s.goodput.Every), 100*s.goodput.Part, days(s.best.Every), 100*s.best.Part)
	fmt.Fprintf(&b, "energy   %.3g kWh a step, %.3g MWh a run, at the limit of board power\n", s.power()*float64(r.Step)/3.6e6, s.power()*float64(s.runTime())/3.6e9)
	if !s.machine.Known {
		fmt.Fprintf(&b, "note     no constants are known for this device: those of others are taken\n")
	}
	b.WriteString("\n" + s.table())
	_, err := io.WriteString(out, b.String())
	return err
}

// table has a row for each stage: where its time went, in parts of the step.
func (s simulated) table() string {
	heading := []string{" stage", " compute", " bubble"}
	mean := s.result.Exposed()
	for a, e := range mean {
		if e > 0 {
			heading = append(heading, " "+sim.Axis(a).String()+" exposed")
		}
	}
	part := func(x unit.Seconds) string { return fmt.Sprintf("%.1f %%", 100*float64(x/s.result.Step)) }
	var rows [][]string
	for i, stage := range s.result.Stages {
		row := []string{fmt.Sprint(i), part(stage.Compute), part(stage.Bubble)}
		for a, e := range mean {
			if e > 0 {
				row = append(row, part(stage.Exposed[a]))
			}
		}
		rows = append(rows, row)
	}
	return terminal.Table(heading, rows)
}

// days is a length of time for people who plan.
func days(s unit.Seconds) string {
	switch {
	case s >= 2*86400:
		return fmt.Sprintf("%.1f days", float64(s)/86400)
	case s >= 2*3600:
		return fmt.Sprintf("%.1f hours", float64(s)/3600)
	case s >= 120:
		return fmt.Sprintf("%.1f minutes", float64(s)/60)
	}
	return s.String()
}
