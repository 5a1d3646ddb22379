package nn_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"carve/mesh"
	"carve/model"
	"carve/nn"
	"carve/tensor"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestParams holds names, shapes, placements and kinds of every parameter to a text that a person can judge, and their
// number to what package model counts.
func TestParams(t *testing.T) {
	for _, name := range []string{"qwen3", "qwen2", "gpt2"} {
		for _, f := range families() {
			if f.name != name {
				continue
			}
			m := newModel(t, newRank(t, tensor.FP32), f.config, nn.Options{})
			var text strings.Builder
			total := 0
			for _, u := range m.Units {
				fmt.Fprintf(&text, "unit %s [%d:%d]\n", u.Name, u.Lo, u.Hi)
				for _, p := range u.Params {
					fmt.Fprintf(&text, "  %-48s %-8s %-7v decay %-5v %v, sum over %v\n",
						p.Name, fmt.Sprint(p.Shape), p.Kind, p.Decay, p.Spec, p.Terms)
					total += p.Len()
				}
			}
			if want := int(f.config.Parameters().Total()); total != want || m.Value.Len() != want {
				t.Errorf("%s: %d parameters in buffers of %d, want %d", name, total, m.Value.Len(), want)
			}
			golden(t, "testdata/params_"+name+".txt", text.String())
		}
	}
}

// TestParamsAreTheCheckpoints compares names and shapes with those of Hugging Face's files, after what conversion does to
// GPT-2: query, key and value joined, matrices transposed.
func TestParamsAreTheCheckpoints(t *testing.T) {
	for _, f := range families() {
		got, want := map[string]string{}, map[string]string{}
		joined := map[string]int{} // rows of a fused tensor so far
		m := newModel(t, newRank(t, tensor.FP32), f.config, nn.Options{})
		for _, p := range slices.Concat(m.Params(), states(m)) {
			name, shape := p.Name, slices.Clone(p.Shape)
			if f.config.Architecture == model.GPT2 {
				for _, part := range []string{".q.", ".k.", ".v."} {
					if stem, kind, ok := strings.Cut(p.Name, "c_attn"+part); ok {
						name = stem + "c_attn." + kind
						joined[name] += shape[0]
						shape[0] = joined[name]
					}
				}
				if p.Kind == nn.Matrix {
					slices.Reverse(shape)
				}
			}
			got[name] = fmt.Sprint(shape)
		}
		for _, x := range f.config.Tensors() {
			want[x.Name] = fmt.Sprint(x.Shape)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", f.name, diff)
		}
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s: %s", path, diff)
	}
}

// TestBuildRefuses wants every reason at once, each with its remedy.
func TestBuildRefuses(t *testing.T) {
	three, err := mesh.New(mesh.Degrees{mesh.TP: 3, mesh.CP: 2}, mesh.DefaultOrder())
	if err != nil {
		t.Fatal(err)
	}
	four, err := mesh.New(mesh.Degrees{mesh.CP: 4}, mesh.DefaultOrder())
	if err != nil {
		t.Fatal(err)
	}
	uneven, err := mesh.New(mesh.Degrees{mesh.TP: 2, mesh.EP: 3}, mesh.DefaultOrder())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		config  model.Config
		mesh    mesh.Mesh
		options nn.Options
		want    []string
	}{
		{"mixture of experts with a window", change(llama(), func(c *model.Config) {
			c.Experts.Count, c.Bias.MLP, c.Window.Size = 8, true, 4
		}), mesh.Mesh{}, nn.Options{}, []string{
			"nn: a bias in experts cannot be run; use none",
			"nn: a sliding window cannot be run; use full attention",
		}},
		{"every unusual choice", change(llama(), func(c *model.Config) {
			c.Attention, c.Norm, c.NormPlacement, c.QKNorm = model.LatentKV, model.OffsetRMSNorm, model.SandwichNorm, model.FullQKNorm
			c.Activation, c.Rope.Fraction, c.HeadDim, c.MTP = model.GeGLU, 0.5, 5, 1
			c.EmbeddingScale, c.LogitSoftcap, c.ClipQKV = 2, 30, 8
		}), mesh.Mesh{}, nn.Options{}, []string{
			"nn: multi-head latent attention cannot be run; use attention grouped",
			"nn: multi-token prediction cannot be run; set it to 0",
			"nn: norm offset-rms cannot be run; use rms or layer",
			"nn: norm placement sandwich cannot be run; use pre",
			"nn: a norm over all query heads cannot be run; use none or head",
			"nn: activation geglu cannot be run; use swiglu or gelu-tanh",
			"nn: rotation of a part of the head cannot be run; use fraction 1",
			"nn: rotation of heads of odd size 5 cannot be run; use an even size",
			"nn: an embedding scale cannot be run; use 1",
			"nn: soft-capped scores cannot be run; set the caps to 0",
			"nn: clipping of query, key and value cannot be run; set it to 0",
		}},
		{"degrees", llama(), three, nn.Options{}, []string{
			"nn: tensor degree 3 does not divide 4 heads; use a divisor",
			"nn: tensor degree 3 does not divide 2 key-value heads; use a divisor",
		}},
		{"uneven sequence", llama(), four, nn.Options{Sequence: 20}, []string{
			"nn: sequence 20 does not split into the 8 zigzag pieces of context degree 4; use a multiple of 8",
		}},
		{"experts that do not divide", mixture(model.Qwen2MoE, func(c *model.Config) { c.Experts.SharedFFN = 9 }), uneven, nn.Options{
			Experts: nn.ExpertOptions{Tensor: 3},
		}, []string{
			"nn: expert degree 3 does not divide 8 experts; use a divisor",
			"nn: experts split 3 ways under tensor degree 2; use 1 or 2",
			"nn: 3 ranks do not divide 8 features of an expert; use 1",
			"nn: tensor degree 2 does not divide 9 features of shared experts; use a divisor",
		}},
		{"shared experts without tensor ranks", mixture(model.Mixtral, func(*model.Config) {}), mesh.Mesh{}, nn.Options{Experts: nn.ExpertOptions{Tensor: 2}}, []string{
			"nn: experts split 2 ways under tensor degree 1; use 1",
		}},
		{"expert axis without experts", llama(), uneven, nn.Options{}, []string{
			"nn: expert degree 3 for a model without experts; use 1",
		}},
		{"sequence beyond learned positions", gpt2(), mesh.Mesh{}, nn.Options{Sequence: 9}, []string{
			"nn: sequence 9 exceeds the 8 learned positions; use at most 8",
		}},
		{"negative sizes", llama(), mesh.Mesh{}, nn.Options{Sequence: -1, Logits: -1}, []string{
			"nn: sequences of -1 and logits of -1 B; use positive sizes",
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRank(t, tensor.FP32)
			r.Mesh = c.mesh
			before := r.Arena.Live()
			_, err := nn.Build(r, c.config, c.options)
			if err == nil {
				t.Fatal("no error")
			}
			if diff := cmp.Diff(strings.Join(c.want, "\n"), err.Error()); diff != "" {
				t.Error(diff)
			}
			if r.Arena.Live() != before {
				t.Error("a refused model left memory behind")
			}
		})
	}
}

// TestSplitHead compares the two places of the head's backward, and chunks of every size.
func TestSplitHead(t *testing.T) {
	c := llama()
	run := func(o nn.Options) (float64, []float64) {
		r := newRank(t, tensor.FP64)
		m := newModel(t, r, c, o)
		b := newBatch(r, c.Vocab, 20, 7, 4) // 140 rows
		before := r.Arena.Live()
		gradients(r, m, b)
		if after := r.Arena.Live(); after != before {
			t.Errorf("%+v: live bytes went from %v to %v", o, before, after)
		}
		return b.Loss, floats(m.Grad)
	}
	loss, want := run(nn.Options{})
	for _, o := range []nn.Options{{Head: nn.Split}, {Logits: 1}, {Logits: 1, Head: nn.Split}, {Logits: 80 * 19 * 8}} {
		got, grad := run(o)
		worst := math.Abs(got/loss - 1)
		for i, g := range grad {
			worst = worse(worst, math.Abs(g-want[i]))
		}
		const tolerance = 1e-13 // other order of summation
		if worst > tolerance {
			t.Errorf("%+v: differs by %.1e from one fused chunk", o, worst)
		}
	}
}

// TestManyInFlight runs forward for several micro-batches before any backward, and backward in another order.
func TestManyInFlight(t *testing.T) {
	c := families()[0].config
	r := newRank(t, tensor.FP64)
	m := newModel(t, r, c, nn.Options{})
	batches := []*nn.Batch{newBatch(r, c.Vocab, 2, 6, 1), packed(r, newBatch(r, c.Vocab, 1, 9, 2)), newBatch(r, c.Vocab, 3, 4, 3)}
	want := make([]float64, m.Grad.Len())
	for _, b := range batches {
		gradients(r, m, b)
		add(want, floats(m.Grad))
	}
	before := r.Arena.Live()
	m.Begin()
	var passes []*nn.Pass
	for _, b := range batches {
		passes = append(passes, m.Forward(r, b))
	}
	m.Backward(r, passes[1], nil)
	m.Backward(r, passes[2], nil)
	m.Backward(r, passes[0], everything{})
	for i, g := range floats(m.Grad) {
		if math.Abs(g-want[i]) > 1e-12 {
			t.Fatalf("element %d of the gradient is %v, want %v", i, g, want[i])
		}
	}
	m.Forward(r, batches[0]).Free()
	m.Evaluate(r, batches[0])
	if after := r.Arena.Live(); after != before {
		t.Errorf("live bytes went from %v to %v", before, after)
	}
}

// TestPrecisions holds the gradient in fp32 and bf16 to that in fp64 from the same parameters. A tensor's error is its
// distance over its size.
func TestPrecisions(t *testing.T) {
	for _, d := range []struct {
		dtype     tensor.DType
		tolerance float64 // a few roundings of 2^-24 and 2^-9 in a row
	}{{tensor.FP32, 1e-5}, {tensor.BF16, 0.1}} {
		for _, f := range families() {
			t.Run(f.name+"/"+d.dtype.String(), func(t *testing.T) {
				narrow := newRank(t, d.dtype)
				m := newModel(t, narrow, f.config, nn.Options{})
				exact := newRank(t, tensor.FP64)
				n := newModel(t, exact, f.config, nn.Options{})
				copy(n.Value.F64(), widened(narrow, m.Value))
				gradients(narrow, m, newBatch(narrow, f.config.Vocab, 4, 8, 5))
				gradients(exact, n, newBatch(exact, f.config.Vocab, 4, 8, 5))
				for i, p := range n.Params() {
					if e := relative(p.Grad.F64(), widened(narrow, m.Params()[i].Grad)); e > d.tolerance {
						t.Errorf("gradient of %s: relative error %.1e, tolerance %.0e", p.Name, e, d.tolerance)
					}
				}
			})
		}
	}
}

// widened is a tensor's elements, whatever its dtype.
func widened(r *nn.Rank, t *tensor.Tensor) []float64 {
	if t.DType() != tensor.BF16 {
		return floats(t)
	}
	w := r.Arena.New(tensor.Workspace, tensor.FP32, t.Len())
	defer w.Free()
	r.Dev.Copy(w, t)
	return floats(w)
}

// relative is |got - want| / |want|. The least size is that of a small gradient, because some are zero but for rounding
// (the key's bias without rotary positions).
func relative(want, got []float64) float64 {
	const least = 1e-2
	diff, size := 0.0, least*least
	for i, v := range want {
		diff += (v - got[i]) * (v - got[i])
		size += v * v
	}
	return math.Sqrt(diff / size)
}

// TestInit looks at the initial values: the same for a seed, other for another seed and name, of the right deviation.
func TestInit(t *testing.T) {
	c := change(llama(), func(c *model.Config) { c.Hidden, c.FFN, c.Vocab, c.InitStd = 64, 128, 256, 0.02 })
	values := func(seed uint64) map[string][]float64 {
		r := newRank(t, tensor.FP32)
		r.Seed = seed
		m, err := nn.Build(r, c, nn.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m.Init(r)
		out := map[string][]float64{}
		for _, p := range m.Params() {
			out[p.Name] = floats(p.Value)
		}
		return out
	}
	one, again, other := values(1), values(1), values(2)
	if diff := cmp.Diff(one, again); diff != "" {
		t.Error("the same seed gives other values")
	}
	deviation := func(name string) float64 { return math.Sqrt(meanSquare(one[name])) }
	const embed, down = "model.embed_tokens.weight", "model.layers.1.mlp.down_proj.weight"
	if cmp.Equal(one[embed], other[embed]) {
		t.Error("another seed gives the same values")
	}
	if cmp.Equal(one["model.layers.0.mlp.up_proj.weight"], one["model.layers.1.mlp.up_proj.weight"]) {
		t.Error("two layers start with the same values")
	}
	for name, want := range map[string]float64{embed: 0.02, down: 0.02 / 2} { // 1/sqrt(2·2 layers)
		if got := deviation(name); math.Abs(got/want-1) > 0.05 {
			t.Errorf("%s: deviation %.4f, want %.4f", name, got, want)
		}
	}
	if got := one["model.norm.weight"]; got[0] != 1 || got[len(got)-1] != 1 {
		t.Error("norms do not start at one")
	}
}

func meanSquare(v []float64) (mean float64) {
	for _, x := range v {
		mean += x * x / float64(len(v))
	}
	return mean
}

// TestCheckNames plants a NaN or an infinity in each kind of place and wants its name.
func TestCheckNames(t *testing.T) {
	c := families()[0].config
	infinity := math.Inf(1)
	for _, f := range []struct {
		name  string
		plant func(r *nn.Rank, m *nn.Model)
		want  nn.NonFiniteError
	}{
		{
			"a parameter", func(_ *nn.Rank, m *nn.Model) { m.Units[2].Params[1].Value.F32()[3] = float32(math.NaN()) },
			nn.NonFiniteError{Layer: "model.layers.1.self_attn.q_proj.weight", What: "value"},
		},
		{
			"attention overflows", func(r *nn.Rank, _ *nn.Model) { r.Dev = &spoiler{r.Dev, "attention", infinity} },
			nn.NonFiniteError{Layer: "model.layers.0.self_attn", What: "output"},
		},
		{
			"loss", func(r *nn.Rank, _ *nn.Model) { r.Dev = &spoiler{r.Dev, "loss", math.NaN()} },
			nn.NonFiniteError{Layer: "lm_head", What: "loss"},
		},
		{
			"feed-forward's gradient", func(r *nn.Rank, _ *nn.Model) { r.Dev = &spoiler{r.Dev, "swiglu backward", infinity} },
			nn.NonFiniteError{Layer: "model.layers.1.mlp", What: "input gradient"},
		},
		{
			"a table's gradient", func(r *nn.Rank, _ *nn.Model) { r.Dev = &spoiler{r.Dev, "embed backward", infinity} },
			nn.NonFiniteError{Layer: "model.embed_tokens.weight", What: "gradient"},
		},
	} {
		t.Run(f.name, func(t *testing.T) {
			r := newRank(t, tensor.FP32)
			m := newModel(t, r, c, nn.Options{})
			b := newBatch(r, c.Vocab, 2, 5, 1)
			before := r.Arena.Live()
			if err := m.Check(r, b); err != nil {
				t.Fatalf("a finite model: %v", err)
			}
			f.plant(r, m)
			var found *nn.NonFiniteError
			if err := m.Check(r, b); !errors.As(err, &found) || *found != f.want {
				t.Errorf("found %v, want %v", err, &f.want)
			}
			if after := r.Arena.Live(); after != before {
				t.Errorf("live bytes went from %v to %v", before, after)
			}
		})
	}
}

// spoiler is a device that writes a number that is not finite.
type spoiler struct {
	tensor.Device
	where string
	with  float64
}

func (s *spoiler) Attention(op tensor.Attention) {
	s.Device.Attention(op)
	s.spoil("attention", op.Out.T)
}

func (s *spoiler) SwiGLUBackward(dx, y, dy, x *tensor.Tensor) {
	s.Device.SwiGLUBackward(dx, y, dy, x)
	s.spoil("swiglu backward", dx)
}

func (s *spoiler) EmbedBackward(dtable, dy, ids *tensor.Tensor, start int) {
	s.Device.EmbedBackward(dtable, dy, ids, start)
	s.spoil("embed backward", dtable)
}

func (s *spoiler) Loss(top, sum, target, targets *tensor.Tensor) float64 {
	if s.where == "loss" {
		return s.with
	}
	return s.Device.Loss(top, sum, target, targets)
}

func (s *spoiler) spoil(where string, t *tensor.Tensor) {
	if s.where == where {
		t.F32()[0] = float32(s.with)
	}
}

func TestGuard(t *testing.T) {
	cause := errors.New("cancelled")
	if err := nn.Guard(func() { nn.Must(cause) }); !errors.Is(err, cause) {
		t.Errorf("a failed collective: %v", err)
	}
	if err := nn.Guard(func() { nn.Must(nil) }); err != nil {
		t.Errorf("no failure: %v", err)
	}
	small := tensor.NewArena(tensor.ArenaOptions{Limit: 100, Meta: true})
	var limit *tensor.LimitError
	if err := nn.Guard(func() { small.New(tensor.Activation, tensor.FP32, 26) }); !errors.As(err, &limit) {
		t.Errorf("the arena's limit: %v", err)
	}
	defer func() {
		if v := recover(); v != "a bug" {
			t.Errorf("a bug came out as %v", v)
		}
	}()
	_ = nn.Guard(func() { panic("a bug") })
	t.Error("a bug was swallowed")
}
