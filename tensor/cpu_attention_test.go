package tensor

import (
	"math"
	"testing"

	"carve/tensor/internal/kernel"
)

// attentionCase is a shape and a mask.
type attentionCase struct {
	name                string
	b, s, sk            int
	heads, kv, width    int
	causal              bool
	qpos, kpos          []int32
	qdoc, kdoc          []int32
	merge, add          bool
	dropout             AttentionDropout
	start, between, end int // columns of other things around the runs
}

func attentionCases() []attentionCase {
	return []attentionCase{
		{name: "one", b: 1, s: 1, sk: 1, heads: 1, kv: 1, width: 4},
		{name: "causal", b: 2, s: 70, sk: 70, heads: 2, kv: 2, width: 16, causal: true},
		{name: "whole blocks", b: 1, s: 128, sk: 128, heads: 1, kv: 1, width: 32, causal: true},
		{name: "many chunks", b: 1, s: 300, sk: 300, heads: 1, kv: 1, width: 16, causal: true},
		{name: "everything visible", b: 1, s: 33, sk: 90, heads: 1, kv: 1, width: 8},
		{name: "grouped heads in a fused matrix", b: 2, s: 65, sk: 65, heads: 6, kv: 2, width: 8, causal: true, start: 3, between: 5, end: 1},
		{name: "odd width", b: 1, s: 20, sk: 20, heads: 1, kv: 1, width: 7, causal: true},
		{name: "documents", b: 2, s: 140, sk: 140, heads: 2, kv: 1, width: 8, causal: true, qdoc: documents(2, 140), kdoc: documents(2, 140)},
		{name: "documents without causality", b: 1, s: 80, sk: 80, heads: 1, kv: 1, width: 8, qdoc: documents(1, 80), kdoc: documents(1, 80)},
		{name: "ring: later keys", b: 1, s: 70, sk: 70, heads: 1, kv: 1, width: 8, causal: true, qpos: rising(0, 70), kpos: rising(35, 70)},
		{name: "ring: zigzag", b: 2, s: 80, sk: 80, heads: 2, kv: 2, width: 8, causal: true, qpos: zigzag(1, 40), kpos: zigzag(0, 40), merge: true, add: true},
		{name: "merge", b: 1, s: 30, sk: 50, heads: 3, kv: 1, width: 8, merge: true, add: true},
		{name: "nothing visible", b: 1, s: 10, sk: 70, heads: 1, kv: 1, width: 8, causal: true, kpos: rising(100, 70), add: true},
		{name: "dropout", b: 2, s: 70, sk: 70, heads: 4, kv: 2, width: 8, causal: true, dropout: AttentionDropout{0.3, 5, 11, 8}},
		{
			name: "dropout: zigzag", b: 2, s: 80, sk: 80, heads: 2, kv: 2, width: 8, causal: true, merge: true,
			qpos: zigzag(1, 40), kpos: zigzag(0, 40), dropout: AttentionDropout{0.1, 5, 0, 0},
		},
		{name: "no keys", b: 1, s: 10, sk: 0, heads: 1, kv: 1, width: 8},
		{name: "no queries", b: 1, s: 0, sk: 4, heads: 1, kv: 1, width: 8},
	}
}

func rising(from, n int) []int32 {
	p := make([]int32, n)
	for i := range p {
		p[i] = int32(from + i)
	}
	return p
}

// zigzag is the positions of rank r of two: its run of n from the front and one from the back.
func zigzag(r, n int) []int32 { return append(rising(r*n, n), rising((3-r)*n, n)...) }

// documents is b sequences of s rows in documents of growing length.
func documents(b, s int) []int32 {
	d := make([]int32, 0, b*s)
	for i := range b * s {
		d = append(d, int32(math.Sqrt(float64(i))/2))
	}
	return d
}

// operands makes the forward's operands.
func (a *attentionCase) operands(k *kit) Attention {
	fused := func(rows, heads int) Columns {
		return Columns{k.random(rows, a.start+heads*a.width+a.end), a.start, heads, a.width}
	}
	op := Attention{
		Batch: a.b, Scale: 1 / math.Sqrt(float64(a.width)), Causal: a.causal, Merge: a.merge, Dropout: a.dropout,
		Out: fused(a.b*a.s, a.heads), LSE: k.randomOf(k.statistics(), a.b, a.heads, a.s),
	}
	if a.s == a.sk {
		n := a.start + (a.heads+2*a.kv)*a.width + 2*a.between + a.end
		t := k.random(a.b*a.s, n)
		keys := a.start + a.heads*a.width + a.between
		op.Q = Columns{t, a.start, a.heads, a.width}
		op.K = Columns{t, keys, a.kv, a.width}
		op.V = Columns{t, keys + a.kv*a.width + a.between, a.kv, a.width}
	} else {
		op.Q, op.K, op.V = fused(a.b*a.s, a.heads), fused(a.b*a.sk, a.kv), fused(a.b*a.sk, a.kv)
	}
	if a.qpos != nil {
		op.QueryPos = k.ints(a.qpos...)
	}
	if a.kpos != nil {
		op.KeyPos = k.ints(a.kpos...)
	}
	if a.qdoc != nil {
		op.QueryDoc, op.KeyDoc = k.ints(a.qdoc...), k.ints(a.kdoc...)
	}
	return op
}

// visible says what the case's mask lets through.
func (a *attentionCase) visible(b, q, k int) bool {
	at := func(p []int32, i int) int32 {
		if p == nil {
			return int32(i)
		}
		return p[i]
	}
	if a.causal && at(a.kpos, k) > at(a.qpos, q) {
		return false
	}
	return a.qdoc == nil || a.qdoc[b*a.s+q] == a.kdoc[b*a.sk+k]
}

// factor is what dropout multiplies a probability with.
func (a *attentionCase) factor(b, h, q, k int) float64 {
	d := &a.dropout
	if d.Rate == 0 {
		return 1
	}
	place := uint32(position(a.qpos, q))
	words := kernel.Philox([4]uint32{place / 4, uint32(position(a.kpos, k)), uint32(d.Sample + b), uint32(d.Head + h)}, d.Key)
	if float64(words[place%4])/(1<<32) < d.Rate {
		return 0
	}
	return 1 / (1 - d.Rate)
}

// attentionTwin keeps the whole matrix of scores.
type attentionTwin struct {
	a             *attentionCase
	scale         float64
	q, k, v       []float64 // runs
	out, lse      []float64
	probabilities []float64 // [B A S SK]
}

func (t *attentionTwin) qRow(b, h, i int) int { return ((b*t.a.s+i)*t.a.heads + h) * t.a.width }
func (t *attentionTwin) kRow(b, h, j int) int {
	return ((b*t.a.sk+j)*t.a.kv + h/(t.a.heads/t.a.kv)) * t.a.width
}

func (t *attentionTwin) each(f func(b, h, i int)) {
	for b := range t.a.b {
		for h := range t.a.heads {
			for i := range t.a.s {
				f(b, h, i)
			}
		}
	}
}

func dotTwin(x, y []float64) float64 {
	s := 0.0
	for i := range x {
		s += x[i] * y[i]
	}
	return s
}

// forward computes the result, merged with earlier ones.
func (t *attentionTwin) forward(oldOut, oldLSE []float64) {
	w, sk := t.a.width, t.a.sk
	t.out, t.lse = make([]float64, len(t.q)), make([]float64, len(oldLSE))
	t.probabilities = make([]float64, len(oldLSE)*sk)
	t.each(func(b, h, i int) {
		row := (b*t.a.heads+h)*t.a.s + i
		p, q := t.probabilities[row*sk:][:sk], t.qRow(b, h, i)
		sum := 0.0
		for j := range p {
			if t.a.visible(b, i, j) {
				p[j] = math.Exp(t.scale * dotTwin(t.q[q:q+w], t.k[t.kRow(b, h, j):][:w]))
				sum += p[j]
			}
		}
		earlier := 0.0
		if t.a.merge {
			earlier = math.Exp(oldLSE[row])
		}
		t.lse[row] = math.Log(sum + earlier)
		out := t.out[q : q+w]
		for d := range out {
			if sum+earlier > 0 {
				out[d] = earlier / (sum + earlier) * oldOut[q+d]
			}
			for j := range p {
				if p[j] > 0 {
					out[d] += t.a.factor(b, h, i, j) * p[j] / (sum + earlier) * t.v[t.kRow(b, h, j)+d]
				}
			}
		}
	})
}

func twinOf(a *attentionCase, op Attention) *attentionTwin {
	t := &attentionTwin{a: a, scale: op.Scale, q: gather(op.Q), k: gather(op.K), v: gather(op.V)}
	t.forward(gather(op.Out), values(op.LSE))
	return t
}

// testOnEveryCPU runs cases with all features and with lesser ones.
func testOnEveryCPU(t *testing.T, cases []opCase) {
	testCases(t, cases)
	for name, f := range lesserFeatures {
		t.Run(name, func(t *testing.T) { testCasesOn(t, f, cases) })
	}
}

func TestAttention(t *testing.T) {
	var cases []opCase
	for _, a := range attentionCases() {
		cases = append(cases, opCase{a.name, func(k *kit) (c trial) {
			op := a.operands(k)
			twin := twinOf(&a, op)
			c.expect(op.Out.T, scatter(op.Out, twin.out))
			c.expect(op.LSE, twin.lse)
			c.call = func() { k.dev.Attention(op) }
			return c
		}})
	}
	testOnEveryCPU(t, cases)
}

// backward computes the gradients from given probabilities: lse and out are those of all keys.
func (t *attentionTwin) backward(dout, out, lse []float64) (dq, dk, dv, delta []float64) {
	w, sk := t.a.width, t.a.sk
	dq, dk, dv = make([]float64, len(t.q)), make([]float64, len(t.k)), make([]float64, len(t.v))
	delta = make([]float64, len(lse))
	t.each(func(b, h, i int) {
		row, q := (b*t.a.heads+h)*t.a.s+i, t.qRow(b, h, i)
		do := dout[q : q+w]
		delta[row] = dotTwin(do, out[q:q+w])
		for j := range sk {
			if !t.a.visible(b, i, j) {
				continue
			}
			k := t.kRow(b, h, j)
			p := math.Exp(t.scale*dotTwin(t.q[q:q+w], t.k[k:k+w]) - lse[row])
			factor := t.a.factor(b, h, i, j)
			ds := p * (factor*dotTwin(do, t.v[k:k+w]) - delta[row]) * t.scale
			for d := range w {
				dv[k+d] += factor * p * do[d]
				dq[q+d] += ds * t.k[k+d]
				dk[k+d] += ds * t.q[q+d]
			}
		}
	})
	return dq, dk, dv, delta
}

func TestAttentionBackward(t *testing.T) {
	var cases []opCase
	for _, a := range attentionCases() {
		cases = append(cases, opCase{a.name, func(k *kit) trial { return attentionBackwardTrial(k, a) }})
	}
	testOnEveryCPU(t, cases)
}

func attentionBackwardTrial(k *kit, a attentionCase) (c trial) {
	f := a.operands(k)
	twin := twinOf(&a, f)
	setValues(f.Out.T, scatter(f.Out, twin.out))
	setValues(f.LSE, twin.lse)
	like := func(c Columns) Columns {
		return Columns{k.random(c.T.Rows(), c.T.Cols()), c.Start, c.Heads, c.Width}
	}
	op := AttentionBackward{
		Forward: f, DOut: like(f.Out), DQ: like(f.Q), Accumulate: a.add,
		Delta: k.randomOf(f.LSE.DType(), f.LSE.Shape()...),
	}
	op.DK, op.DV = like(f.K), like(f.V)
	if f.Q.T == f.K.T { // the gradients of a fused matrix lie as it does
		op.DK.T, op.DV.T = op.DQ.T, op.DQ.T
	}
	dq, dk, dv, delta := twin.backward(gather(op.DOut), gather(f.Out), values(f.LSE))
	if a.add {
		dq, dk, dv = plus(dq, gather(op.DQ)), plus(dk, gather(op.DK)), plus(dv, gather(op.DV))
	}
	c.call = func() { k.dev.AttentionBackward(op) }
	c.expect(op.Delta, delta)
	if f.Q.T == f.K.T {
		all := values(op.DQ.T)
		place := func(c Columns, x []float64) {
			runs(c, func(run, at int) { copy(all[at:at+c.Width], x[run*c.Width:]) })
		}
		place(op.DQ, dq)
		place(op.DK, dk)
		place(op.DV, dv)
		c.expect(op.DQ.T, all)
		return c
	}
	c.expect(op.DQ.T, scatter(op.DQ, dq))
	c.expect(op.DK.T, scatter(op.DK, dk))
	c.expect(op.DV.T, scatter(op.DV, dv))
	return c
}

// Keys seen in two halves, merged, give what all keys at once give: ring attention's identity.
func TestAttentionInTwoHalves(t *testing.T) {
	for _, d := range []DType{FP32, FP64} {
		k := newKit(d, 2)
		a := attentionCase{b: 1, s: 96, sk: 96, heads: 2, kv: 1, width: 16, causal: true}
		op := a.operands(k)
		k.dev.Attention(op)
		want := values(op.Out.T)
		part := op
		for half := range 2 {
			part.K.T, part.V.T = op.K.T.RowRange(48*half, 48*half+48), op.V.T.RowRange(48*half, 48*half+48)
			part.KeyPos, part.Merge = k.ints(rising(48*half, 48)...), half > 0
			k.dev.Attention(part)
		}
		if err := compare(values(op.Out.T), want, tolerances[d]); err != nil {
			t.Errorf("%v: %v", d, err)
		}
		k.close()
	}
}
