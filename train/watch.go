package train

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"carve/comm"
	"carve/comm/flight"
)

// connect puts a rank on the emulated links, if there are any.
func (j *job) connect(end comm.Endpoint) comm.Endpoint {
	if j.links == nil {
		return end
	}
	return j.links.Emulate(end)
}

// watch puts the watchdog, if there is one, around a rank's endpoint.
func (j *job) watch(end comm.Endpoint) comm.Endpoint {
	if j.watchdog == nil {
		return end
	}
	return j.watchdog.Watch(end)
}

// beginWatch lets the watchdog look after the ranks until done is called.
func (j *job) beginWatch(ctx context.Context) (done func()) {
	if j.watchdog == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { j.watchdog.Run(ctx) })
	return func() {
		cancel()
		watching.Wait()
	}
}

// writeFlight leaves the last operations of every rank in the run's folder when a rank has failed or the run hung, and
// says who held the others up.
func (s *session) writeFlight(dog *comm.Watchdog, cause error) error {
	failure, failed := errors.AsType[*comm.Failure](cause)
	_, explained := errors.AsType[*NonFiniteError](cause)
	if !failed || failure.Rank == comm.Nobody || explained || outOfMemory(cause) {
		return nil
	}
	record := dog.Record(cause)
	text, err := flight.Encode(record)
	if err != nil {
		return err
	}
	if err := s.Directory.write(flightFile, text); err != nil {
		return err
	}
	s.Sink.Event(Warning{fmt.Errorf("train: what every rank did last: carve trace hang %s", s.Directory.file(flightFile))})
	return nil
}
