package train

import (
	"context"
	"fmt"
	"time"

	"carve/checkpoint"
	"carve/comm"
	"carve/data"
	"carve/plan"
	"carve/trace"
	"carve/unit"

	"github.com/cespare/xxhash/v2"
)

// job is what the ranks of this process share. They only read it, but for the ledger.
type job struct {
	plan       plan.Plan
	threads    int        // of each rank
	arenaLimit unit.Bytes // of each rank; 0 for none
	now        func() int64
	stop       <-chan struct{}
	dir        *Directory
	began      int64        // when the time began to count
	budget     unit.Seconds // that the run shall take; 0 when the number of steps is given

	loader     func(rank int, from *data.State) (*data.Loader, error)
	evaluation func(rank int) (*data.Evaluation, error)
	held       string                 // identity of the text that is not trained on
	position   *data.State            // in the data, to go on from; nil for the beginning
	from       *checkpoint.Checkpoint // to go on from; nil for a new run
	report     *report
	ledger     ledger
	timelines  []*timeline    // by rank; nil when none are kept
	watchdog   *comm.Watchdog // of the ranks; nil when nobody watches
	links      *comm.Emulated // between the ranks; nil when they talk as fast as they can
}

// launch runs every rank's work in a goroutine of its own and returns when all have ended. An error of one cancels the
// others.
func (j *job) launch(ctx context.Context, work func(context.Context, *worker) error) error {
	world := comm.NewLocal(j.plan.Layout.World(), comm.LocalOptions{})
	workers, ends := make([]*worker, world.Size()), make([]comm.Endpoint, world.Size())
	for rank := range workers {
		workers[rank] = j.newWorker(j.watch(j.connect(world.Rank(rank))))
		ends[rank] = workers[rank].end
	}
	j.ledger = ledger{shards: make([][]checkpoint.Tensor, world.Size())}
	done := j.beginWatch(ctx)
	err := comm.Run(ctx, ends, func(end comm.Endpoint) error {
		w := workers[end.Rank()]
		return w.guard(func() error { return work(ctx, w) })
	})
	done()
	if closed := world.Close(); err == nil {
		err = closed
	}
	for _, w := range workers { // not before: ranks read each other's memory
		w.close()
	}
	return err
}

// newWorker makes a rank that has nothing yet but its place, its timeline and a measure of its communication.
func (j *job) newWorker(end comm.Endpoint) *worker {
	w := &worker{job: j, plan: j.plan, report: j.report}
	o := comm.ObserveOptions{Clock: func() trace.Tick { return trace.Tick(j.now()) }}
	if j.timelines != nil {
		w.timeline = newTimeline(end.Rank(), j.now)
		o.Trace = w.timeline.recorder
		j.timelines[end.Rank()] = w.timeline
	}
	w.end = comm.Observe(end, o)
	return w
}

// run is the life of one rank in training.
func (w *worker) run(ctx context.Context) error {
	if err := w.build(); err != nil {
		return err
	}
	if err := w.begin(); err != nil {
		return err
	}
	return w.loop(ctx)
}

// begin brings the rank to where the run goes on.
func (w *worker) begin() (err error) {
	if w.job.from != nil {
		if err = w.restore(w.job.from); err != nil {
			return err
		}
	}
	if w.held, err = w.job.evaluation(w.data()); err != nil {
		return err
	}
	if err = w.world.Barrier(); err != nil {
		return err
	}
	if w.leads() {
		w.report.begin(w)
	}
	return nil
}

// data is the rank's position among those that the samples are split over.
func (w *worker) data() int { return w.engine.Data() }

// clock is nanoseconds of a clock that never goes back.
func clock() func() int64 {
	start := time.Now()
	return func() int64 { return int64(time.Since(start)) }
}

// seconds turns nanoseconds of a clock into a span of time.
func seconds(nanoseconds int64) unit.Seconds { return unit.Seconds(float64(nanoseconds) / 1e9) }

// planHash names a plan.
func planHash(p plan.Plan) string { return fmt.Sprintf("%016x", xxhash.Sum64(plan.Encode(p))) }
