package timing

import (
	"context"
	"slices"
	"time"

	"carve/comm"
	"carve/tensor"
	"carve/unit"
)

// Options say what is measured.
type Options struct {
	Ops   []comm.Op
	Sizes []unit.Bytes // of the whole array; cut to whole elements and blocks
	DType tensor.DType
	// Time is about how long each size is measured; at least 5 rounds and at most 2,000.
	Time time.Duration
}

// Row is the times of one operation and size.
type Row struct {
	Op    comm.Op
	Ranks int
	Bytes unit.Bytes
	Count int // elements of the whole array
	DType tensor.DType
	// Usual is the operation with destination and source apart, where it can be so; InPlace with both the same memory, and nil where it
	// cannot be so or Usual is that already.
	Usual   Sample
	InPlace *Sample
}

// Sample is one measurement.
type Sample struct {
	Time   unit.Seconds // of the middle round
	Rounds int
	Wrong  int // elements of all ranks that are not what they should be
}

// AlgorithmBandwidth is size / time.
func (r *Row) AlgorithmBandwidth(s Sample) unit.BytesPerSecond {
	if s.Time <= 0 {
		return 0
	}
	return unit.BytesPerSecond(float64(r.Bytes) / float64(s.Time))
}

// BusBandwidth is the rate at which the busiest link must have worked.
func (r *Row) BusBandwidth(s Sample) unit.BytesPerSecond {
	return r.AlgorithmBandwidth(s) * unit.BytesPerSecond(r.Op.BusFactor(r.Ranks))
}

const (
	warmup      = 3
	leastRounds = 5
	mostRounds  = 2000
)

// Run measures on every rank of a world, and tells of every row as it is measured, on rank 0's goroutine.
func Run(ctx context.Context, ends []comm.Endpoint, o Options, each func(Row) error) error {
	return comm.Run(ctx, ends, func(e comm.Endpoint) error {
		ranks := make([]int, e.Size())
		for i := range ranks {
			ranks[i] = i
		}
		g, err := e.Group("bench", ranks)
		if err != nil {
			return err
		}
		m := newMeter(g, o)
		defer m.arena.Close()
		err = m.run(each)
		if err == nil {
			err = g.Barrier() // nobody's memory goes before the others are done with it
		}
		return err
	})
}

// meter is one rank's part of a measurement.
type meter struct {
	g     *comm.Group
	o     Options
	arena *tensor.Arena
	a, b  *tensor.Tensor // operands of the largest size
	times *tensor.Tensor // seconds of each round
	round *tensor.Tensor // their number, and counts of errors
}

func newMeter(g *comm.Group, o Options) *meter {
	m := &meter{g: g, o: o, arena: tensor.NewArena(tensor.ArenaOptions{})}
	most := 0
	for _, s := range o.Sizes {
		most = max(most, int(s)/o.DType.Size())
	}
	m.a, m.b = m.arena.NewZero(tensor.Communication, o.DType, most), m.arena.NewZero(tensor.Communication, o.DType, most)
	m.times = m.arena.NewZero(tensor.Communication, tensor.FP64, mostRounds)
	m.round = m.arena.NewZero(tensor.Communication, tensor.Int32, 1)
	return m
}

func (m *meter) run(each func(Row) error) error {
	for _, op := range m.o.Ops {
		sizes := m.o.Sizes
		if op == comm.Barrier {
			sizes = []unit.Bytes{0}
		}
		for _, size := range sizes {
			row, err := m.row(op, size)
			if err != nil {
				return err
			}
			if m.g.Rank() != 0 {
				continue
			}
			if err := each(row); err != nil {
				return err
			}
		}
	}
	return nil
}

// row measures one operation and size.
func (m *meter) row(op comm.Op, size unit.Bytes) (Row, error) {
	n, width := m.g.Size(), m.o.DType.Size()
	blocks := n
	switch op {
	case comm.Broadcast, comm.Reduce, comm.AllReduce, comm.Send:
		blocks = 1
	default:
	}
	count := int(size) / width / blocks
	row := Row{Op: op, Ranks: n, Bytes: unit.Bytes(count * blocks * width), Count: count * blocks, DType: m.o.DType}
	for i, place := range Places(op) {
		s, err := m.sample(newOperation(m.g, op, place, m.a, m.b, count))
		if err != nil {
			return row, err
		}
		if i == 0 {
			row.Usual = s
		} else {
			row.InPlace = &s
		}
	}
	return row, nil
}

// sample checks an operation and then times it.
func (m *meter) sample(o *operation) (s Sample, err error) {
	o.fill()
	if err := m.g.Barrier(); err != nil {
		return s, err
	}
	if err := o.call(); err != nil {
		return s, err
	}
	if s.Wrong, err = m.sum(o.wrong()); err != nil {
		return s, err
	}
	if s.Rounds, err = m.rounds(o); err != nil {
		return s, err
	}
	if err := m.time(o, s.Rounds); err != nil {
		return s, err
	}
	if err := m.g.AllReduce(m.times, tensor.Max); err != nil {
		return s, err
	}
	s.Time = unit.Seconds(median(m.times.F64()[:s.Rounds]))
	return s, nil
}

// sum adds a number over the ranks.
func (m *meter) sum(n int) (int, error) {
	m.round.I32()[0] = int32(min(n, 1<<20))
	err := m.g.AllReduce(m.round, tensor.Sum)
	return int(m.round.I32()[0]), err
}

// rounds warms up and chooses the number of rounds, the same on all ranks.
func (m *meter) rounds(o *operation) (int, error) {
	if err := m.time(o, warmup); err != nil {
		return 0, err
	}
	t := slices.Min(m.times.F64()[:warmup])
	n := int(min(float64(mostRounds), m.o.Time.Seconds()/max(t, 1e-9)))
	m.round.I32()[0] = int32(max(n, leastRounds))
	err := m.g.Broadcast(m.round, 0)
	return int(m.round.I32()[0]), err
}

// time times rounds of a barrier and the operation.
func (m *meter) time(o *operation, rounds int) error {
	for i := range rounds {
		if err := m.g.Barrier(); err != nil {
			return err
		}
		begin := time.Now()
		if err := o.call(); err != nil {
			return err
		}
		m.times.F64()[i] = time.Since(begin).Seconds()
	}
	return nil
}

// median is the middle of some numbers, which are put in order.
func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}
