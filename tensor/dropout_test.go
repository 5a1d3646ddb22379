package tensor

import (
	"math"
	"testing"

	"carve/tensor/internal/kernel"
)

// dropoutTwin is the result element by element.
func dropoutTwin(op *Dropout) []float64 {
	y, cols := values(op.X), op.X.Cols()
	for i := range y {
		row := op.Rows.First + i/cols
		place, column := row%op.Rows.S, i%cols
		if op.Rows.At != nil {
			place = int(op.Rows.At.I32()[place])
		}
		counter := [4]uint32{uint32(column / 4), uint32(place), uint32(op.Rows.Sample + row/op.Rows.S)}
		if float64(kernel.Philox(counter, op.Key)[column%4])/(1<<32) < op.Rate {
			y[i] = 0
		}
		y[i] /= 1 - op.Rate
	}
	if op.Residual != nil {
		return plus(y, values(op.Residual))
	}
	return y
}

func TestDropout(t *testing.T) {
	var cases []opCase
	for _, c := range []struct {
		name       string
		rows, cols int
		rate       float64
		places     Places
		at         []int32
		add, apart bool
	}{
		{name: "in place", rows: 6, cols: 7, rate: 0.5, places: Places{S: 3}},
		{name: "with a residual", rows: 12, cols: 64, rate: 0.1, places: Places{S: 6, Sample: 40}, add: true},
		{name: "apart, from the middle of a sequence", rows: 5, cols: 33, rate: 0.9, places: Places{First: 4, S: 6, Sample: 1}, apart: true},
		{name: "zigzag", rows: 8, cols: 16, rate: 0.2, places: Places{S: 4}, at: zigzag(0, 2), add: true, apart: true},
		{name: "long rows", rows: 3, cols: 5001, rate: 0.3, places: Places{S: 1}},
		{name: "nothing dropped", rows: 2, cols: 8, rate: 0, places: Places{S: 2}},
		{name: "no rows", rows: 0, cols: 8, rate: 0.1, places: Places{S: 2}},
	} {
		cases = append(cases, opCase{c.name, func(k *kit) (r trial) {
			op := Dropout{X: k.random(c.rows, c.cols), Rate: c.rate, Key: 77, Rows: c.places}
			op.Y = op.X
			if c.apart {
				op.Y = k.random(c.rows, c.cols)
			}
			if c.add {
				op.Residual = k.random(c.rows, c.cols)
			}
			if c.at != nil {
				op.Rows.At = k.ints(c.at...)
			}
			want := dropoutTwin(&op)
			x := k.random(c.rows, c.cols) // what X holds before every call
			k.dev.Copy(x, op.X)
			r.expect(op.Y, want)
			r.call = func() {
				k.dev.Copy(op.X, x)
				k.dev.Dropout(op)
			}
			return r
		}})
	}
	testCases(t, cases)
}

// TestDropoutDrops counts: a part of about the rate is zero, and neighbouring samples, places and keys have other masks.
func TestDropoutDrops(t *testing.T) {
	k := newKit(FP64, 1)
	defer k.close()
	const n, rate = 20000, 0.25
	masks := map[string][]float64{}
	for name, op := range map[string]Dropout{
		"one":            {Key: 1, Rows: Places{S: 2}},
		"another key":    {Key: 2, Rows: Places{S: 2}},
		"another sample": {Key: 1, Rows: Places{S: 2, Sample: 1}},
		"another place":  {Key: 1, Rows: Places{S: 2, First: 1}},
	} {
		op.X, op.Rate = k.arena.New(Activation, FP64, 1, n), rate
		op.Y = op.X
		k.dev.Fill(op.X, 1)
		k.dev.Dropout(op)
		masks[name] = values(op.Y)
		zeros := 0
		for _, v := range masks[name] {
			if v == 0 {
				zeros++
			}
		}
		if sigma := math.Sqrt(n * rate * (1 - rate)); math.Abs(float64(zeros)-n*rate) > 5*sigma {
			t.Errorf("%s: %d of %d are zero, want about %v", name, zeros, n, n*rate)
		}
	}
	for name, mask := range masks {
		if name != "one" && compare(mask, masks["one"], 0) == nil {
			t.Errorf("%s gives the same mask", name)
		}
	}
}
