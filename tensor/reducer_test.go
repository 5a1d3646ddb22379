package tensor

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// reduceTwin combines element by element in float64.
func reduceTwin(srcs [][]float64, op ReduceOp, i int) float64 {
	v := srcs[0][i]
	for _, s := range srcs[1:] {
		switch op {
		case Sum, Avg:
			v += s[i]
		case Min:
			v = math.Min(v, s[i])
		case Max:
			v = math.Max(v, s[i])
		}
	}
	if op == Avg {
		v /= float64(len(srcs))
	}
	return v
}

func TestReduce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.SampledFrom([]DType{FP32, BF16, FP64, Int32}).Draw(t, "dtype")
		op := rapid.SampledFrom([]ReduceOp{Sum, Avg, Min, Max}).Draw(t, "op")
		ranks := rapid.IntRange(1, 20).Draw(t, "ranks")
		n := rapid.IntRange(0, 1500).Draw(t, "elements")
		lo := rapid.IntRange(0, n).Draw(t, "lo")
		hi := rapid.IntRange(lo, n).Draw(t, "hi")
		outputs := rapid.IntRange(0, ranks).Draw(t, "outputs that are inputs")
		k := newKit(d, 1)
		defer k.close()
		srcs, before := make([]*Tensor, ranks), make([][]float64, ranks)
		for r := range srcs {
			srcs[r] = k.random(n)
			before[r] = values(srcs[r])
		}
		dsts := append([]*Tensor{k.random(n)}, srcs[ranks-outputs:]...)
		fresh := values(dsts[0])
		NewReducer().Reduce(dsts, srcs, op, lo, hi)
		for i, dst := range dsts {
			want := fresh
			if i > 0 {
				want = before[ranks-outputs+i-1]
			}
			want = append([]float64(nil), want...)
			for j := lo; j < hi; j++ {
				want[j] = reduceTwin(before, op, j)
				if d == Int32 {
					want[j] = math.Trunc(want[j])
				}
			}
			tolerance := tolerances[d]
			if err := compare(values(dst), want, tolerance); err != nil {
				t.Fatalf("%v %v, destination %d: %v", d, op, i, err)
			}
		}
	})
}

// A bf16 sum is rounded once, not after every operand.
func TestReduceRoundsOnce(t *testing.T) {
	k := newKit(BF16, 1)
	defer k.close()
	var srcs []*Tensor
	for _, v := range []float64{256, 1, 1, 1} { // bf16 numbers from 256 on are 2 apart
		x := k.random(1)
		setValues(x, []float64{v})
		srcs = append(srcs, x)
	}
	NewReducer().Reduce(srcs[:1], srcs, Sum, 0, 1)
	if got := values(srcs[0])[0]; got != 260 { // 259, to even
		t.Errorf("256+1+1+1 in bf16 is %v, want 260", got)
	}
}

func TestReducerCopy(t *testing.T) {
	k := newKit(FP32, 1)
	defer k.close()
	for _, d := range []DType{FP32, BF16, FP64, Int32} {
		src, dst := k.randomOf(d, 40), k.randomOf(d, 50)
		want := values(dst)
		copy(want[7:], values(src)[11:31])
		NewReducer().Copy(dst, 7, src, 11, 20)
		if err := compare(values(dst), want, 0); err != nil {
			t.Errorf("%v: %v", d, err)
		}
	}
}

func TestReducerAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, d := range []DType{FP32, BF16, FP64, Int32} {
		k := newKit(d, 1)
		r := NewReducer()
		ts := []*Tensor{k.random(5000), k.random(5000), k.random(5000)}
		if n := testing.AllocsPerRun(10, func() {
			r.Reduce(ts, ts, Avg, 0, 5000)
			r.Copy(ts[0], 0, ts[1], 0, 5000)
		}); n != 0 {
			t.Errorf("%v: %v allocations", d, n)
		}
		k.close()
	}
}
