package train

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"carve/checkpoint"
	"carve/comm"
	"carve/data"
	"carve/plan"
	"carve/tensor"
	"carve/unit"
)

// TestNonFinite holds that a run whose numbers run away stops, says at which step and in which layer, and keeps its
// last good checkpoint.
func TestNonFinite(t *testing.T) {
	for _, ranks := range []int{1, 2} {
		p := over(smallPlan(t, 40), ranks, 2)
		p.Checkpoint.Every, p.Optimizer.LearningRate, p.Optimizer.Clip = 1, 1000, 0
		p.Optimizer.Warmup, p.Optimizer.Name = 0, plan.SGD
		r := newTrial(t, p)
		_, err := r.run(t.Context())
		var failure *NonFiniteError
		if !errors.As(err, &failure) {
			t.Fatalf("%d ranks: %v", ranks, err)
		}
		if failure.Step < 2 || failure.First == nil || !strings.Contains(err.Error(), "the first non-finite number is in the ") {
			t.Errorf("%d ranks: %v", ranks, err)
		}
		c, _, err := checkpoint.Latest(filepath.Join(r.path, checkpointsDir))
		if err != nil {
			t.Fatalf("%d ranks: no checkpoint is left: %v", ranks, err)
		}
		if c.Step != failure.Step-1 {
			t.Errorf("%d ranks: failed at step %d, the newest checkpoint is of step %d", ranks, failure.Step, c.Step)
		}
		c.Close()
	}
}

// faultyCorpus fails at a sample that only one rank reads.
type faultyCorpus struct {
	data.Corpus
	after int // reads that succeed
}

var errPlanted = errors.New("a planted fault")

func (c *faultyCorpus) Read(dst []int32, i int64) error {
	if c.after--; c.after < 0 {
		return errPlanted
	}
	return c.Corpus.Read(dst, i)
}

// launchSmall runs the ranks of a plan without a folder: steps, no checkpoints.
func launchSmall(ctx context.Context, p plan.Plan, change func(*job), work func(context.Context, *worker) error) error {
	j := &job{plan: p, threads: 1, now: clock(), report: &report{sink: nobody{}}}
	j.loader = func(rank int, _ *data.State) (*data.Loader, error) { return randomLoader(p, rank) }
	change(j)
	return j.launch(ctx, work)
}

// steps makes steps until something fails.
func steps(ctx context.Context, w *worker, most int) error {
	if err := w.build(); err != nil {
		return err
	}
	if err := w.openSamples(ctx, nil); err != nil {
		return err
	}
	for n := range most {
		w.at.step = n + 1
		if _, _, err := w.step(ctx, w.rates.Rate(n)); err != nil {
			return err
		}
		if err := w.publish(false, 0); err != nil {
			return err
		}
	}
	return nil
}

// TestRankFailure holds that a rank that fails, for whatever reason, ends the others, which hear of it wherever they wait, and
// that the error names the rank, the step and what it did. That no wait has to run out is held by comm.TestFailureAtOnce.
func TestRankFailure(t *testing.T) {
	const limit = 64 * unit.MiB
	p := over(smallPlan(t, 100), 4, 2)
	faulty := func(j *job) {
		j.loader = func(rank int, _ *data.State) (*data.Loader, error) {
			noise, err := data.NewSynthetic(p.Model.Config.Vocab, p.Seed)
			if err != nil {
				return nil, err
			}
			corpus := &faultyCorpus{noise, 1 << 30}
			if rank == 2 {
				corpus.after = 2 * 4 // four steps of two samples
			}
			return data.NewLoader(corpus, data.LoaderOptions{Sequence: 32, GlobalBatch: 8, Ranks: 4, Rank: rank})
		}
	}
	cases := []struct {
		name   string
		change func(*job)
		work   func(context.Context, *worker) error
		rank   int
		want   string
	}{
		{"error", faulty, func(ctx context.Context, w *worker) error { return steps(ctx, w, 100) }, 2, "rank 2 failed: train: step 5, in data: "},
		{"panic", func(*job) {}, func(ctx context.Context, w *worker) error {
			err := steps(ctx, w, 3)
			if w.end.Rank() == 1 {
				w.engine = nil
			}
			return errors.Join(err, steps2(ctx, w))
		}, 1, "rank 1 failed: train: step 4, in data: panic: runtime error: invalid memory address"},
		{"memory", func(j *job) { j.arenaLimit = limit }, func(ctx context.Context, w *worker) error {
			err := steps(ctx, w, 3)
			if w.end.Rank() == 3 {
				left := limit - w.rank.Arena.Live().Total()
				w.rank.Arena.New(tensor.Workspace, tensor.FP32, int(left)/4-100)
			}
			return errors.Join(err, steps2(ctx, w))
		}, 3, "step 4, in forward: tensor: "},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			heard := &hearing{errs: map[int]error{}}
			err := launchSmall(t.Context(), p, tc.change, heard.by(tc.work))
			var failure *comm.Failure
			if !errors.As(err, &failure) || failure.Rank != tc.rank || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("got %v, want rank %d, %q", err, tc.rank, tc.want)
			}
			for rank := range 4 {
				if err := heard.errs[rank]; rank != tc.rank && (!errors.As(err, &failure) || failure.Rank != tc.rank) {
					t.Errorf("rank %d hears %v, want the failure of rank %d", rank, err, tc.rank)
				}
			}
		})
	}
}

// hearing is how the ranks' work ended, by rank.
type hearing struct {
	mu   sync.Mutex // guards errs
	errs map[int]error
}

// by is the work, listened to: to its error, or to what unwinds it.
func (h *hearing) by(work func(context.Context, *worker) error) func(context.Context, *worker) error {
	return func(ctx context.Context, w *worker) (err error) {
		defer func() {
			v := recover()
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.errs[w.end.Rank()] = err; v != nil {
				h.errs[w.end.Rank()], _ = v.(error)
				panic(v)
			}
		}()
		return work(ctx, w)
	}
}

// steps2 goes on where steps ended.
func steps2(ctx context.Context, w *worker) error {
	w.at.step++
	_, _, err := w.step(ctx, 0)
	return err
}

// TestCancel holds that a cancelled context ends a run at once, with the checkpoints that it had.
func TestCancel(t *testing.T) {
	p := over(smallPlan(t, 100_000), 2, 2)
	p.Checkpoint.Every = 5
	r := newTrial(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.act = func(e Event) {
		if s, ok := e.(Step); ok && s.Step == 7 {
			cancel()
		}
	}
	if _, err := r.run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	r.state(t, 5)
}

// TestStopWhilePreparing holds that a run that is asked to stop before its first step ends, and leaves nothing.
func TestStopWhilePreparing(t *testing.T) {
	r := newTrial(t, smallPlan(t, 5))
	close(r.stop)
	if _, err := r.run(t.Context()); err != nil && !errors.Is(err, ErrStopped) {
		t.Fatalf("got %v", err)
	} else if err == nil {
		return // the text was prepared before the request was seen: the run stopped after its first step
	}
	if _, err := os.Stat(r.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}

func TestBadData(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	empty := filepath.Join(folder, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	cases := []struct{ name, path, want string }{
		{"missing", filepath.Join(folder, "nowhere"), "no such file or directory; name a folder, a text file"},
		{"empty folder", empty, "no text"},
		{"empty file", write("empty.txt", ""), "no text"},
		{"binary", write("binary.txt", strings.Repeat("\x00\x01\x02\x7fELF", 5000)), "not a text file"},
		{"too short", write("short.txt", "hello"), "too little text for one step"},
		{"less than a step", write("less.txt", strings.Repeat("hello\n", 30)), "too little text for one step"},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			p := smallPlan(t, 3)
			p.Workload.Data[0].Path = tc.path
			r := newTrial(t, p)
			_, err := r.run(t.Context())
			var fault *InputError
			if !errors.As(err, &fault) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.path) {
				t.Errorf("got %v, want %q and the path", err, tc.want)
			}
			if _, err := os.Stat(r.path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the folder of the run is there: %v", err)
			}
		})
	}
}
