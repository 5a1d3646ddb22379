package tensor

import (
	"fmt"
	"testing"
)

// benchOp is a memory-bound operation with the bytes that it must move.
type benchOp struct {
	name  string
	shape string
	bytes int
	call  func()
}

// benchOps are the operations of a transformer block, of the loss and of the optimizer at the sizes of GPT-2.
func benchOps(k *kit) []benchOp {
	const rows, h, f, v, tokens = 2048, 768, 2048, 32000, 256
	x, y, z := k.random(rows, h), k.random(rows, h), k.random(rows, h)
	gate, dgate, mid := k.random(rows, 2*f), k.random(rows, 2*f), k.random(rows, f)
	w, dw := k.random(h), k.randomOf(k.statistics(), h)
	b, db := k.random(h), k.randomOf(k.statistics(), h)
	mean, rstd := k.randomOf(k.statistics(), rows), k.randomOf(k.statistics(), rows)
	logits, table := k.random(tokens, v), k.random(v, h)
	top, sum, target := k.randomOf(k.statistics(), tokens), k.randomOf(k.statistics(), tokens), k.randomOf(k.statistics(), tokens)
	ids, targets := k.arena.New(Activation, Int32, rows), k.arena.New(Activation, Int32, tokens)
	for i := range ids.I32() {
		ids.I32()[i] = int32(k.rng.IntN(v))
	}
	copy(targets.I32(), ids.I32())
	cos, sin := k.angles(256, 32)
	const n = 8 << 20
	p, m, vv := k.randomOf(k.statistics(), n), k.randomOf(k.statistics(), n), k.randomOf(k.statistics(), n)
	k.dev.Fill(vv, 1)
	g := k.random(n)
	var param *Tensor
	if k.dtype == BF16 {
		param = k.random(n)
	}
	norm := Norm{Y: whole(y), X: whole(x), W: w, RStd: rstd, Eps: 1e-5}
	layer := norm
	layer.B, layer.Mean = b, mean
	back := NormBackward{DX: whole(y), DY: whole(z), X: whole(x), W: w, DW: dw, RStd: rstd}
	layerBack := back
	layerBack.DB, layerBack.Mean = db, mean
	adam := AdamW{Master: p, M: m, V: vv, Grad: g, Param: param, Rate: 1e-3, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, Correct1: 0.1, Correct2: 0.05, GradScale: 1}
	adamBytes := 6*p.Bytes() + g.Bytes()
	if param != nil {
		adamBytes += param.Bytes()
	}
	wide := func(t *Tensor) string { return fmt.Sprintf("%dx%d", t.Rows(), t.Cols()) }
	other := k.randomOf(FP32, n)
	return []benchOp{
		{"rmsnorm", wide(x), 2 * x.Bytes(), func() { k.dev.RMSNorm(norm) }},
		{"rmsnorm-backward", wide(x), 3 * x.Bytes(), func() { k.dev.RMSNormBackward(back) }},
		{"layernorm", wide(x), 2 * x.Bytes(), func() { k.dev.LayerNorm(layer) }},
		{"layernorm-backward", wide(x), 3 * x.Bytes(), func() { k.dev.LayerNormBackward(layerBack) }},
		{"swiglu", wide(gate), 3 * mid.Bytes(), func() { k.dev.SwiGLU(mid, gate) }},
		{"swiglu-backward", wide(gate), 5 * mid.Bytes(), func() { k.dev.SwiGLUBackward(dgate, nil, mid, gate) }},
		{"gelu", wide(gate), 2 * gate.Bytes(), func() { k.dev.GELU(dgate, gate) }},
		{"gelu-backward", wide(gate), 3 * gate.Bytes(), func() { k.dev.GELUBackward(dgate, nil, dgate, gate) }},
		{"rotate", wide(x), 2 * x.Bytes(), func() { k.dev.Rotate(Rotate{X: Columns{x, 0, 12, 64}, Cos: cos, Sin: sin, S: 256}) }},
		{"add", wide(x), 3 * x.Bytes(), func() { k.dev.Add(x, z) }},
		{"sumrows", wide(x), x.Bytes(), func() { k.dev.SumRows(db, x) }},
		{"embed", wide(x), 2 * x.Bytes(), func() { k.dev.Embed(y, table, ids, 0) }},
		{"embed-backward", wide(x), 3 * x.Bytes(), func() { k.dev.EmbedBackward(table, z, ids, 0) }},
		{"loss-stats", wide(logits), logits.Bytes(), func() { k.dev.LossStats(top, sum, target, logits, targets, 0) }},
		{"loss-backward", wide(logits), 2 * logits.Bytes(), func() { k.dev.LossBackward(logits, top, sum, targets, 0, 1) }},
		{"adamw", fmt.Sprint(n), adamBytes, func() { k.dev.AdamW(adam) }},
		{"squared-norm", fmt.Sprint(n), g.Bytes(), func() { k.dev.SquaredNorm(g) }},
		{"finite", fmt.Sprint(n), g.Bytes(), func() { k.dev.Finite(g) }},
		{"fill", fmt.Sprint(n), g.Bytes(), func() { k.dev.Fill(g, 1) }},
		{"scale", fmt.Sprint(n), 2 * g.Bytes(), func() { k.dev.Scale(g, 1) }},
		{"copy-fp32", fmt.Sprint(n), g.Bytes() + other.Bytes(), func() { k.dev.Copy(g, other) }},
		{"normal", wide(x), x.Bytes(), func() { k.dev.Normal(Normal{T: x, Key: 1, Std: 1, Cols: h}) }},
	}
}

func BenchmarkCPU(b *testing.B) {
	for _, d := range []DType{FP32, BF16} {
		for _, threads := range []int{1, 2} {
			k := newKit(d, threads)
			for _, op := range benchOps(k) {
				b.Run(fmt.Sprintf("op=%s/shape=%s/dtype=%v/threads=%d", op.name, op.shape, d, threads), func(b *testing.B) {
					b.SetBytes(int64(op.bytes))
					for b.Loop() {
						op.call()
					}
				})
			}
			k.close()
		}
	}
}
