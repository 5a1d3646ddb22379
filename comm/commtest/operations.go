package commtest

import (
	"fmt"

	"carve/comm"
	"carve/tensor"

	"pgregory.net/rapid"
)

// lengths are no element, one, fewer than ranks, odd ones, and more than any engine's smallest messages.
func lengths() []int { return []int{0, 1, 3, 8, 77, 333, 9001} }

// steps is every operation on every dtype with every reduction, length, root and place.
func steps(n int, h how) (all []step) {
	for _, op := range comm.Ops() {
		if op.PointToPoint() || op == comm.AllToAllV {
			continue
		}
		for _, d := range dtypes() {
			for i, count := range lengths() {
				if count > 8000 && d != tensor.FP32 || count > 100 && n > 4 {
					continue // long ones in large groups and other dtypes are left to the random programs
				}
				s := step{op: op, dtype: d, count: count, how: h, seed: uint64(op)<<32 + uint64(i)}
				all = append(all, s.variants(n)...)
			}
		}
	}
	return all
}

// variants is the step with every reduction and place, and changing roots.
func (s step) variants(n int) (all []step) {
	ops, places := reductions(), []place{apart, inPlace}
	if !s.op.Reduces() || s.count > 8000 {
		ops = ops[:1]
	}
	switch s.op {
	case comm.Barrier, comm.Broadcast, comm.Reduce, comm.AllToAll:
		places = places[:1]
	default:
	}
	for i, op := range ops {
		for k, p := range places {
			s.reduce, s.place, s.root = op, p, (s.count+i+k)%n
			all = append(all, s)
		}
	}
	return all
}

func checkOperations(t rapid.TB, s Suite) {
	for _, n := range s.sizes() {
		s.must(t, n, func(r *rank) error {
			for _, s := range steps(n, blocking) {
				run, err := r.begin(s, r.all)
				if err != nil {
					return err
				}
				if err := run.finish(); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// checkStarted starts several steps before it waits for the oldest.
func checkStarted(t rapid.TB, s Suite) {
	const inFlight = 7
	for _, n := range s.sizes() {
		s.must(t, n, func(r *rank) error {
			var flight []*running
			for _, s := range steps(n, started) {
				run, err := r.begin(s, r.all)
				if err != nil {
					return err
				}
				flight = append(flight, run)
				if len(flight) < inFlight {
					continue
				}
				if err := flight[0].finish(); err != nil {
					return err
				}
				flight = flight[1:]
			}
			return finishAll(flight)
		})
	}
}

func finishAll(flight []*running) error {
	for _, run := range flight {
		if err := run.finish(); err != nil {
			return err
		}
	}
	return nil
}

// checkRankOrder holds that reductions are in rank order, whoever comes late: numbers whose sum depends on it
// give the twin's bits.
func checkRankOrder(t rapid.TB, s Suite) {
	for _, n := range s.sizes() {
		s.must(t, n, func(r *rank) error {
			for round := range uint64(3) {
				for _, d := range dtypes() {
					for _, op := range []comm.Op{comm.AllReduce, comm.Reduce, comm.ReduceScatter} {
						r.dawdle(round, 20)
						s := step{op: op, dtype: d, count: 700, value: rough, seed: round, how: how(round % 2)}
						run, err := r.begin(s, r.all)
						if err != nil {
							return err
						}
						if err := run.finish(); err != nil {
							return err
						}
					}
				}
			}
			return nil
		})
	}
}

// checkAllToAllV sends every number of elements from 0 on, also into tensors that are longer than needed.
func checkAllToAllV(t rapid.TB, s Suite) {
	for _, n := range s.sizes() {
		s.must(t, n, func(r *rank) error {
			for seed := range uint64(12) {
				for _, d := range dtypes() {
					if err := r.allToAllV(d, seed); err != nil {
						return fmt.Errorf("rank %d of %d: %w", r.Rank(), n, err)
					}
				}
			}
			return nil
		})
	}
}

func (r *rank) allToAllV(d tensor.DType, seed uint64) error {
	n, at := r.all.Size(), r.all.Rank()
	count := func(from, to int) int { return int(mix(seed, from, to) % 9 * (seed % 3)) }
	var send, recv []int
	var input, want []float64
	for i := range n {
		send, recv = append(send, count(at, i)), append(recv, count(i, at))
		for k := range send[i] {
			input = append(input, whole(seed, at*n+i, k))
		}
		for k := range recv[i] {
			want = append(want, whole(seed, i*n+at, k))
		}
	}
	rest := []float64{5, 6}
	src, dst := r.filled(d, append(input, rest...)), r.operand(d, len(want)+len(rest))
	want = append(want, guard, guard)
	var err error
	if seed%2 == 0 {
		err = r.all.AllToAllV(dst.t, src.t, send, recv)
	} else {
		w := r.all.AllToAllVStart(dst.t, src.t, send, recv)
		clear(send)
		clear(recv)
		err = w.Wait()
	}
	if err != nil {
		return err
	}
	if err := src.check("source", append(input, rest...)); err != nil {
		return err
	}
	return dst.check("destination", want)
}
