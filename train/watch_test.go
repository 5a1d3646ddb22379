package train

import (
	"context"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"carve/comm"
	"carve/comm/flight"
	"carve/tensor"
)

// TestHangIsExplained lets one rank stop in the middle of a run: the run ends after the limit, and its folder says who
// held it up.
func TestHangIsExplained(t *testing.T) {
	p := over(smallPlan(t, 100), 4, 2)
	dir, err := CreateDirectory(t.TempDir() + "/run")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	tensor.NewReducer() // measures the processor, which needs a clock that goes on
	synctest.Test(t, func(t *testing.T) {
		var dog *comm.Watchdog
		err := launchSmall(t.Context(), p, func(j *job) {
			j.watchdog = comm.NewWatchdog(comm.WatchdogOptions{Limit: 3 * time.Second})
			dog = j.watchdog
		}, func(ctx context.Context, w *worker) error {
			err := steps(ctx, w, 3)
			if err == nil && w.end.Rank() == 2 {
				<-time.After(time.Minute)
			}
			return errors.Join(err, steps2(ctx, w))
		})
		if hang, ok := errors.AsType[*comm.HangError](err); !ok || hang.Hang.Culprit != 2 {
			t.Fatalf("got %v, want a hang because of rank 2", err)
		}
		s := &session{Options: Options{Directory: dir, Sink: nobody{}}}
		if err := s.writeFlight(dog, err); err != nil {
			t.Fatal(err)
		}
	})
	text, err := os.ReadFile(dir.file(flightFile))
	if err != nil {
		t.Fatal(err)
	}
	record, err := flight.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if h, ok := flight.Diagnose(record); !ok || h.Culprit != 2 || h.Kind != flight.Absent || len(h.Waiting) != 3 {
		t.Errorf("%v, %v", ok, h)
	}
}
