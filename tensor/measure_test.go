package tensor

import (
	"testing"
	"time"
)

func TestProductsAreMeasured(t *testing.T) {
	for _, p := range []Product{
		{M: 5, N: 7, K: 3, Threads: 1, DType: FP32, TransA: true},
		{M: 5, N: 7, K: 3, Threads: 2, DType: BF16, TransB: true},
		{M: 5, N: 7, K: 3, Threads: 1, DType: FP64},
	} {
		if r := p.Measure(time.Millisecond); r <= 0 {
			t.Errorf("%s of %v: %v", p.Op(), p.DType, r)
		}
	}
	names := map[string]bool{}
	for _, p := range StandardProducts(BF16, 2) {
		if p.DType != BF16 || p.Threads != 2 {
			t.Errorf("%+v has another dtype or number of threads", p)
		}
		names[p.Op()] = true
	}
	if !names["gemm_nn"] || !names["gemm_nt"] || !names["gemm_tn"] {
		t.Errorf("the standard products are of the kinds %v only", names)
	}
}

// TestMiddle plants three lengths: the middle one is the answer, and the first call does not count.
func TestMiddle(t *testing.T) {
	calls := 0
	if s := middle(0, func() { calls++ }); calls != 4 || s <= 0 {
		t.Errorf("%d calls, %v", calls, s)
	}
	if m := median([]float64{9, 1, 2}); m != 2 {
		t.Errorf("median %v", m)
	}
}

func TestCeiling(t *testing.T) {
	c := Ceiling{FP32: 100, BF16: 200}
	if c.Of(FP32) != 100 || c.Of(BF16) != 200 || c.Of(FP64) != 50 || (Ceiling{FP32: 100}).Of(BF16) != 100 {
		t.Errorf("%v %v %v", c.Of(FP32), c.Of(BF16), c.Of(FP64))
	}
	if m := MeasureCeiling(time.Millisecond); m.FP32 <= 0 {
		t.Errorf("measured %v", m)
	}
}
