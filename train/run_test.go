package train

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"carve/plan"
	"carve/tensor"
)

// TestRunLearns holds that a run learns, and that its folder has all that it promises.
func TestRunLearns(t *testing.T) {
	p := smallPlan(t, 60)
	p.Workload.Validation.Interval, p.Checkpoint = 20, plan.Checkpoint{Every: 20, Keep: 2}
	r := newTrial(t, over(p, 2, 2))
	sum, err := r.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	losses := r.losses()
	if first := losses[0]; math.Abs(first-math.Log(257)) > 0.1 || sum.FinalLoss > 0.6*first || sum.FinalLoss != losses[59] {
		t.Errorf("loss from %.3f to %.3f", first, sum.FinalLoss)
	}
	looks := of[Validation](&r.journal)
	if len(looks) != 4 || looks[3].Loss != sum.ValLoss || !(looks[3].Loss < looks[1].Loss && looks[1].Loss < looks[0].Loss) {
		t.Errorf("validation %v", looks)
	}
	if sum.Outcome != Completed || sum.Steps != 60 || sum.Tokens != 60*8*32 || sum.World != 2 || sum.Path != r.path {
		t.Errorf("summary %+v", sum)
	}
	if sum.Peak.Of(tensor.Parameter) == 0 || sum.Peak.Of(tensor.Activation) == 0 || sum.TokensPerSecond <= 0 {
		t.Errorf("memory %v, speed %v", sum.Peak, sum.TokensPerSecond)
	}
	checkFolder(t, r)
}

// checkFolder holds that the files of a finished run are there, and whole.
func checkFolder(t *testing.T, r *trial) {
	t.Helper()
	steps := metricSteps(t, r)
	if want := 60; len(steps) != want || steps[0] != 1 || steps[want-1] != want {
		t.Errorf("metrics have steps %v", steps)
	}
	var s struct {
		Event string `json:"event"`
		Steps int    `json:"steps"`
	}
	readJSON(t, r, summaryFile, &s)
	if s.Event != "summary" || s.Steps != 60 {
		t.Errorf("summary.json says %+v", s)
	}
	if p, err := ReadPlan(r.path); err != nil || p.Workload.Steps != 60 {
		t.Errorf("plan.yaml: %v", err)
	}
	kept, err := filepath.Glob(filepath.Join(r.path, checkpointsDir, "*"))
	if err != nil || len(kept) != 2 || filepath.Base(kept[1]) != "step-00000060" {
		t.Errorf("checkpoints %v, %v", kept, err)
	}
}

// readJSON reads a file of a run's folder.
func readJSON(t *testing.T, r *trial, name string, v any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.path, name))
	if err == nil {
		err = json.Unmarshal(text, v)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// metricSteps are the numbers of the steps in metrics.jsonl, in its order.
func metricSteps(t *testing.T, r *trial) (steps []int) {
	t.Helper()
	f, err := os.Open(filepath.Join(r.path, metricsFile))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for d := json.NewDecoder(f); d.More(); {
		var line struct {
			Event string `json:"event"`
			Step  int    `json:"step"`
		}
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if line.Event == "step" {
			steps = append(steps, line.Step)
		}
	}
	return steps
}

// TestRanksEqualOne holds that data parallelism changes nothing: with the same global batch, two and four ranks have
// the losses of one, and so has a batch taken in several micro-batches.
func TestRanksEqualOne(t *testing.T) {
	cases := []struct {
		precision plan.Precision
		tolerance float64 // relative, of every step's loss
	}{
		{plan.FP64, 1e-12}, // rounding of sums in another order
		{plan.FP32, 1e-5},
	}
	for _, tc := range cases {
		p := smallPlan(t, 12)
		p.Precision = tc.precision
		want := mustRun(t, over(p, 1, 8)).losses()
		layouts := []struct{ ranks, microBatch int }{{2, 1}, {1, 2}, {2, 4}, {4, 2}, {4, 1}}
		if racing {
			layouts = layouts[:1]
		}
		for _, layout := range layouts {
			t.Run(fmt.Sprintf("%v/ranks=%d/micro-batch=%d", tc.precision, layout.ranks, layout.microBatch), func(t *testing.T) {
				got := mustRun(t, over(p, layout.ranks, layout.microBatch)).losses()
				near(t, "loss", got, want, tc.tolerance)
			})
		}
		p.Seed = 2 // the control: another order of samples is not equal
		if other := mustRun(t, over(p, 2, 4)).losses(); slices.Equal(other, want) || math.Abs(other[11]-want[11]) < 1e-4 {
			t.Errorf("%v: another seed gave the same losses", tc.precision)
		}
	}
}

// TestSameBytesTwice holds that a plan gives the same bytes every time, also when its gradients are reduced all at once.
func TestSameBytesTwice(t *testing.T) {
	for _, precision := range []plan.Precision{plan.FP32, plan.BF16} {
		p := over(smallPlan(t, 6), 2, 2)
		p.Precision = precision
		first, second := mustRun(t, p), mustRun(t, p)
		sameState(t, first, second, 6)
		p.Layout.Zero.Reduce = plan.Naive
		naive := mustRun(t, p)
		sameState(t, first, naive, 6)
		if !slices.Equal(first.losses(), second.losses()) || !slices.Equal(first.losses(), naive.losses()) {
			t.Errorf("%v: losses differ", precision)
		}
	}
}

// TestTimeIsAPlan holds that a run of a given time is the run of the plan that it leaves behind: measuring steps
// changes nothing.
func TestTimeIsAPlan(t *testing.T) {
	p := over(smallPlan(t, 1000), 2, 2)
	p.Optimizer.Warmup = 1000
	timed := mustRun(t, p, func(o *Options) { o.Time = 0.3 })
	left, err := ReadPlan(timed.path)
	if err != nil {
		t.Fatal(err)
	}
	steps := left.Workload.Steps
	if steps == 1000 || steps < 1 || left.Optimizer.Warmup > steps/10 {
		t.Fatalf("the time was made %d steps with a warm-up of %d", steps, left.Optimizer.Warmup)
	}
	sameState(t, timed, mustRun(t, left), steps)
}

// TestCheck holds that what cannot be run yet is refused, all of it at once.
func TestCheck(t *testing.T) {
	p := smallPlan(t, 1)
	if err := Check(p); err != nil {
		t.Fatal(err)
	}
	p.Engine, p.Cluster.Nodes = plan.MPI, 2
	p.Workload.Data = []plan.Source{{Path: "a", Weight: 1}, {Path: "b", Weight: 1, Kind: plan.Parquet}}
	err := Check(p)
	want := "train: workload.data names 2 sources, and blends of several are not read yet; keep one, such as a folder that holds all\n" +
		"train: parquet (b) is planned but not read yet; use text, jsonl or shards\n" +
		"train: engine mpi is planned but not run yet; use local"
	if err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	p.MicroBatch = -1
	if err := Check(p); err == nil {
		t.Error("an invalid plan passes")
	}
}
