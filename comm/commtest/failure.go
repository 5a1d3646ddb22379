package commtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"carve/comm"
	"carve/tensor"

	"pgregory.net/rapid"
)

var errPlanted = errors.New("planted failure")

// outcome collects what ranks saw, for the ranks of this process.
type outcome struct {
	mu   sync.Mutex
	errs map[int]error
}

func (o *outcome) note(rank int, err error) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.errs == nil {
		o.errs = map[int]error{}
	}
	o.errs[rank] = err
	return err
}

// want checks that every rank got an error that wraps cause, blames culprit and contains all texts; nil on
// ranks for which but is true.
func (o *outcome) want(t rapid.TB, what string, cause error, culprit int, but func(rank int) bool, texts ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for rank, err := range o.errs {
		if but(rank) {
			continue
		}
		if fault := judge(err, cause, culprit, texts); fault != "" {
			t.Errorf("%s: rank %d: %s", what, rank, fault)
		}
	}
}

func judge(err, cause error, culprit int, texts []string) string {
	if err == nil {
		return "no error"
	}
	var failure *comm.Failure
	switch {
	case !errors.Is(err, cause):
		return fmt.Sprintf("error %q does not wrap %q", err, cause)
	case !errors.As(err, &failure):
		return fmt.Sprintf("error %q is not a failure of the world", err)
	case failure.Rank != culprit:
		return fmt.Sprintf("error %q blames rank %d instead of %d", err, failure.Rank, culprit)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			return fmt.Sprintf("error %q does not say %q", err, text)
		}
	}
	return ""
}

func nobody(int) bool { return false }

func only(k int) func(int) bool { return func(rank int) bool { return rank == k } }

// everyCall is one valid call of every collective, and of messages that nobody answers, for a group of n.
func (r *rank) everyCall() []func() error {
	n, g := r.Size(), r.all
	small, big := r.operand(tensor.FP32, 40).t, r.operand(tensor.FP32, 40*n).t
	counts := make([]int, n)
	calls := []func() error{
		g.Barrier,
		func() error { return g.Send(small, 0) },
		func() error { return g.Recv(small, 0) },
		func() error { return g.RecvStart(small, 0).Wait() },
		func() error { return g.SendStart(small, 0).Wait() },
		func() error { return g.AllToAllV(small, big, counts, counts) },
		func() error { return g.AllReduceStart(big, tensor.Sum).Wait() },
		func() error { return g.Broadcast(big, 0) },
		func() error { return g.Reduce(big, tensor.Sum, 0) },
		func() error { return g.AllReduce(small, tensor.Sum) },
		func() error { return g.Gather(big, small, 0) },
		func() error { return g.AllGather(big, small) },
		func() error { return g.Scatter(small, big, 0) },
		func() error { return g.ReduceScatter(small, big, tensor.Max) },
		func() error { return g.AllToAll(r.operand(tensor.FP32, 40*n).t, big) },
	}
	return calls
}

// checkFail lets rank 0 fail while the others are blocked in each operation, and calls every operation afterwards.
func checkFail(t rapid.TB, s Suite) {
	for _, n := range s.several() {
		for i := range (&rank{}).countCalls() {
			var seen outcome
			err := s.run(t, n, func(r *rank) error {
				calls := r.everyCall()
				if r.Rank() == 0 {
					r.dawdle(uint64(i), 100)
					return errPlanted
				}
				if err := seen.note(r.Rank(), calls[i]()); err == nil {
					return nil
				}
				for k, call := range calls {
					if err := call(); !errors.Is(err, errPlanted) {
						return seen.note(r.Rank(), fmt.Errorf("call %d after the failure: %w", k, err))
					}
				}
				return nil
			})
			what := fmt.Sprintf("call %d of %d ranks", i, n)
			seen.want(t, what, errPlanted, 0, only(0))
			if fault := judge(err, errPlanted, 0, nil); fault != "" {
				t.Errorf("%s: world: %s", what, fault)
			}
		}
	}
}

// countCalls is the number of calls that everyCall returns.
func (*rank) countCalls() int { return 15 }

// checkPanic lets the last rank panic, or end its goroutine, while operations are under way.
func checkPanic(t rapid.TB, s Suite) {
	for _, n := range s.several() {
		var seen outcome
		err := s.run(t, n, func(r *rank) error {
			x := r.operand(tensor.FP64, 100)
			if r.Rank() == n-1 {
				r.all.AllReduceStart(x.t, tensor.Sum)
				panic(errPlanted)
			}
			return seen.note(r.Rank(), first(r.all.AllReduce(x.t, tensor.Sum), r.all.AllReduce(x.t, tensor.Sum)))
		})
		seen.want(t, "panic", errPlanted, n-1, nobody, "panic")
		var panicked *comm.PanicError
		if !errors.As(err, &panicked) || len(panicked.Stack) == 0 {
			t.Errorf("a panicking rank gives %v, without its stack", err)
		}
	}
}

// checkLeave lets rank 1 return early while the others wait for it.
func checkLeave(t rapid.TB, s Suite) {
	for _, n := range s.several() {
		for i := range (&rank{}).countCalls() {
			var seen outcome
			err := s.run(t, n, func(r *rank) error {
				calls := r.everyCall()
				if err := r.all.Barrier(); err != nil {
					return err
				}
				if r.Rank() == 1 {
					r.dawdle(uint64(i), 100)
					return nil
				}
				call := calls[i]
				if small := r.operand(tensor.FP32, 1).t; i >= 1 && i <= 4 { // messages, but with the rank that leaves
					call = []func() error{
						func() error { return r.all.Send(small, 1) },
						func() error { return r.all.Recv(small, 1) },
						func() error { return r.all.RecvStart(small, 1).Wait() },
						func() error { return r.all.SendStart(small, 1).Wait() },
					}[i-1]
				}
				return seen.note(r.Rank(), call())
			})
			what := fmt.Sprintf("call %d of %d ranks without rank 1", i, n)
			seen.want(t, what, comm.ErrLeft, 1, nobody)
			if fault := judge(err, comm.ErrLeft, 1, nil); fault != "" {
				t.Errorf("%s: world: %s", what, fault)
			}
		}
	}
}

// checkUnfinished holds that nothing is left behind in silence: a started collective, or a message that nobody
// takes.
func checkUnfinished(t rapid.TB, s Suite) {
	for _, n := range s.several() {
		err := s.run(t, n, func(r *rank) error {
			if r.Rank() == 0 {
				r.all.AllReduceStart(r.operand(tensor.FP32, 5).t, tensor.Sum)
			}
			return nil
		})
		if fault := judge(err, comm.ErrLeft, blamed(err), []string{"all-reduce"}); fault != "" {
			t.Errorf("unfinished all-reduce of %d ranks: %s", n, fault)
		}
		err = s.run(t, n, func(r *rank) error {
			if r.Rank() == 0 {
				r.all.SendStart(r.operand(tensor.FP32, 5).t, 1)
				r.all.RecvStart(r.operand(tensor.BF16, 6).t, n-1)
			}
			return nil
		})
		wantText(t, err, `"all"`, "from rank 0 to rank 1", "fp32[5]", fmt.Sprintf("from rank %d to rank 0", n-1), "bf16[6]")
	}
}

func wantText(t rapid.TB, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error %v does not say %q", err, text)
		}
	}
}

// checkCancel ends the context while all ranks are blocked.
func checkCancel(t rapid.TB, s Suite) {
	for _, n := range s.several() {
		ctx, cancel := context.WithCancelCause(context.Background())
		var seen outcome
		err := s.runContext(ctx, t, n, func(r *rank) error {
			if r.Rank() == 0 {
				cancel(errPlanted)
				return seen.note(0, r.all.Recv(r.operand(tensor.FP32, 1).t, 1))
			}
			return seen.note(r.Rank(), r.all.Barrier())
		})
		seen.want(t, "cancel", errPlanted, comm.Nobody, nobody, "cancelled")
		if !errors.Is(err, errPlanted) {
			t.Errorf("a cancelled world gives %v", err)
		}
	}
}
