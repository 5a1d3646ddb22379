package commtest

import (
	"errors"
	"fmt"
	"slices"

	"carve/comm"
	"carve/tensor"

	"pgregory.net/rapid"
)

// mismatch is a collective that one rank calls differently.
type mismatch struct {
	name      string
	odd, most func(r *rank) error
	texts     []string // that the error says, of both sides
}

func mismatches() []mismatch {
	t := func(r *rank, n int) *tensor.Tensor { return r.operand(tensor.FP32, n).t }
	reduce := func(d tensor.DType, n int, op tensor.ReduceOp) func(r *rank) error {
		return func(r *rank) error { return r.all.AllReduce(r.operand(d, n).t, op) }
	}
	cast := func(root int) func(r *rank) error {
		return func(r *rank) error { return r.all.Broadcast(t(r, 4), root) }
	}
	most := reduce(tensor.FP32, 1024, tensor.Sum)
	return []mismatch{
		{"twice as long", reduce(tensor.FP32, 2048, tensor.Sum), most, []string{"fp32[2048]", "fp32[1024]"}},
		{"much longer", reduce(tensor.FP32, 1<<20, tensor.Sum), reduce(tensor.FP32, 1, tensor.Sum), []string{"fp32[1048576]", "fp32[1]"}},
		{"nothing", reduce(tensor.FP32, 0, tensor.Sum), most, []string{"fp32[0]", "fp32[1024]"}},
		{"dtype", reduce(tensor.BF16, 1024, tensor.Sum), most, []string{"bf16[1024]", "fp32[1024]"}},
		{"reduction", reduce(tensor.FP32, 1024, tensor.Max), most, []string{"all-reduce max", "all-reduce sum"}},
		{"operation", (*rank).barrier, most, []string{"barrier", "all-reduce sum of fp32[1024]"}},
		{
			"other operation", func(r *rank) error { return r.all.AllGather(t(r, 8*r.Size()), t(r, 8)) },
			func(r *rank) error {
				return r.all.ReduceScatter(t(r, 8), t(r, 8*r.Size()), tensor.Sum)
			},
			[]string{"all-gather of fp32[8]", "reduce-scatter sum of fp32[8]"},
		},
		{"root", cast(1), cast(0), []string{"broadcast from 0", "broadcast from 1"}},
		{
			"started", func(r *rank) error { return r.all.AllReduceStart(t(r, 9), tensor.Sum).Wait() },
			func(r *rank) error { return r.all.AllReduceStart(t(r, 8), tensor.Sum).Wait() },
			[]string{"fp32[9]", "fp32[8]"},
		},
		{"counts", (*rank).oddCounts, (*rank).equalCounts, []string{"all-to-all-v", "sends", "expects"}},
	}
}

func (r *rank) barrier() error { return r.all.Barrier() }

func (r *rank) equalCounts() error {
	return r.allToAllCounts(slices.Repeat([]int{2}, r.Size()))
}

func (r *rank) oddCounts() error {
	send := slices.Repeat([]int{2}, r.Size())
	send[(r.Rank()+1)%r.Size()] = 3
	return r.allToAllCounts(send)
}

func (r *rank) allToAllCounts(send []int) error {
	n := 3 * r.Size()
	return r.all.AllToAllV(r.operand(tensor.FP32, n).t, r.operand(tensor.FP32, n).t, send, slices.Repeat([]int{2}, r.Size()))
}

// checkMismatches lets each rank in turn be the odd one. With three ranks or more, it is the one that is blamed.
func checkMismatches(t rapid.TB, s Suite) {
	for _, n := range s.several() {
		for i, m := range mismatches() {
			odd := i % n
			var seen outcome
			err := s.run(t, n, func(r *rank) error {
				if err := r.all.Barrier(); err != nil {
					return err
				}
				if r.Rank() == odd {
					return seen.note(odd, m.odd(r))
				}
				return seen.note(r.Rank(), m.most(r))
			})
			culprit := odd
			if n == 2 {
				culprit = blamed(err)
			}
			texts := append([]string{fmt.Sprintf("rank %d", odd), `"all"`}, m.texts...)
			seen.want(t, fmt.Sprintf("%s, %d ranks", m.name, n), comm.ErrMismatch, culprit, nobody, texts...)
		}
	}
}

// blamed is the rank that a failure blames.
func blamed(err error) int {
	if failure, ok := errors.AsType[*comm.Failure](err); ok {
		return failure.Rank
	}
	return comm.Nobody
}

// checkMismatchedMessages sends what the receiver does not expect. A third rank hears of it.
func checkMismatchedMessages(t rapid.TB, s Suite) {
	for _, n := range s.several() {
		for _, recv := range []struct {
			d tensor.DType
			n int
		}{{tensor.FP32, 6}, {tensor.FP32, 4}, {tensor.BF16, 5}} {
			var seen outcome
			err := s.run(t, n, func(r *rank) error {
				switch r.Rank() {
				case 0:
					return seen.note(0, r.all.Send(r.operand(tensor.FP32, 5).t, 1))
				case 1:
					return seen.note(1, r.all.Recv(r.operand(recv.d, recv.n).t, 0))
				default:
					return seen.note(r.Rank(), r.all.Barrier())
				}
			})
			seen.want(t, "message", comm.ErrMismatch, blamed(err), nobody,
				"from rank 0 to rank 1", "fp32[5]", fmt.Sprintf("%v[%d]", recv.d, recv.n))
		}
	}
}

// checkInvalid calls operations with arguments that do not fit each other.
func checkInvalid(t rapid.TB, s Suite) {
	for _, n := range s.several() {
		for name, call := range invalidCalls() {
			var seen outcome
			err := s.run(t, n, func(r *rank) error {
				if r.Rank() == n-1 {
					return seen.note(r.Rank(), call(r))
				}
				return seen.note(r.Rank(), r.all.Barrier())
			})
			if fault := judge(err, comm.ErrInvalid, n-1, nil); fault != "" {
				t.Errorf("%s: %s", name, fault)
			}
			seen.want(t, name, comm.ErrInvalid, n-1, only(n-1))
			if own := seen.errs[n-1]; own != nil && !errors.Is(own, comm.ErrInvalid) {
				t.Errorf("%s: the rank itself gets %v", name, own)
			}
		}
	}
}

func invalidCalls() map[string]func(r *rank) error {
	f := func(r *rank, n int) *tensor.Tensor { return r.operand(tensor.FP32, n).t }
	return map[string]func(r *rank) error{
		"no tensor":      func(r *rank) error { return r.all.AllReduce(nil, tensor.Sum) },
		"no source":      func(r *rank) error { return r.all.AllGather(f(r, 8), nil) },
		"short":          func(r *rank) error { return r.all.AllGather(f(r, 8*r.Size()-1), f(r, 8)) },
		"long":           func(r *rank) error { return r.all.ReduceScatter(f(r, 8), f(r, 8*r.Size()+1), tensor.Sum) },
		"two dtypes":     func(r *rank) error { return r.all.AllReduceTo(r.operand(tensor.BF16, 8).t, f(r, 8), tensor.Sum) },
		"indivisible":    func(r *rank) error { return r.all.AllToAll(f(r, r.Size()+1), f(r, r.Size()+1)) },
		"root too large": func(r *rank) error { return r.all.Broadcast(f(r, 8), r.Size()) },
		"root negative":  func(r *rank) error { return r.all.Broadcast(f(r, 8), -1) },
		"to itself":      func(r *rank) error { return r.all.Send(f(r, 8), r.all.Rank()) },
		"from nowhere":   func(r *rank) error { return r.all.RecvStart(f(r, 8), r.Size()).Wait() },
		"reduction":      func(r *rank) error { return r.all.AllReduceStart(f(r, 8), 9).Wait() },
		"operation":      func(r *rank) error { return r.all.Carrier().Do(comm.Call{Op: 99}) },
		"few counts":     func(r *rank) error { return r.all.AllToAllV(f(r, 8), f(r, 8), []int{1}, []int{1}) },
		"negative count": func(r *rank) error {
			return r.all.AllToAllV(f(r, 8), f(r, 8), slices.Repeat([]int{-1}, r.Size()), make([]int, r.Size()))
		},
		"count overflow": func(r *rank) error {
			return r.all.AllToAllV(f(r, 8), f(r, 8), make([]int, r.Size()), slices.Repeat([]int{1 << 62}, r.Size()))
		},
		"overlap": func(r *rank) error {
			t := f(r, 20)
			return r.all.AllReduceTo(t.Slice(0, 10), t.Slice(5, 15), tensor.Sum)
		},
		"wrong block": func(r *rank) error {
			t := f(r, 8*r.Size())
			return r.all.AllGather(t, t.Slice(0, 8))
		},
		"all-to-all in place": func(r *rank) error {
			t := f(r, 8*r.Size())
			return r.all.AllToAll(t, t)
		},
	}
}

// checkGroups asks for groups that cannot be.
func checkGroups(t rapid.TB, s Suite) {
	for _, n := range s.several() {
		s.must(t, n, func(r *rank) error {
			for _, ranks := range [][]int{nil, {(r.Rank() + 1) % n}, {r.Rank(), n}, {r.Rank(), -1}, {r.Rank(), r.Rank()}} {
				if g, err := r.Group("impossible", ranks); err == nil {
					return fmt.Errorf("group of %v on rank %d: %v", ranks, r.Rank(), g)
				}
			}
			again, err := r.Group("all", upTo(n))
			if err != nil {
				return err
			}
			if again.Name() != "all" || again.Size() != n || again.Rank() != r.Rank() {
				return fmt.Errorf("the group is %q, %d of %d", again.Name(), again.Rank(), again.Size())
			}
			if _, err := r.Group("all", []int{r.Rank()}); err == nil {
				return errors.New("two groups of one name on one rank")
			}
			return first(again.Barrier(), r.all.Barrier())
		})
	}
}
