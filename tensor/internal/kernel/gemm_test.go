package kernel

import (
	"math"
	"testing"
)

func TestGemmSmall(t *testing.T) {
	c := NewContext(2, make([]byte, WorkspaceBytes(2)), Detect())
	defer c.Close()
	a := Mat{F32: []float32{1, 2, 3, 4, 5, 6}, LD: 3}
	b := Mat{F32: []float32{1, 0, 1, 0, 1, 1}, LD: 3, Trans: true}
	out := Mat{F32: make([]float32, 4), LD: 2}
	c.Gemm(&Gemm{M: 2, N: 2, K: 3, A: a, B: b, C: out})
	for i, want := range []float32{4, 5, 10, 11} {
		if math.Abs(float64(out.F32[i]-want)) > 0 {
			t.Fatalf("C = %v", out.F32)
		}
	}
}
