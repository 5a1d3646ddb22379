package tensor

import (
	"fmt"
	"math"
	"runtime"
	"testing"
)

// benchAttention is the operands of causal self-attention on a fused matrix.
func benchAttention(k *kit, b, s, heads, kv, d int) (Attention, AttentionBackward) {
	n := (heads + 2*kv) * d
	qkv, dqkv := k.random(b*s, n), k.random(b*s, n)
	out, dout := k.random(b*s, heads*d), k.random(b*s, heads*d)
	f := Attention{
		Out: Columns{out, 0, heads, d}, Q: Columns{qkv, 0, heads, d}, K: Columns{qkv, heads * d, kv, d},
		V: Columns{qkv, (heads + kv) * d, kv, d}, LSE: k.arena.New(Activation, k.statistics(), b, heads, s),
		Batch: b, Scale: 1 / math.Sqrt(float64(d)), Causal: true,
	}
	back := AttentionBackward{
		Forward: f, DOut: Columns{dout, 0, heads, d}, DQ: Columns{dqkv, 0, heads, d}, DK: Columns{dqkv, heads * d, kv, d},
		DV: Columns{dqkv, (heads + kv) * d, kv, d}, Delta: k.arena.New(Workspace, k.statistics(), b, heads, s),
	}
	return f, back
}

func BenchmarkAttention(b *testing.B) {
	shapes := []struct{ b, s, heads, kv, d int }{
		{8, 256, 4, 4, 64}, {16, 256, 4, 4, 64}, {2, 1024, 12, 12, 64}, {1, 2048, 8, 2, 128},
	}
	for _, s := range shapes {
		for _, d := range []DType{FP32, BF16} {
			for threads := 1; threads <= runtime.NumCPU(); threads *= 2 {
				k := newKit(d, threads)
				f, back := benchAttention(k, s.b, s.s, s.heads, s.kv, s.d)
				pairs := float64(s.b*s.heads) * float64(s.s) * float64(s.s+1) / 2
				name := fmt.Sprintf("shape=%dx%dx%d.%dx%d/dtype=%v/threads=%d", s.b, s.s, s.heads, s.kv, s.d, d, threads)
				run := func(op string, flops float64, call func()) {
					b.Run("op="+op+"/"+name, func(b *testing.B) {
						for b.Loop() {
							call()
						}
						b.ReportMetric(flops*pairs*float64(s.d)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gflop/s")
					})
				}
				run("forward", 4, func() { k.dev.Attention(f) })
				run("backward", 10, func() { k.dev.AttentionBackward(back) })
				k.close()
			}
		}
	}
}
