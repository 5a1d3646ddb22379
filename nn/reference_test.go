package nn_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"carve/model"
	"carve/nn"
	"carve/tensor"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// reference computes the model's logits from its named parameters with loops over one token at a time, sharing
// nothing with the layers.
type reference struct {
	c      model.Config
	params map[string][]float64
}

func newReference(m *nn.Model) reference {
	f := reference{m.Config, map[string][]float64{}}
	for _, p := range slices.Concat(m.Params(), states(m)) {
		f.params[p.Name] = floats(p.Value)
	}
	return f
}

// find is the parameter whose name has the suffix; nil when there is none.
func (f reference) find(prefix, suffix string) []float64 {
	for name, v := range f.params {
		if strings.HasPrefix(name, prefix) && strings.HasSuffix(name, suffix) {
			return v
		}
	}
	return nil
}

// linear is W·x + b.
func linear(w, b, x []float64) []float64 {
	y := make([]float64, len(w)/len(x))
	for o := range y {
		for i, v := range x {
			y[o] += w[o*len(x)+i] * v
		}
		if b != nil {
			y[o] += b[o]
		}
	}
	return y
}

// norm is RMS or layer normalisation.
func (f reference) norm(w, b, x []float64) []float64 {
	mean, square := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	if b == nil {
		mean = 0
	}
	for _, v := range x {
		square += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v - mean) / math.Sqrt(square+f.c.NormEpsilon) * w[i]
		if b != nil {
			y[i] += b[i]
		}
	}
	return y
}

// rotate turns a head by its position; only unscaled frequencies.
func (f reference) rotate(x []float64, position int) {
	if f.c.Position != model.Rotary {
		return
	}
	half := len(x) / 2
	for i := range half {
		angle := float64(position) * math.Pow(f.c.Rope.Theta, -float64(i)/float64(half))
		a, b := x[i], x[i+half]
		x[i], x[i+half] = a*math.Cos(angle)-b*math.Sin(angle), b*math.Cos(angle)+a*math.Sin(angle)
	}
}

// attend is attention of the last query over all keys, head by head.
func (f reference) attend(q []float64, keys, values [][]float64) []float64 {
	d := f.c.HeadDim
	out := make([]float64, len(q))
	for h := range f.c.Heads {
		k := h / (f.c.Heads / f.c.KVHeads)
		sum := 0.0
		weights := make([]float64, len(keys))
		for j, key := range keys {
			for i := range d {
				weights[j] += q[h*d+i] * key[k*d+i] / math.Sqrt(float64(d))
			}
			weights[j] = math.Exp(weights[j])
			sum += weights[j]
		}
		for j, value := range values {
			for i := range d {
				out[h*d+i] += weights[j] / sum * value[k*d+i]
			}
		}
	}
	return out
}

// heads normalises (Qwen3) and rotates every head of x.
func (f reference) heads(prefix, norm string, x []float64, position int) []float64 {
	for h := 0; h < len(x); h += f.c.HeadDim {
		head := x[h : h+f.c.HeadDim]
		if w := f.find(prefix, norm); w != nil {
			copy(head, f.norm(w, nil, head))
		}
		f.rotate(head, position)
	}
	return x
}

// feed is the feed-forward of one token.
func (f reference) feed(at string, x []float64) []float64 {
	if f.find(at, ".gate.weight") != nil {
		return f.mix(at, x)
	}
	if f.c.Activation == model.SwiGLU {
		gate, up := linear(f.find(at, "gate_proj.weight"), nil, x), linear(f.find(at, "up_proj.weight"), nil, x)
		for i, g := range gate {
			up[i] *= g / (1 + math.Exp(-g))
		}
		return linear(f.find(at, "down_proj.weight"), nil, up)
	}
	h := linear(f.find(at, "c_fc.weight"), f.find(at, "c_fc.bias"), x)
	for i, v := range h {
		h[i] = v / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
	}
	return linear(f.find(at, "mlp.c_proj.weight"), f.find(at, "mlp.c_proj.bias"), h)
}

// spelling is the names of either family's parameters.
func (f reference) spelling() (block, norm1, norm2, q, k, v, out, last string) {
	if f.c.Architecture == model.GPT2 {
		return "transformer.h.", ".ln_1.", ".ln_2.", "c_attn.q.", "c_attn.k.", "c_attn.v.", "attn.c_proj.", "transformer.ln_f."
	}
	return "model.layers.", ".input_layernorm.", ".post_attention_layernorm.", "q_proj.", "k_proj.", "v_proj.", "o_proj.", "model.norm."
}

// logits are those of every token of one sequence.
func (f reference) logits(tokens []int32) [][]float64 {
	block, norm1, norm2, q, k, v, out, last := f.spelling()
	h := f.c.Hidden
	table := f.find("", "embed_tokens.weight")
	if table == nil {
		table = f.find("", "wte.weight")
	}
	x := make([][]float64, len(tokens))
	for s, token := range tokens {
		x[s] = append([]float64(nil), table[int(token)*h:int(token+1)*h]...)
		if p := f.find("", "wpe.weight"); p != nil {
			add(x[s], p[s*h:(s+1)*h])
		}
	}
	for i := range f.c.Layers {
		at := block + string(rune('0'+i)) + "."
		get := func(name, kind string) []float64 { return f.find(at, name+kind) }
		var keys, values [][]float64
		for s := range x {
			n := f.norm(get(norm1, "weight"), get(norm1, "bias"), x[s])
			keys = append(keys, f.heads(at, "k_norm.weight", linear(get(k, "weight"), get(k, "bias"), n), s))
			values = append(values, linear(get(v, "weight"), get(v, "bias"), n))
			query := f.heads(at, "q_norm.weight", linear(get(q, "weight"), get(q, "bias"), n), s)
			add(x[s], linear(get(out, "weight"), get(out, "bias"), f.attend(query, keys, values)))
		}
		for s := range x {
			add(x[s], f.feed(at, f.norm(get(norm2, "weight"), get(norm2, "bias"), x[s])))
		}
	}
	if !f.c.TieEmbeddings {
		table = f.find("", "lm_head.weight")
	}
	for s := range x {
		x[s] = linear(table, nil, f.norm(f.find(last, "weight"), f.find(last, "bias"), x[s]))
	}
	return x
}

func add(dst, src []float64) {
	for i, v := range src {
		dst[i] += v
	}
}

// loss is the sum over valid targets.
func (f reference) loss(b *nn.Batch) (sum float64) {
	n := b.Tokens.Dim(1)
	for lo := 0; lo < b.Tokens.Len(); lo += n {
		for s, logits := range f.logits(b.Tokens.I32()[lo : lo+n]) {
			target := b.Targets.I32()[lo+s]
			if target < 0 {
				continue
			}
			total := 0.0
			for _, l := range logits {
				total += math.Exp(l)
			}
			sum += math.Log(total) - logits[target]
		}
	}
	return sum
}

// TestReference compares loss and logits with the straight-line reference.
func TestReference(t *testing.T) {
	for _, f := range families() {
		if f.config.Rope.Scaling != model.NoScaling {
			continue // TestRopeScaling has these
		}
		t.Run(f.name, func(t *testing.T) {
			r := newRank(t, tensor.FP64)
			m := newModel(t, r, f.config, nn.Options{})
			b := newBatch(r, f.config.Vocab, 3, 7, 11)
			want := newReference(m)
			const tolerance = 1e-12 // other order of summation, values of order 1
			m.Evaluate(r, b)
			if diff := cmp.Diff(want.loss(b), b.Loss, cmpopts.EquateApprox(tolerance, 0)); diff != "" {
				t.Error("loss", diff)
			}
			logits := m.Logits(r, b, 4)
			defer logits.Free()
			var rows []float64
			for i := range 3 {
				rows = append(rows, want.logits(b.Tokens.I32()[i*7 : i*7+7])[4]...)
			}
			if diff := cmp.Diff(rows, logits.F64(), cmpopts.EquateApprox(tolerance, tolerance)); diff != "" {
				t.Error("logits", diff)
			}
		})
	}
}

// TestPackedDocuments compares a batch of packed documents with the reference on each document by itself.
func TestPackedDocuments(t *testing.T) {
	for _, f := range families() {
		if f.config.Rope.Scaling != model.NoScaling {
			continue
		}
		t.Run(f.name, func(t *testing.T) {
			r := newRank(t, tensor.FP64)
			m := newModel(t, r, f.config, nn.Options{})
			b := packed(r, newBatch(r, f.config.Vocab, 2, 8, 12))
			m.Evaluate(r, b)
			want := 0.0
			for lo := 0; lo < b.Tokens.Len(); {
				hi := lo
				for hi < b.Tokens.Len() && b.Documents.I32()[hi] == b.Documents.I32()[lo] {
					hi++
				}
				one := &nn.Batch{Tokens: b.Tokens.Slice(lo, hi, 1, hi-lo), Targets: b.Targets.Slice(lo, hi, 1, hi-lo)}
				want += newReference(m).loss(one)
				lo = hi
			}
			if diff := cmp.Diff(want, b.Loss, cmpopts.EquateApprox(1e-12, 0)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
