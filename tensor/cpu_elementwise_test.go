package tensor

import (
	"fmt"
	"math"
	"testing"
)

func TestElementwise(t *testing.T) {
	var cases []opCase
	for _, n := range []int{0, 1, 63, 2048, 70001} {
		name := func(op string) string { return fmt.Sprintf("%s/%d", op, n) }
		cases = append(cases, opCase{name("fill"), func(k *kit) (c trial) {
			x := k.random(n)
			c.expect(x, apply(values(x), func(float64) float64 { return -1.5 }))
			c.call = func() { k.dev.Fill(x, -1.5) }
			return c
		}}, opCase{name("scale"), func(k *kit) (c trial) {
			x := k.random(n)
			c.expect(x, apply(values(x), func(v float64) float64 { return 0.3 * v }))
			c.call = func() { k.dev.Scale(x, 0.3) }
			return c
		}}, opCase{name("copy"), func(k *kit) (c trial) {
			x, y := k.random(n), k.random(n)
			c.expect(y, values(x))
			c.call = func() { k.dev.Copy(y, x) }
			return c
		}})
		for _, other := range []DType{FP32, BF16, FP64} {
			cases = append(cases, opCase{fmt.Sprintf("copy to %v/%d", other, n), func(k *kit) (c trial) {
				x, y := k.random(n), k.randomOf(other, n)
				c.expect(y, values(x))
				c.call = func() { k.dev.Copy(y, x) }
				return c
			}}, opCase{fmt.Sprintf("add %v/%d", other, n), func(k *kit) (c trial) {
				x, y := k.random(n), k.randomOf(other, n)
				c.expect(x, plus(values(x), values(y)))
				c.call = func() { k.dev.Add(x, y) }
				return c
			}})
		}
	}
	testCases(t, cases)
}

// Every pair of dtypes rounds once, to nearest with ties to even.
func TestCopyRounds(t *testing.T) {
	k := newKit(FP32, 1)
	defer k.close()
	const tie = 1 + 1.0/256 // between bf16's 1 and 1+1/128
	cases := []struct {
		name string
		from DType
		x    float64
		want float64
	}{
		{"fp32 tie down", FP32, tie, 1},
		{"fp32 tie up", FP32, tie + 1.0/128, 1 + 2.0/128},
		{"fp32 above tie", FP32, tie + 1.0/(1<<20), 1 + 1.0/128},
		{"fp64 above tie by less than fp32 sees", FP64, tie + 1.0/(1<<40), 1 + 1.0/128},
		{"fp64 below tie by less than fp32 sees", FP64, tie + 1.0/128 - 1.0/(1<<40), 1 + 1.0/128},
		{"largest overflows", FP32, math.MaxFloat32, math.Inf(1)},
		{"infinity", FP32, math.Inf(-1), math.Inf(-1)},
		{"nan", FP32, math.NaN(), math.NaN()},
		{"tiny", FP64, 1e-300, 0},
	}
	for _, c := range cases {
		x, y := k.arena.New(Activation, c.from, 1), k.arena.New(Activation, BF16, 1)
		setValues(x, []float64{c.x})
		k.dev.Copy(y, x)
		if got := values(y)[0]; got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s: %v becomes %v, want %v", c.name, c.x, got, c.want)
		}
	}
}

func TestCopyColumns(t *testing.T) {
	trialOf := func(k *kit, dst, src Columns) (c trial) {
		c.expect(dst.T, scatter(dst, gather(src)))
		c.call = func() { k.dev.CopyColumns(dst, src) }
		return c
	}
	testCases(t, []opCase{
		{"between", func(k *kit) trial {
			return trialOf(k, Columns{k.random(300, 17), 2, 3, 4}, Columns{k.random(300, 40), 28, 3, 4})
		}},
		{"whole", func(k *kit) trial { return trialOf(k, whole(k.random(300, 170)), whole(k.random(300, 170))) }},
		{"empty", func(k *kit) trial { return trialOf(k, whole(k.random(0, 17)), whole(k.random(0, 17))) }},
	})
}

func TestCopyInt32(t *testing.T) {
	k := newKit(FP32, 2)
	defer k.close()
	x, y := k.ints(1, -2, 3), k.ints(0, 0, 0)
	k.dev.Copy(y, x)
	if err := compare(values(y), []float64{1, -2, 3}, 0); err != nil {
		t.Error(err)
	}
	k.dev.Fill(y, 7)
	if err := compare(values(y), []float64{7, 7, 7}, 0); err != nil {
		t.Error(err)
	}
}

func TestSumRows(t *testing.T) {
	trialOf := func(k *kit, dst, x *Tensor) (c trial) {
		want := values(dst)
		for i, v := range values(x) {
			want[i%x.Cols()] += v
		}
		c.expect(dst, want)
		c.call = func() { k.dev.SumRows(dst, x) }
		return c
	}
	testCases(t, []opCase{
		{"own dtype", func(k *kit) trial { return trialOf(k, k.random(700), k.random(29, 700)) }},
		{"statistics", func(k *kit) trial { return trialOf(k, k.randomOf(k.statistics(), 7), k.random(300, 7)) }},
		{"empty", func(k *kit) trial { return trialOf(k, k.random(7), k.random(0, 7)) }},
	})
}
