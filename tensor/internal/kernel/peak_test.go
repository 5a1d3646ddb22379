package kernel

import (
	"testing"
	"time"
)

// TestPeakIsAboveTheKernels holds the ceiling to what it is for: no product is faster, and none of the measured rates is zero.
func TestPeakIsAboveTheKernels(t *testing.T) {
	for _, f := range []Features{{}, Detect()} {
		p := MeasurePeak(f, 20*time.Millisecond)
		if p.F32 <= 0 {
			t.Fatalf("%+v: peak %v", f, p.F32)
		}
		if (p.BF16 > 0) != (f.AVX512 && f.BF16) {
			t.Errorf("%+v: bf16 peak %v", f, p.BF16)
		}
	}
}

// TestFastestCountsWork plants bursts of known lengths: the fastest of them decides.
func TestFastestCountsWork(t *testing.T) {
	n := 0
	rate := fastest(5*time.Millisecond, 100, func() { n++ })
	if n == 0 || rate <= 100/0.005 {
		t.Errorf("%d bursts, rate %v", n, rate)
	}
}

func TestBandwidth(t *testing.T) {
	c := NewContext(2, make([]byte, WorkspaceBytes(2)), Detect())
	defer c.Close()
	src, dst := make([]float32, 3*sweep+7), make([]float32, 3*sweep+7)
	for i := range src {
		src[i] = float32(i)
	}
	if r := c.ReadBandwidth(src, time.Millisecond); r <= 0 {
		t.Errorf("read %v", r)
	}
	if r := c.CopyBandwidth(dst, src, time.Millisecond); r <= 0 {
		t.Errorf("copy %v", r)
	}
	for i := range dst {
		if dst[i] != src[i] {
			t.Fatalf("element %d was not copied", i)
		}
	}
}

// TestDetect holds that a process decides once, and never for an instruction that is not there.
func TestDetect(t *testing.T) {
	f := Detect()
	if f != Detect() || f.BF16Fast && !f.BF16 || f.BF16 && !f.AVX512 {
		t.Errorf("detected %+v", f)
	}
}
