package train

import (
	"slices"
	"testing"

	"carve/plan"
)

// TestTrace holds that trace.json has every rank's work by category, and in order.
func TestTrace(t *testing.T) {
	p := over(smallPlan(t, 3), 2, 2)
	p.Checkpoint = plan.Checkpoint{Every: 2, Keep: 1}
	r := mustRun(t, p)
	var file struct {
		TraceEvents []struct {
			Phase    string  `json:"ph"`
			PID      int     `json:"pid"`
			TID      int     `json:"tid"`
			Category string  `json:"cat"`
			Name     string  `json:"name"`
			Start    float64 `json:"ts"`
			Length   float64 `json:"dur"`
		} `json:"traceEvents"`
	}
	readJSON(t, r, traceFile, &file)
	for rank := range 2 {
		var categories, names []string
		for _, e := range file.TraceEvents {
			if e.Phase == "X" && e.PID == rank {
				categories, names = append(categories, e.Category), append(names, e.Name)
			}
			if e.Length < 0 || e.Start < 0 {
				t.Errorf("%s of rank %d begins at %v and takes %v", e.Name, rank, e.Start, e.Length)
			}
		}
		for _, want := range []string{"compute", "comm", "data", "checkpoint", "step"} {
			if !slices.Contains(categories, want) {
				t.Errorf("rank %d has no %s", rank, want)
			}
		}
		for _, want := range []string{"forward", "backward", "optimizer", "validation", "checkpoint"} {
			if !slices.Contains(names, want) {
				t.Errorf("rank %d has no span %s", rank, want)
			}
		}
	}
}
