package timing_test

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"carve/cluster"
	"carve/comm"
	"carve/comm/timing"
	"carve/tensor"
	"carve/unit"
)

// measure times operations on a local world, changed.
func measure(t *testing.T, n int, o timing.Options, change func([]comm.Endpoint)) (rows []timing.Row) {
	t.Helper()
	l := comm.NewLocal(n, comm.LocalOptions{})
	ends := l.Endpoints()
	change(ends)
	err := timing.Run(t.Context(), ends, o, func(r timing.Row) error {
		rows = append(rows, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return rows
}

func nothing([]comm.Endpoint) {}

// TestRun measures every operation in every dtype on one to three ranks: nothing is wrong.
func TestRun(t *testing.T) {
	for _, d := range []tensor.DType{tensor.FP32, tensor.BF16, tensor.FP64, tensor.Int32} {
		for n := 1; n <= 3; n++ {
			rows := measure(t, n, timing.Options{Ops: timing.Ops(), Sizes: []unit.Bytes{8, 1000, 100_000}, DType: d, Time: 1}, nothing)
			if len(rows) != 3*(len(timing.Ops())-1)+1 {
				t.Fatalf("%d rows", len(rows))
			}
			for _, r := range rows {
				if r.Usual.Wrong != 0 || r.InPlace != nil && r.InPlace.Wrong != 0 || r.Ranks != n || r.Usual.Rounds < 5 {
					t.Errorf("%+v", r)
				}
			}
		}
	}
}

// spoiled changes the first element that a rank receives.
type spoiled struct{ comm.Endpoint }

type spoiledCarrier struct{ comm.Carrier }

func (s *spoiled) Group(name string, ranks []int) (*comm.Group, error) {
	g, err := s.Endpoint.Group(name, ranks)
	if err != nil {
		return nil, err
	}
	return g.With(spoiledCarrier{g.Carrier()}), nil
}

func (s spoiledCarrier) Do(c comm.Call) error {
	err := s.Carrier.Do(c)
	if c.Op == comm.AllGather && c.Dst.Len() > 0 {
		c.Dst.F32()[0]++
	}
	return err
}

// TestWrongIsCounted is the control of the check.
func TestWrongIsCounted(t *testing.T) {
	rows := measure(t, 2, timing.Options{Ops: []comm.Op{comm.AllGather}, Sizes: []unit.Bytes{800}, DType: tensor.FP32, Time: 1}, func(ends []comm.Endpoint) {
		ends[1] = &spoiled{ends[1]}
	})
	if r := rows[0]; r.Usual.Wrong != 1 || r.InPlace.Wrong != 1 || r.Bytes != 800 || r.Count != 200 {
		t.Errorf("%+v", r)
	}
}

// TestFitOfLinks finds the links again that were emulated: 200 µs and 2 GB/s, by messages.
func TestFitOfLinks(t *testing.T) {
	tensor.NewReducer() // measures the processor, which needs a clock that goes on
	synctest.Test(t, func(t *testing.T) {
		net, err := comm.NewEmulated(2, comm.EmulateOptions{Levels: []cluster.Level{{Size: 2, Latency: 200e-6, Bandwidth: 2e9, Oversubscription: 1}}})
		if err != nil {
			t.Fatal(err)
		}
		rows := measure(t, 2, timing.Options{
			Ops: []comm.Op{comm.Send}, Sizes: []unit.Bytes{1000, 100_000, 4_000_000}, DType: tensor.FP32, Time: 10 * time.Millisecond,
		}, func(ends []comm.Endpoint) {
			for i := range ends {
				ends[i] = net.Emulate(ends[i])
			}
		})
		l, ok := timing.Fit(rows)
		if !ok || math.Abs(float64(l.Latency)-200e-6) > 20e-6 || math.Abs(l.PerByte-0.5e-9) > 0.02e-9 || l.Residual > 0.05 {
			t.Errorf("%+v", l)
		}
	})
}

func TestFit(t *testing.T) {
	row := func(bytes unit.Bytes, seconds unit.Seconds) timing.Row {
		return timing.Row{Bytes: bytes, Usual: timing.Sample{Time: seconds}}
	}
	cases := []struct {
		name string
		rows []timing.Row
		want timing.Line
	}{
		{"exact", []timing.Row{row(0, 1), row(10, 21), row(100, 201)}, timing.Line{Latency: 1, PerByte: 2}},
		{"no latency", []timing.Row{row(1, 1), row(10, 20)}, timing.Line{PerByte: 1.2, Residual: math.Sqrt((0.2*0.2 + 0.4*0.4) / 2)}},
		{"no slope", []timing.Row{row(1, 2), row(10, 1)}, timing.Line{Latency: 1.2, Residual: math.Sqrt((0.2*0.2 + 0.4*0.4) / 2)}},
	}
	for _, c := range cases {
		got, ok := timing.Fit(c.rows)
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
		if !ok || !near(float64(got.Latency), float64(c.want.Latency)) || !near(got.PerByte, c.want.PerByte) || !near(got.Residual, c.want.Residual) {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	if l, ok := timing.Fit([]timing.Row{row(5, 1), row(5, 2)}); ok {
		t.Errorf("one size gives %+v", l)
	}
}
