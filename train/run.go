package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"carve/checkpoint"
	"carve/comm"
	"carve/data"
	"carve/parallel"
	"carve/plan"
	"carve/trace"
	"carve/unit"
)

// Run trains a plan in a new folder, from the initial weights to the last step.
func Run(ctx context.Context, o Options) (Summary, error) {
	s := newSession(o)
	if err := Check(o.Plan); err != nil {
		return Summary{}, input(err)
	}
	if err := o.fits(o.Plan); err != nil {
		return Summary{}, input(err)
	}
	for _, n := range Notes(o.Plan) {
		s.Sink.Event(Warning{n})
	}
	s.plan = portable(o.Plan)
	return s.run(ctx)
}

// Resume goes on with the run in the folder, from its newest whole checkpoint, or from the beginning when it has none.
// The result is, to the bit, that of the run that was not interrupted. Options.Plan and Options.Time are not used.
func Resume(ctx context.Context, o Options) (Summary, error) {
	s := newSession(o)
	var err error
	if s.plan, err = ReadPlan(o.Directory.Path); err != nil {
		return Summary{}, input(err)
	}
	if err := Check(s.plan); err != nil {
		return Summary{}, input(err)
	}
	if err := s.openCheckpoint(); err != nil {
		return Summary{}, input(err)
	}
	if s.from != nil {
		defer s.from.Close()
		if sum, ok := s.Directory.finished(s.from.Step); ok && s.from.Step == s.plan.Steps() {
			s.Sink.Event(sum)
			return sum, nil
		}
	}
	if err := o.fits(s.plan); err != nil {
		return Summary{}, input(err)
	}
	return s.run(ctx)
}

// session is one process's part of a run.
type session struct {
	Options
	plan plan.Plan
	now  func() int64
	from *checkpoint.Checkpoint // nil for a run from the beginning
}

func newSession(o Options) *session {
	if o.Sink == nil {
		o.Sink = nobody{}
	}
	if o.Cores == 0 {
		o.Cores = runtime.GOMAXPROCS(0)
	}
	return &session{Options: o, now: clock()}
}

// openCheckpoint finds where the run goes on, and warns of every newer checkpoint that is damaged.
func (s *session) openCheckpoint() error {
	root := s.Directory.Checkpoints()
	c, refused, err := checkpoint.Latest(root)
	if errors.Is(err, checkpoint.ErrNone) && len(refused) == 0 {
		s.Sink.Event(Warning{fmt.Errorf("train: %s has no checkpoint, so the run begins anew from step 1", root)})
		return nil // the run ended before its first checkpoint, or somebody deleted them
	}
	if err != nil {
		return fmt.Errorf("%w; put an undamaged copy back, or remove all of them to begin anew", err)
	}
	for _, r := range refused {
		s.Sink.Event(Warning{r})
	}
	if c.Plan != planHash(s.plan) {
		c.Close()
		return fmt.Errorf("train: %s was saved under another plan than %s; put the plan back as it was, or start another run with --plan", c.Path, s.Directory.file(planFile))
	}
	s.from = c
	return nil
}

// run prepares the data, trains, and writes down how it ended.
func (s *session) run(ctx context.Context) (Summary, error) {
	corpus, err := s.prepare(ctx)
	if err != nil {
		return Summary{}, err
	}
	defer corpus.close()
	done := 0
	if s.from != nil {
		done = s.from.Step
	}
	m, err := openMetrics(s.Directory.file(metricsFile), done)
	if err != nil {
		return Summary{}, err
	}
	j := s.job(corpus, m)
	if j.position, err = s.position(corpus); err != nil {
		return Summary{}, input(errors.Join(err, m.close()))
	}
	if len(s.Emulate.Levels) > 0 {
		if j.links, err = comm.NewEmulated(s.plan.Layout.World(), s.Emulate); err != nil {
			return Summary{}, input(errors.Join(err, m.close(), s.Directory.discard()))
		}
	}
	j.timelines = make([]*timeline, s.plan.Layout.World())
	j.watchdog = comm.NewWatchdog(comm.WatchdogOptions{Limit: time.Duration(float64(s.HangLimit) * float64(time.Second))})
	err = j.launch(ctx, func(ctx context.Context, w *worker) error { return w.run(ctx) })
	if closed := m.close(); err == nil {
		err = closed
	}
	if outOfMemory(err) && j.report.last.Step == 0 { // nothing was learned
		return Summary{}, errors.Join(input(err), s.Directory.discard())
	}
	if wrote := s.writeTrace(j.timelines); err == nil {
		err = wrote
	}
	if wrote := s.writeFlight(j.watchdog, err); err == nil {
		err = wrote
	}
	if err != nil {
		return Summary{}, blame(err)
	}
	return s.finish(j.report)
}

// job describes the run to its ranks.
func (s *session) job(c *corpus, m *metrics) *job {
	world := s.plan.Layout.World()
	j := &job{
		plan: s.plan, threads: max(1, s.Cores/world), arenaLimit: s.ArenaLimit, now: s.now, stop: s.Stop, dir: s.Directory,
		began: s.now(), loader: c.loader, evaluation: c.evaluation, from: s.from, held: c.dataset.Validation.Identity(),
	}
	if s.from == nil {
		j.budget = s.Time
	}
	j.report = &report{
		sink: tee{m, s.Sink}, plan: s.plan, val: m.val, last: Step{Loss: m.loss},
		peak: s.Peak.Of(parallel.DType(s.plan.Precision)) * unit.FLOPsPerSecond(min(s.Cores, world*j.threads)),
		keep: func(p plan.Plan) error { return s.Directory.write(planFile, plan.Encode(p)) },
	}
	return j
}

// position is where a checkpoint stands in the data.
type position struct {
	data.State
	Held string `json:"held_out"` // identity of the text that is not trained on
}

// position is where in the data the run goes on; nil for the beginning. The text must be what it was.
func (s *session) position(c *corpus) (*data.State, error) {
	if s.from == nil {
		return nil, nil
	}
	var at position
	if err := json.Unmarshal(s.from.Data, &at); err != nil {
		return nil, fmt.Errorf("train: the position in the data that %s holds cannot be read: %w; resume from an older checkpoint: remove this one", s.from.Path, err)
	}
	l, err := c.loader(0, &at.State)
	if err != nil {
		return nil, err
	}
	l.Close()
	if now := c.dataset.Validation.Identity(); at.Held != now {
		return nil, fmt.Errorf("train: the held-out text of %s is not what it was: %w since the run began; put the text back, or start a new run", c.path, data.ErrChanged)
	}
	return &at.State, nil
}

// writeTrace writes the timelines of the ranks for Perfetto.
func (s *session) writeTrace(timelines []*timeline) error {
	f, err := os.Create(s.Directory.file(traceFile))
	if err != nil {
		return fmt.Errorf("train: %w", err)
	}
	var recorders []*trace.Recorder
	for _, t := range timelines {
		if t != nil {
			recorders = append(recorders, t.recorder)
		}
	}
	if err := errors.Join(trace.WriteChrome(f, trace.Perfetto, recorders...), f.Close()); err != nil {
		return fmt.Errorf("train: writing %s: %w", f.Name(), err)
	}
	return nil
}

// finish writes the summary.
func (s *session) finish(r *report) (Summary, error) {
	sum := r.summary()
	sum.Elapsed, sum.Path = seconds(s.now()), s.Directory.Path
	if text, ok := Encode(sum); ok {
		if err := s.Directory.write(summaryFile, append(text, '\n')); err != nil {
			return sum, err
		}
	}
	s.Sink.Event(sum)
	return sum, nil
}
